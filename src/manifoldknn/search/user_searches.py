"""Neighbour searches that users bring: in the manner of scikit-learn, fitted or not.

A searcher has ``kneighbors(X, n_neighbors)``, like `NearestNeighbors`, or only ``transform(X)``,
which returns sparse distances to the samples, like `KNeighborsTransformer`. One that is fitted
already is used as it is, once a few rows have shown that it knows the samples; others are copied
and fitted.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import pairwise_distances
from sklearn.utils.validation import check_is_fitted

from manifoldknn.base import Array, Floats
from manifoldknn.exceptions import MetricWarning, warn_caller
from manifoldknn.search.neighbors import ExactIndex, NeighborIndex, Neighbors, sorted_neighbors

_LOOKED_UP = 8  # rows by which a fitted searcher shows that it knows the samples
_ROUNDING = 1e-5  # of the distances it returns, as a share of the largest
_CLOSE = 1e-3  # distances that differ by less, relatively, are the same
_MINKOWSKI = {1: "manhattan", 2: "euclidean", np.inf: "chebyshev"}
_SYNONYMS = {
    "l1": "manhattan", "cityblock": "manhattan", "taxicab": "manhattan", "l2": "euclidean",
    "minkowski": "euclidean", "linfinity": "chebyshev", "linf": "chebyshev",
    "infinity": "chebyshev",
}  # fmt: skip


def is_searcher(neighbors: Any) -> bool:
    """Tell whether an object has ``kneighbors``, or ``fit`` and ``transform``: fitted or not."""
    if isinstance(neighbors, type):
        return False
    transforms = hasattr(neighbors, "fit") and hasattr(neighbors, "transform")
    return transforms or hasattr(neighbors, "kneighbors")


def is_fitted(searcher: Any) -> bool:
    """Tell whether a searcher is fitted: always, where it cannot be."""
    if not hasattr(searcher, "fit"):
        return True
    if hasattr(searcher, "__sklearn_tags__"):
        try:
            check_is_fitted(searcher)
        except NotFittedError:
            return False
        return True
    # Nothing of scikit-learn's, which would refuse it or warn, but perhaps with its habits.
    if hasattr(searcher, "__sklearn_is_fitted__"):
        return bool(searcher.__sklearn_is_fitted__())
    return any(name.endswith("_") and name[0] != "_" for name in getattr(searcher, "__dict__", {}))


def unfitted(searcher: Any) -> Any:
    """Return a copy of a searcher, a clone if possible, to be fitted in place of the user's."""
    name = type(searcher).__name__
    if not hasattr(searcher, "fit"):
        raise ValueError(
            f"neighbors of type {name} has no fit, so it cannot search among more rows than it "
            "has: give it one, or bring a searcher that has."
        )
    try:
        return clone(searcher)
    except (TypeError, RuntimeError):  # no get_params, or a constructor that changes them
        pass
    try:
        return deepcopy(searcher)
    except Exception as error:
        raise ValueError(
            f"neighbors of type {name} can be neither cloned nor copied ({error}): fit it on the "
            "same X and pass it fitted, or pass the (indices, distances) it finds."
        ) from error


def searcher_for(neighbors: Any, X: Any) -> Any:
    """Return what can search among samples that have become more since the user's fit.

    That is `neighbors`, of any kind, but a copy, fitted on X, of a searcher fitted on fewer rows.
    """
    if not is_searcher(neighbors) or not is_fitted(neighbors):
        return neighbors
    if _n_fitted(neighbors) == X.shape[0]:
        return neighbors
    again = unfitted(neighbors)
    again.fit(X)
    return again


def check_searcher(searcher: Any, X: Any, *, metric: Any) -> None:
    """Raise ValueError for a searcher that cannot serve; warn of another metric than `metric`."""
    its_metric = _metric_of(searcher)
    if its_metric == "precomputed":
        raise ValueError(
            "neighbors is a searcher of precomputed distances, which cannot search X: pass the "
            "distances themselves, sparse or as (indices, distances)."
        )
    if not hasattr(searcher, "kneighbors") and getattr(searcher, "mode", None) == "connectivity":
        raise ValueError(
            "neighbors is a transformer of mode='connectivity', which tells no distances: make it "
            "with mode='distance'."
        )
    if is_fitted(searcher):
        n_rows, n_columns = _n_fitted(searcher), getattr(searcher, "n_features_in_", None)
        if n_rows not in (None, X.shape[0]) or n_columns not in (None, X.shape[1]):
            shape = f"{n_rows or 'some'} rows and {n_columns or 'some'} columns"
            raise _other_rows(f"on {shape}, but X has {X.shape[0]} and {X.shape[1]}")
    if its_metric is not None and its_metric != _canonical(metric):
        warn_caller(
            f"The searcher in neighbors measures {_spoken(its_metric)} distances, but the "
            f"classifier has metric={_spoken(metric)}: neighbours and the weights of edges follow "
            "the searcher, everything else the classifier. Give both the same metric.",
            MetricWarning,
        )


def _n_fitted(searcher: Any) -> Any:
    """Return how many rows a searcher was fitted on; None if it does not tell."""
    return getattr(searcher, "n_samples_fit_", getattr(searcher, "n_samples_fit", None))


def _other_rows(how: str) -> ValueError:
    return ValueError(
        f"neighbors is a searcher that was fitted {how}: fit it on the very rows that are "
        "classified, or pass it unfitted (sklearn.base.clone)."
    )


def _metric_of(searcher: Any) -> Any:
    """Return the metric of a searcher by its usual name; None if it does not tell."""
    name = getattr(searcher, "effective_metric_", getattr(searcher, "metric", None))
    if isinstance(name, str) and name == "minkowski":
        params = getattr(searcher, "metric_params", None) or getattr(searcher, "metric_kwds", None)
        p = (params or {}).get("p", getattr(searcher, "p", 2))
        return _MINKOWSKI.get(p, f"minkowski (p={p})")
    return _canonical(name)


def _canonical(metric: Any) -> Any:
    return _SYNONYMS.get(metric, metric) if isinstance(metric, str) else metric


def _spoken(metric: Any) -> str:
    return repr(metric) if isinstance(metric, str) else getattr(metric, "__name__", str(metric))


def others(indices: Array, distances: Floats, n_neighbors: int) -> Neighbors:
    """Return the nearest samples of every sample without itself, as many per row as all rows have.

    Candidates stand in any order, with a distance of inf where one does not count.
    """
    distances = np.where(indices == np.arange(len(indices))[:, None], np.inf, distances)
    indices, distances = sorted_neighbors(indices, distances, n_neighbors)
    usable = int(np.isfinite(distances).sum(axis=1).min())
    return Neighbors(indices[:, :usable].astype(np.intp), distances[:, :usable])


def check_enough(found: Neighbors, graph_neighbors: int) -> None:
    """Raise ValueError if a search found fewer other samples than the graph needs."""
    count = found.indices.shape[1]
    if count < graph_neighbors:
        raise ValueError(
            f"neighbors found only {count} other rows for some row, but graph_neighbors="
            f"{graph_neighbors}: let the searcher return at least {graph_neighbors + 1} per row, "
            "the row itself included (31 are best), or lower graph_neighbors."
        )


class SearcherIndex(NeighborIndex):
    """A search in the manner of scikit-learn's `NearestNeighbors` or `KNeighborsTransformer`.

    The searcher has ``kneighbors(X, n_neighbors)``, which returns distances and indices, or
    ``transform(X)``, which returns sparse distances: any number per row, itself among them or not.
    If it is fitted, on X, it is used as it is and must stay so; otherwise a copy is fitted. Costs
    what the searcher costs, one look at a few rows more if it was fitted.
    """

    def __init__(self, X: Any, searcher: Any, *, metric: Any) -> None:
        self.X, self.metric = X, metric
        self._fewest: int | None = None  # neighbours of a sample
        if is_fitted(searcher):
            self._searcher = searcher
            self._look_up()
        else:
            self._searcher = unfitted(searcher)
            self._searcher.fit(X)

    def among_samples(self, n_neighbors: int) -> Neighbors:
        """Return the nearest other samples of every sample, as many as every sample has."""
        found = others(*self._asked(self.X, n_neighbors + 1), n_neighbors)
        self._fewest = found.indices.shape[1]
        return found

    def query(self, Q: Any, n_neighbors: int) -> Neighbors:
        """Return the nearest samples of new rows, at most as many as samples have.

        Rows near which the searcher finds fewer are compared with all samples.
        """
        # Not as many as these rows have: one row's answer must not depend on the others.
        count = n_neighbors if self._fewest is None else min(n_neighbors, self._fewest)
        near, away = self._asked(Q, n_neighbors)
        short = np.flatnonzero(np.isfinite(away).sum(axis=1) < count)
        if near.shape[1] < count:
            missing = ((0, 0), (0, count - near.shape[1]))
            near = np.pad(near, missing, constant_values=-1)
            away = np.pad(away, missing, constant_values=np.inf)
        indices, distances = sorted_neighbors(near, away, count)
        if short.size:
            exact = ExactIndex(self.X, metric=self.metric).query(Q[short], count)
            indices[short], distances[short] = exact.indices, exact.distances
        return Neighbors(indices.astype(np.intp), distances)

    def _look_up(self) -> None:
        """Raise ValueError unless the searcher knows most of a few rows."""
        n = self.n_samples
        rows = np.unique(np.linspace(0, n - 1, min(_LOOKED_UP, n)).astype(np.intp))
        try:
            answer = self._answer(self.X[rows], _LOOKED_UP)
        except Exception as error:
            raise _other_rows(f"so that it cannot search X ({error})") from error
        indices, distances = self._read(answer, len(rows))
        known = sum(map(self._knows, rows, indices, distances))
        if 2 * known < len(rows):
            raise _other_rows(
                f"on other rows than X, or on the same ones in another order or on another scale "
                f"(of {len(rows)} rows looked up, it knew {known})"
            )

    def _knows(self, row: int, near: Array, away: Floats) -> bool:
        """Tell whether a row is its own nearest, or its nearest is as far as it should be.

        The row itself may be missing: it has many duplicates, or zeros were left out.
        """
        finite = away[np.isfinite(away)]
        if not finite.size:
            return False
        rounding = _ROUNDING * finite.max()
        nearest = near[away <= finite.min() + rounding]
        if row in nearest:
            return True
        itself, other = self.X[[row]], self.X[nearest[:1]]
        if not abs(itself - other).sum():
            return True
        measured = pairwise_distances(itself, other, metric=self.metric).item()
        return bool(np.isclose(measured, finite.min(), rtol=_CLOSE, atol=rounding))

    def _asked(self, Q: Any, count: int) -> tuple[Array, Floats]:
        """Return neighbours of rows as the searcher finds them, in any order, padded with inf."""
        return self._read(self._answer(Q, count), Q.shape[0])

    def _answer(self, Q: Any, count: int) -> Any:
        """Return what the searcher returns."""
        with _names_left_out(self._searcher):
            if hasattr(self._searcher, "kneighbors"):
                return self._searcher.kneighbors(Q, n_neighbors=min(count, self.n_samples))
            return self._searcher.transform(Q)

    def _read(self, answer: Any, n_rows: int) -> tuple[Array, Floats]:
        if hasattr(self._searcher, "kneighbors"):
            distances, indices = np.array(answer[0], dtype=np.float64), np.asarray(answer[1])
        else:
            indices, distances = self._padded(answer, n_rows)
        if indices.size and indices.max() >= self.n_samples:
            raise _other_rows(f"on more than the {self.n_samples} rows of X")
        distances[indices < 0] = np.inf  # approximate searches say so that they found nobody
        largest = np.max(distances, initial=0.0, where=np.isfinite(distances))
        if np.isnan(distances).any() or (distances < -_ROUNDING * largest).any():
            raise ValueError(
                "The searcher in neighbors returned distances that are negative or NaN: it must "
                "return distances, not similarities."
            )
        return indices, np.maximum(distances, 0.0, out=distances)

    def _padded(self, graph: Any, n_rows: int) -> tuple[Array, Floats]:
        """Return sparse distances as lists."""
        name = type(self._searcher).__name__
        if not sparse.issparse(graph) or graph.shape[0] != n_rows:
            raise ValueError(
                f"neighbors of type {name} is no searcher: its transform must return a sparse "
                "matrix of distances with a row for each row and a column for each sample."
            )
        if graph.shape[1] != self.n_samples:
            raise _other_rows(f"on {graph.shape[1]} rows, but X has {self.n_samples}")
        graph = sparse.csr_array(graph)
        counts = np.diff(graph.indptr)
        place = np.arange(max(int(counts.max(initial=0)), 1)) < counts[:, None]
        indices = np.full(place.shape, -1, dtype=np.intp)
        distances = np.full(place.shape, np.inf)
        indices[place], distances[place] = graph.indices, graph.data
        return indices, distances


@contextmanager
def _names_left_out(searcher: Any) -> Iterator[None]:
    """Keep scikit-learn from missing the names of the columns: X is an array by now."""
    if not hasattr(searcher, "feature_names_in_"):
        yield
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        yield
