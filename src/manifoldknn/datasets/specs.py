"""What each of the paper's six real data sets must look like."""

import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np

from manifoldknn.base import Floats


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


def row_means(X: Floats) -> Floats:
    """Return the mean of every row, columns scaled to [0, 1]; constant columns count as 0.

    >>> row_means(np.array([[0.0, 7.0], [5.0, 7.0], [10.0, 7.0]]))
    array([0.  , 0.25, 0.5 ])
    """
    return np.asarray(scaled(X).mean(axis=1))


def scaled(X: Floats) -> Floats:
    """Return X with every column mapped to [0, 1], constant ones to 0."""
    low, spread = X.min(axis=0), np.ptp(X, axis=0)
    return np.asarray((X - low) / np.where(spread > 0, spread, 1.0))


def _spec(name: str, read: dict[str, Any]) -> Spec:
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in read.items()}
    return Spec(name, **fields)


_TEXT = (resources.files(__package__) / "specs.toml").read_text("utf-8")
PAPER_SETS = {name: _spec(name, fields) for name, fields in tomllib.loads(_TEXT).items()}
