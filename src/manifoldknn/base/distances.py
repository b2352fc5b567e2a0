"""Distances, pair by pair and block by block.

Euclidean distances that decide anything come from differences: the usual
``|x|² - 2xy + |y|²`` loses all digits between near-duplicates, and exactly those
pairs carry the largest weights.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import DistanceMetric, pairwise_distances

from manifoldknn.base import Array, Floats, Ints
from manifoldknn.base.threads import in_threads

EUCLIDEAN = frozenset({"euclidean", "l2", "minkowski"})
ANGULAR = frozenset({"cosine", "correlation"})  # 1 - cos, in the second of centred rows
_BLURRED = 1e9  # squared norm over squared resolution at which products lose six digits
_SMALLEST_VALUE, _LARGEST_VALUE = 1e-12, 1e12  # whose squares single precision has
_CHUNK_BYTES = 1 << 25
_PAIR_BYTES = 1 << 23  # small enough for differences to stay in cache
_LIST_BYTES = 1 << 21  # the same, where several threads share it
_ROW_BYTES = 1 << 24  # of samples that are moved, scaled or cast at a time


def values_per_row(X: Any) -> float:
    """Return how many numbers a row of X holds on average: columns, or stored entries if sparse."""
    return float(X.nnz / X.shape[0] if sparse.issparse(X) else X.shape[1])


def row_blocks(X: Any) -> Iterator[slice]:
    """Yield blocks of rows that fill 16 MB in double precision.

    Whoever changes samples (moves, scales or casts them) does so block by block: X is by far the
    largest array there is, and another one like it may not fit.
    """
    step = max(1, int(_ROW_BYTES / (8 * max(1.0, values_per_row(X)))))
    for start in range(0, X.shape[0], step):
        yield slice(start, min(start + step, X.shape[0]))


def squared_norms(X: Array) -> Floats:
    """Return ‖x‖² of every row in double precision."""
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def largest_value(X: Array) -> float:
    """Return the largest absolute value, without an array of them."""
    return max(float(X.max()), -float(X.min()))


def squares_fit(X: Any) -> bool:
    """Tell whether squares of the larger values of X fit into single precision, with room to add.

    >>> squares_fit(np.array([1e-3, 1e3])), squares_fit(np.array([1e-20]))
    (True, False)
    """
    return _SMALLEST_VALUE < largest_value(X) < _LARGEST_VALUE


def euclidean_pairs(A: Any, B: Any, rows: Ints, cols: Ints) -> Floats:
    """Return the Euclidean distance of each pair ``(A[rows[e]], B[cols[e]])``.

    Taken from differences in double precision, pair by pair, so that equal rows have distance
    exactly 0.
    """
    out = np.empty(len(rows))
    per_row = float(A.shape[1])
    if sparse.issparse(A):  # an entry and its index, several times over
        per_row = 8.0 * (A.nnz + B.nnz) / max(1, A.shape[0] + B.shape[0])
    step = max(1, int(_PAIR_BYTES / (8 * max(1.0, per_row))))
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        a, b = A[rows[part]], B[cols[part]]
        if sparse.issparse(a):
            difference = (a.astype(np.float64) - b.astype(np.float64)).tocsr()
            out[part] = np.sqrt(np.asarray(difference.multiply(difference).sum(axis=1)).ravel())
        else:
            out[part] = row_norms(np.subtract(a, b, dtype=np.float64))
    return out


def euclidean_lists(Q: Any, X: Any, lists: Ints, *, n_jobs: int | None = 1) -> Floats:
    """Return the Euclidean distances between every row of Q and the samples of X in its list.

    The same numbers as those of `euclidean_pairs`, sooner. Several threads (None: all cores) serve
    dense rows only.
    """
    n, k = lists.shape
    if sparse.issparse(X):
        rows = np.repeat(np.arange(n), k)
        return euclidean_pairs(Q, X, rows, lists.ravel()).reshape(n, k)
    out = np.empty((n, k))
    step = max(1, _LIST_BYTES // (8 * max(1, k * X.shape[1])))

    def measure(start: int) -> None:
        part = slice(start, start + step)
        difference = X[lists[part]].astype(np.float64)
        difference -= Q[part][:, None, :]
        out[part] = row_norms(difference.reshape(-1, X.shape[1])).reshape(-1, k)

    for _ in in_threads(measure, range(0, n, step), n_jobs):
        pass
    return out


def row_norms(difference: Floats) -> Floats:
    """Return ‖x‖ of every row, for numbers of any size."""
    with np.errstate(over="ignore", under="ignore"):
        norms: Floats = np.sqrt(np.einsum("ij,ij->i", difference, difference))
    # Squares leave float64 beyond 1e154 and below 1e-154: those few rows are scaled first.
    extreme = np.flatnonzero(~((norms > 1e-140) & (norms < 1e140)))
    if extreme.size:
        rows = difference[extreme]
        largest = np.abs(rows).max(axis=1, initial=0.0)
        scaled = rows / np.where(largest > 0, largest, 1.0)[:, None]
        norms[extreme] = largest * np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
    return norms


def is_angular(X: Any, metric: Any) -> bool:
    """Tell whether distances are those of `unit_rows`."""
    return isinstance(metric, str) and metric in ANGULAR and not sparse.issparse(X)


def unit_rows(X: Array, metric: str) -> Floats:
    """Return dense rows as directions: then 1 - cos = ½‖x-y‖², pair by pair and to the last bit.

    Products, which are what scikit-learn takes, differ in the last bit with the size of a block. A
    row of zeros has no direction: its last value is 1, that of all others is 0. So it is 1 away
    from them.
    """
    out = np.zeros((X.shape[0], X.shape[1] + 1))
    for block in row_blocks(X):
        rows = X[block].astype(np.float64, order="C")
        if metric == "correlation":
            if (rows.max(axis=1) == rows.min(axis=1)).any():
                raise ValueError(
                    "metric='correlation' says nothing of rows whose values are all equal: remove "
                    "them, or use metric='cosine'."
                )
            rows -= rows.mean(axis=1, keepdims=True)
        lengths = row_norms(rows)
        rows /= np.where(lengths > 0, lengths, 1.0)[:, None]
        out[block, :-1], out[block, -1] = rows, lengths == 0
    return out


def angular_pairs(A: Array, B: Array, metric: str) -> Floats:
    """Return the distance between every row of A and that of the same number in B, by direction."""
    a, b = unit_rows(A, metric), unit_rows(B, metric)
    none = (a[:, -1] > 0) | (b[:, -1] > 0)
    return np.where(none, 1.0, 0.5 * np.square(row_norms(a - b)))


def all_pairs(A: Any, B: Any, metric: Any) -> Floats:
    """Return the distances between all rows of A and of B, in double precision: O(nmd).

    Bray-Curtis is Σ|a-b| / Σ(|a|+|b|), and 0 between rows of zeros, as in scikit-learn's search; in
    `pairwise_distances` that is 0/0.
    """
    if isinstance(metric, str):
        A, B = A.astype(np.float64, copy=False), B.astype(np.float64, copy=False)
        if metric == "braycurtis":
            return np.asarray(DistanceMetric.get_metric(metric).pairwise(A, B))
    return np.asarray(pairwise_distances(A, B, metric=metric), dtype=np.float64)


def distance_blocks(
    X: Any, rows: Ints, *, metric: Any, resolution: float = 0.0
) -> Iterator[tuple[Ints, Floats]]:
    """Yield ``(some of rows, their distances to every sample)``, block by block.

    Euclidean distances come from matrix products on centred data: fast, with squares that are wrong
    by about 1e-15 of the largest squared norm. Where products would blur distances of the size
    `resolution`, differences are taken.
    """
    angular = is_angular(X, metric)
    if angular:
        X, metric, resolution = unit_rows(X, metric), "euclidean", np.sqrt(2.0 * resolution)
    measured = _Measure(X, metric, resolution)
    n = X.shape[0]
    step = max(1, _CHUNK_BYTES // (8 * max(1, n)))
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        distances = np.empty((len(part), n))
        for samples in row_blocks(X):
            distances[:, samples] = measured(X[part], samples)
        if angular:
            np.square(distances, out=distances)
            distances *= 0.5
            none = X[:, -1] > 0
            distances[none[part]], distances[:, none] = 1.0, 1.0
        yield part, distances


class _Measure:
    """Distances between rows and some of the samples, of which a block at a time is centred."""

    def __init__(self, X: Any, metric: Any, resolution: float) -> None:
        euclidean = isinstance(metric, str) and metric in EUCLIDEAN
        self._X = X
        self._name = "euclidean" if euclidean else metric
        self._norms: Floats | None = None
        if not euclidean or sparse.issparse(X):
            return
        self._center = X.mean(axis=0, dtype=np.float64)
        self._norms = np.empty(X.shape[0])
        for block in row_blocks(X):
            self._norms[block] = squared_norms(X[block] - self._center)
        if resolution and np.sqrt(self._norms.max() / _BLURRED) > resolution:
            self._name, self._norms = "minkowski", None

    def __call__(self, rows: Any, samples: slice) -> Floats:
        if self._norms is None:
            found = all_pairs(rows, self._X[samples], self._name)
            if not np.isfinite(found).all():
                raise ValueError(
                    f"metric={self._name!r} gave distances that are not finite: check it, or "
                    "rescale X."
                )
            return found
        moved = rows - self._center
        out: Floats = moved @ (self._X[samples] - self._center).T
        out *= -2.0
        out += squared_norms(moved)[:, None]
        out += self._norms[samples]
        np.maximum(out, 0.0, out=out)
        return np.sqrt(out, out=out)
