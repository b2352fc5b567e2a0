"""The settings of every method that the experiments compare, as they are searched and used."""

import math
from typing import Any

from sklearn.semi_supervised import LabelSpreading

from manifoldknn.baselines.weighted import WeightedKNNClassifier
from manifoldknn.classifier import as_published
from manifoldknn.reproduction.experiment import Lines, Scalar, Table
from manifoldknn.reproduction.figures.width import FACTORS
from manifoldknn.reproduction.methods import (
    DEFAULT,
    GEODESIC_LINKS,
    GUIDED_SVM,
    NEIGHBORS,
    PUBLISHED,
    SPREADING,
    baseline,
)

_MANY = 8  # values, that are not all written out

_FIXED = {
    "kNN": "k votes of the same weight",
    "SVM": "radial basis functions",
    GUIDED_SVM: "radial basis functions",
    "NB": "a kernel density of every feature in every class",
    "DT": "a grown tree is pruned: branches dearer than they are worth are merged",
}


def settings_table() -> Table:
    """Return what is fixed and what is tuned in every method, read from the estimators and grids.

    >>> [line[0] for line in settings_table().rows][:3]
    ['kNN', 'wkNN', 'gkNN']
    """
    weighted = WeightedKNNClassifier()
    network = baseline("ANN", k=1).estimator
    fixed = _FIXED | {
        "wkNN": f"kernel {weighted.kernel} of the distance over that of the (k+1)-th neighbour",
        "ANN": f"one hidden layer, solver {network.solver}, at most {network.max_iter} steps",
    }
    full = f"full graph, Cholesky, α = {as_published().alpha:g}, k labelled samples vote"
    factors = f"{_list(FACTORS)} × the median distance to the seventh neighbour"
    lines: Lines = [
        _line("kNN", fixed),
        _line("wkNN", fixed),
        ["gkNN", "shortest paths from labelled rows",
         f"linked neighbours: {_list(GEODESIC_LINKS)}"],
        *(_line(name, fixed) for name in ("SVM", GUIDED_SVM, "ANN", "NB", "DT")),
        [PUBLISHED, full, f"σ: {factors}, once per set"],
        [DEFAULT, "ManifoldKNNClassifier(): class densities vote",
         "α by the number of labels, sharpness by hidden labels; no answer depends on the latter"],
        [NEIGHBORS, "our graph, α = 0.99, k labelled samples vote", "nothing"],
        *_spreading_lines(),
        ["Poisson", "10 neighbours, solver gradient_descent", "nothing"],
    ]  # fmt: skip
    return Table(
        "Settings of the methods",
        ["method", "fixed", "tuned"],
        lines,
        (
            "The lowest error of a 2-fold cross-validation of the labelled rows is searched; of "
            "equal ones the first wins. In tab7, and where a class has one label, nothing is "
            "tuned: the first value holds there (σ as tuned once per set).",
            "LabelSpreading ends by default before labels have travelled far, and rows that they "
            "have not reached get the first class.",
        ),
    )


def _line(name: str, fixed: dict[str, str]) -> list[Scalar]:
    grid = baseline(name, k=1).grid
    tuned = "; ".join(f"{key}: {_list(values)}" for key, values in grid.items())
    return [name, fixed[name], tuned or "nothing"]


def _spreading_lines() -> Lines:
    models = {name: LabelSpreading(kernel="knn", **given) for name, given in SPREADING.items()}
    return [
        [name, f"kernel knn with {m.n_neighbors} neighbours, α = {m.alpha:g}, "
         f"{'at most ' * (m.tol > 0)}{m.max_iter} steps", "nothing"]
        for name, m in models.items()
    ]  # fmt: skip


def _list(values: Any) -> str:
    powers = [math.log2(v) if isinstance(v, float) and v > 0 else math.nan for v in values]
    if len(powers) > _MANY and all(power.is_integer() for power in powers):
        return f"2^{powers[0]:.0f}, 2^{powers[1]:.0f}, …, 2^{powers[-1]:.0f}"
    plain = [" + ".join(map(str, v)) if isinstance(v, tuple) else v for v in values]
    return ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in plain)
