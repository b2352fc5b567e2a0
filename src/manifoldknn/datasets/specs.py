"""What each of the paper's six real data sets must look like."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Spec:
    """Everything by which a data set is known."""

    name: str  # as in the paper
    files: tuple[str, ...]  # names that a file of it may have; the first is the usual one
    openml: tuple[int, ...]  # OpenML data sets whose columns it consists of
    n_features: int
    n_paper: int  # rows that the paper states
    classes_paper: int  # classes that the paper states
    drops_repeats: bool  # whether the paper's rows are what is left without repeated rows
    counts: tuple[int, ...]  # rows of every class before that, by their numbers or names
    # Mean of all values of every class, columns scaled to [0, 1]. Neither the order of rows and
    # columns nor the unit of a column changes it; wrong labels do.
    class_means: tuple[float, ...]
    deviation: float  # of the rows' means, which changes when columns are joined wrongly

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of X before cleaning."""
        return sum(self.counts), self.n_features


def row_means(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of every row, columns scaled to [0, 1]; constant columns count as 0.

    >>> row_means(np.array([[0.0, 7.0], [5.0, 7.0], [10.0, 7.0]]))
    array([0.  , 0.25, 0.5 ])
    """
    return np.asarray(scaled(X).mean(axis=1))


def scaled(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return X with every column mapped to [0, 1], constant ones to 0."""
    low, spread = X.min(axis=0), np.ptp(X, axis=0)
    return np.asarray((X - low) / np.where(spread > 0, spread, 1.0))


_SPECS = (
    Spec(
        name="usps", files=("usps.npz",), openml=(41082,),
        n_features=256, n_paper=9298, classes_paper=10, drops_repeats=False,
        counts=(1553, 1269, 929, 824, 852, 716, 834, 792, 708, 821),
        class_means=(
            0.354479, 0.149732, 0.27906, 0.28617, 0.217812,
            0.291479, 0.25394, 0.210071, 0.282312, 0.225281,
        ),
        deviation=0.094568,
    ),
    Spec(
        name="segmentation", files=("segmentation.npz",), openml=(36,),
        n_features=19, n_paper=2086, classes_paper=6, drops_repeats=True,
        counts=(330, 330, 330, 330, 330, 330, 330),
        class_means=(0.191928, 0.239579, 0.198454, 0.26077, 0.268633, 0.342662, 0.192947),
        deviation=0.057557,
    ),
    Spec(
        name="banknote", files=("banknote.npz",), openml=(1462,),
        n_features=4, n_paper=1348, classes_paper=2, drops_repeats=True,
        counts=(762, 610),
        class_means=(0.570405, 0.458866),
        deviation=0.07579,
    ),
    Spec(
        name="pendigits", files=("pendigits.npz",), openml=(32,),
        n_features=16, n_paper=10992, classes_paper=10, drops_repeats=False,
        counts=(1143, 1143, 1144, 1055, 1144, 1055, 1056, 1142, 1055, 1055),
        class_means=(
            0.503134, 0.524531, 0.439083, 0.5356, 0.518718,
            0.500259, 0.432576, 0.515601, 0.520509, 0.5841,
        ),
        deviation=0.059985,
    ),
    Spec(
        name="multifeature", files=("multifeature.npz", "mfeat.npz"),
        openml=(14, 12, 16, 40979, 22, 18),
        n_features=649, n_paper=2000, classes_paper=10, drops_repeats=False,
        counts=(200, 200, 200, 200, 200, 200, 200, 200, 200, 200),
        class_means=(
            0.462308, 0.481439, 0.463677, 0.459739, 0.434798,
            0.464651, 0.455929, 0.469621, 0.460033, 0.456255,
        ),
        deviation=0.025047,
    ),
    Spec(
        name="satlog", files=("satlog.npz", "satimage.npz"), openml=(294,),
        n_features=36, n_paper=6435, classes_paper=6, drops_repeats=False,
        counts=(1533, 703, 1358, 626, 707, 1508),
        class_means=(0.523734, 0.415274, 0.641457, 0.503572, 0.339295, 0.392362),
        deviation=0.127206,
    ),
)  # fmt: skip
PAPER_SETS = {spec.name: spec for spec in _SPECS}
