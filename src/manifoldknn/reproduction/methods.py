"""Every method that the experiments compare, each a function of samples and a few labels.

All of them answer for unlabelled rows and see the same labels. Supervised ones learn from the
labelled rows only. What the paper tunes is tuned as it says: a grid search for the lowest
error of a 2-fold cross-validation of the labelled rows; where that is impossible (a class of one
label) the usual value, which stands first in every grid.
"""

import math
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC

from manifoldknn.base import Ints
from manifoldknn.baselines import Baseline, supervised
from manifoldknn.baselines.geodesic import nearest_by_path
from manifoldknn.classifier import ManifoldKNNClassifier, as_published
from manifoldknn.exceptions import TooFewLabelsError
from manifoldknn.model_selection import SemiSupervisedSplit, tuned
from manifoldknn.reproduction.experiment import Lines, Table, read_toml
from manifoldknn.reproduction.problems import FACTORS, Problem, tuned_sigma
from manifoldknn.vote.votes import class_shares, winners

Answer = Callable[[Problem, Ints, int, int], Ints]

PUBLISHED, DEFAULT, NEIGHBORS = "mkNN as published", "mkNN default", "mkNN, the paper's vote"
NEAREST = ("kNN", "wkNN", "gkNN")
SUPERVISED_METHODS = ("SVM", "ANN", "NB", "DT")
OF_THE_PAPER = (*SUPERVISED_METHODS, *NEAREST)
# Its defaults end before labels have travelled far, and what they have not reached gets the first
# class: so it is shown with settings that let them travel as well.
SPREADING: dict[str, dict[str, Any]] = {
    "LabelSpreading, its defaults": {},
    "LabelSpreading, α = 0.99": {"n_neighbors": 10, "alpha": 0.99, "max_iter": 10_000},
    "LabelSpreading, 200 steps": {"max_iter": 200, "tol": 0.0},
}
BEYOND = (*SPREADING, "Poisson")
GUIDED_SVM = "SVM, libsvm's grid"  # the grid that the authors of libsvm advise
GEODESIC_LINKS = (10, 5, 7, 15, 20)  # the usual one first

_NAMES = {"kNN": "knn", "wkNN": "weighted", "SVM": "svm", "ANN": "ann", "NB": "nb", "DT": "dt"}
_MANY = 8  # values, that are not all written out


def available() -> tuple[str, ...]:
    """Return the methods beyond the paper that can run here: Poisson needs graphlearning."""
    return BEYOND if find_spec("graphlearning") is not None else BEYOND[:-1]


def error_of(method: str, problem: Problem, y: Ints, *, k: int, seed: int) -> float:
    """Return the error of a method on the unlabelled rows, -1 in `y`, in percent.

    `k` labelled samples vote, in the methods of nearest neighbours; the seed is that of folds and
    of whatever else is random in a method.

    >>> from manifoldknn.reproduction.problems import drawn, synthetic
    >>> knot = synthetic("knot", 0)
    >>> y = drawn(knot.truth, 3, seed=0)
    >>> error_of("mkNN default", knot, y, k=3, seed=0) < error_of("kNN", knot, y, k=3, seed=0)
    True
    """
    rest = y < 0
    answers = _ANSWERS[method](problem, y, k, seed)
    return 100.0 * float(np.mean(answers[rest] != problem.truth[rest]))


def baseline(method: str, *, k: int, seed: int = 0) -> Baseline:
    """Return a supervised method by the name it has here, and the grid that is searched."""
    if method != GUIDED_SVM:
        return supervised(_NAMES[method], n_neighbors=k, random_state=seed)
    # In the order of libsvm's own script, which begins with the smallest C and the largest γ.
    grid: dict[str, list[Any]] = {
        "C": [2.0**power for power in range(-5, 16, 2)],
        "gamma": [2.0**power for power in range(3, -16, -2)],
    }
    return Baseline(SVC(kernel="rbf", gamma="auto"), grid)


def _supervised(method: str, problem: Problem, y: Ints, k: int, seed: int) -> Ints:
    labeled = np.flatnonzero(y >= 0)
    X, codes = problem.X[labeled], y[labeled]
    found = baseline(method, k=k, seed=seed)
    estimator = found.estimator
    with warnings.catch_warnings(action="ignore"):  # networks that stop early are part of a grid
        if found.grid:
            estimator = tuned(
                estimator, found.grid, X, codes, transductive=False, random_state=seed
            ).estimator
        estimator.fit(X, codes)
    out = y.copy()
    out[y < 0] = estimator.predict(problem.X[y < 0])
    return out


def _geodesic(problem: Problem, y: Ints, k: int, seed: int) -> Ints:
    """Answer as a tuned `GeodesicKNNClassifier` does, with neighbours that are searched once."""
    labeled = np.flatnonzero(y >= 0)

    def answers(n_links: int, voters: Ints) -> Ints:
        """Return the majority's class; of the nearest where no path leads to a label."""
        found = nearest_by_path(problem.linked(n_links), voters, k)
        reached = np.isfinite(found.distances)
        out = winners(class_shares(reached.astype(float), y[voters][found.indices], y.max() + 1))
        lost = ~reached[:, 0]
        if lost.any():
            nearest = KNeighborsClassifier(1).fit(problem.X[voters], y[voters])
            out[lost] = nearest.predict(problem.X[lost])
        return out

    def right(n_links: int, train: Ints, test: Ints) -> float:
        return float(np.mean(answers(n_links, labeled[train])[labeled[test]] == y[labeled[test]]))

    best = GEODESIC_LINKS[0]
    with suppress(TooFewLabelsError):
        folds = list(SemiSupervisedSplit(random_state=seed).split(labeled, y[labeled]))
        links = [n_links for n_links in GEODESIC_LINKS if n_links < len(y)]
        scores = [np.mean([right(n_links, *fold) for fold in folds]) for n_links in links]
        best = links[int(np.argmax(np.round(scores, 12)))]
    return np.where(y >= 0, y, answers(best, labeled))


def _manifold(name: str, problem: Problem, y: Ints, k: int, seed: int) -> Ints:  # noqa: ARG001
    model = ManifoldKNNClassifier()
    if name == PUBLISHED:
        model = as_published(n_neighbors=k, sigma=tuned_sigma(problem))
    elif name == NEIGHBORS:
        model = ManifoldKNNClassifier(k, vote="neighbors")
    return np.asarray(problem.fitted(model, y).transduction_, dtype=np.intp)


def _spreading(name: str, problem: Problem, y: Ints, k: int, seed: int) -> Ints:  # noqa: ARG001
    settings = {"n_neighbors": 7} | SPREADING[name]
    with warnings.catch_warnings(action="ignore"):  # rows without weight, and the steps it has
        graph = problem.spreading_graph(settings.pop("n_neighbors"))
        model = LabelSpreading(kernel=lambda *_: graph, **settings)
        return np.asarray(model.fit(problem.X, y).transduction_, dtype=np.intp)


def _poisson(problem: Problem, y: Ints, k: int, seed: int) -> Ints:  # noqa: ARG001
    from graphlearning import ssl, weightmatrix

    near = problem.linked(10)
    indices = np.hstack([np.arange(len(y))[:, None], near.indices])
    distances = np.hstack([np.zeros((len(y), 1)), near.distances])
    labeled = np.flatnonzero(y >= 0)
    with warnings.catch_warnings(action="ignore"):
        graph = weightmatrix.knn(problem.X, 10, knn_data=(indices, distances))
        # Its default solver, conjugate gradients, fails on graphs of several parts.
        model = ssl.poisson(graph, solver="gradient_descent")
        return np.asarray(model.fit_predict(labeled, y[labeled]), dtype=np.intp)


_ANSWERS: dict[str, Answer] = {
    **{name: partial(_supervised, name) for name in (*_NAMES, GUIDED_SVM)},
    "gkNN": _geodesic,
    **{name: partial(_manifold, name) for name in (PUBLISHED, DEFAULT, NEIGHBORS)},
    **{name: partial(_spreading, name) for name in SPREADING},
    "Poisson": _poisson,
}


def settings_table() -> Table:
    """Return what is fixed and what is tuned in every method, read from the estimators and grids.

    >>> [line[0] for line in settings_table().rows][:3]
    ['kNN', 'wkNN', 'gkNN']
    """
    values: dict[str, Any] = {
        "weighted": baseline("wkNN", k=1).estimator,
        "network": baseline("ANN", k=1).estimator,
        "published": as_published(),
        "links": _list(GEODESIC_LINKS),
        "factors": _list(FACTORS),
    }
    lines: Lines = []
    for name, said in read_toml("words.toml")["settings"]["methods"].items():
        model = LabelSpreading(kernel="knn", **SPREADING.get(name, {}))
        values |= {"spreading": model, "at_most": "at most " * (model.tol > 0)}
        tuned = said[1:] or [_grid(name)]
        lines.append([name, *(text.format_map(values) for text in (said[0], *tuned))])
    return Table.told("settings", "table", lines)


def _grid(name: str) -> str:
    grid = baseline(name, k=1).grid
    return "; ".join(f"{key}: {_list(values)}" for key, values in grid.items()) or "nothing"


def _list(values: Any) -> str:
    powers = [math.log2(v) if isinstance(v, float) and v > 0 else math.nan for v in values]
    if len(powers) > _MANY and all(power.is_integer() for power in powers):
        return f"2^{powers[0]:.0f}, 2^{powers[1]:.0f}, …, 2^{powers[-1]:.0f}"
    plain = [" + ".join(map(str, v)) if isinstance(v, tuple) else v for v in values]
    return ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in plain)
