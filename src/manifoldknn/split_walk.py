"""The walk from very many labels: a sparse local part and a smooth part of low rank.

Where half of the rows are labelled, n·l weights are wanted, yet nearly all of them are alike: a
walker that reaches a label is thrown among all labels of its class, and forgets where it came
from. With R = A₀⁻¹Q (see `factor`) and A₀⁻¹ in halves (see `halves`),

    A⁻¹ = A₀⁻¹ + α R (I - αQᵀR)⁻¹ Rᵀ,

the first term holds what was not forgotten: some dozen labels per row that are not negligible,
because walkers end in the first labels that they meet. The second is a product of n×C and C×l
matrices; with the factor ½(√(d_i/d_j) + √(d_j/d_i)) of equation 4, of n×2C and 2C×l. Rows of the
sum are made a few hundred at a time, and only the heaviest entries of each are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldknn.csr import kept_entries, row_maxima
from manifoldknn.halves import Halves, can_be_halved
from manifoldknn.nearest import NearestLabeled, stacked
from manifoldknn.normalized import NormalizedGraph
from manifoldknn.precision import single_precision_serves
from manifoldknn.progress import countdown
from manifoldknn.split_weights import SplitWeights
from manifoldknn.threads import in_threads, single_threaded_products

_SHARES = 3.0  # the tolerance is shared by what is left out of H, of the series, and of its end
_COLUMNS = 256  # of H at a time
_ENTRIES = 1 << 22  # but not more entries than this, here and in the rows of weights
_ROWS = 2048  # of weights at a time
_MOST_ENTRIES = 1 << 22  # of H that are kept at least,
_PER_ROW = 64  # or so many per row,
_PER_ROW_OF_MANY = 400  # or so many where a tenth or more of the rows is labelled
_RUN = 4  # blocks that use the same memory: fresh memory costs as much as writing it twice


def split_walk(
    graph: NormalizedGraph,
    labeled: NDArray[np.intp],
    alpha: float,
    n_kept: int,
    *,
    tol: float,
    n_jobs: int | None = None,
) -> NearestLabeled | None:
    """Return the `n_kept` labelled samples with the largest w̄ for every row.

    Parameters
    ----------
    graph : NormalizedGraph
        The graph.
    labeled : ndarray of int
        Labelled samples.
    alpha : float
        Share of strength kept per step.
    n_kept : int
        How many to keep per row, fewer than ``len(labeled)``.
    tol : float
        Error allowed in a weight, relative to the largest weight of the same row.
    n_jobs : int, optional
        Threads; all cores by default. The answer does not depend on it.

    Returns
    -------
    NearestLabeled or None
        None where this is not the way: too few must-links per row, a graph that should not be
        factorised, degrees that single precision cannot hold, must-links among rows that are
        not asked for, or far more weights that count than usual. Weights of rows far from all
        labels may be too small for it; such rows have
        a tiny or infinitely negative `log_scale`.

    Notes
    -----
    Costs O(n·l) multiplications and O(n·l/C) comparisons where rows need the labels of one class
    only, C times that where they need all; everything else is sparse. Memory is O(n·(n_kept + C)),
    a block, and the entries of H that count, `most_entries` at most.
    """
    if not single_precision_serves(graph.log_degrees, tol):
        return None
    asked = np.zeros(graph.n_samples, dtype=bool)
    asked[labeled] = True
    if not asked[graph.group >= 0].all() or not can_be_halved(graph, alpha):
        return None
    # Products are small: threads of their own would not help, and would stay awake for a while.
    with single_threaded_products():
        weights = _weights(graph, labeled, alpha, tol, n_jobs)
        if weights is None:
            return None
        height = int(np.clip(_ENTRIES // weights.largest_class, 1, _ROWS))
        blocks = [slice(start, start + height) for start in range(0, graph.n_samples, height)]

        def select(rows: slice) -> NearestLabeled:
            return weights.heaviest(rows, n_kept)

        found = in_threads(select, blocks, n_jobs)
        return stacked(countdown(found, len(blocks), "blocks of rows"))


def _weights(
    graph: NormalizedGraph,
    labeled: NDArray[np.intp],
    alpha: float,
    tol: float,
    n_jobs: int | None,
) -> SplitWeights | None:
    """Return the weights of equation 4, in single precision; None if they are too many."""
    n = graph.n_samples
    half = 0.5 * graph.log_degrees
    root = np.exp(half - 0.5 * (half.max() + half.min()))
    halves = Halves(graph, alpha)
    linked = halves.linked
    group = np.unique(graph.group[linked], return_inverse=True)[1]
    n_groups = int(group.max()) + 1
    lonely = labeled[graph.group[labeled] < 0]
    # Columns: Q; sources for the sums of both terms of equation 4; labels without must-links.
    rhs = np.zeros((n, n_groups + 2 + len(lonely)))
    rhs[linked, group] = np.exp(-half[linked])
    rhs[labeled, n_groups] = root[labeled]
    rhs[labeled, n_groups + 1] = 1 / root[labeled]
    rhs[lonely, n_groups + 2 + np.arange(len(lonely))] = 1.0
    q, sources = rhs[:, :n_groups], rhs[:, n_groups : n_groups + 2]
    x = halves.solve(rhs)
    R = x[:, :n_groups]
    inner = np.eye(n_groups) - alpha * (q.T @ R)
    smooth = alpha * np.linalg.solve(inner.T, R.T).T
    sums = x[:, n_groups : n_groups + 2] + smooth @ (R.T @ sources)
    mean = 0.5 * (sums[:, 0] / root + sums[:, 1] * root) / len(labeled)
    left = [smooth * (0.5 * root)[:, None], smooth * (0.5 / root)[:, None]]
    right = [R[labeled] / root[labeled, None], R[labeled] * root[labeled, None]]
    local = _local_part(halves, root, mean, tol, n_jobs, most_entries(n, len(labeled)))
    if local is None:
        return None
    column = np.zeros(n, dtype=local.indices.dtype)
    column[labeled] = np.arange(len(labeled))
    local = sparse.csr_array(
        (local.data, column[linked][local.indices], local.indptr), shape=(n, len(labeled))
    )
    kind = np.full(n, n_groups)  # labels without must-links are a class of their own
    kind[linked] = group
    if len(lonely):
        ratio = root[:, None] / root[lonely]
        alone = x[:, n_groups + 2 :] * 0.5 * (ratio + 1 / ratio)
        local = local + _columns(alone.astype(np.float32), column[lonely], local.shape)
    return SplitWeights(
        local,
        np.hstack(left).astype(np.float32),
        np.hstack(right).T.astype(np.float32),
        kind[labeled],
    )


def _columns(values: NDArray[np.float32], columns: NDArray[Any], shape: tuple[int, int]) -> Any:
    """Return a CSR matrix that holds some whole columns."""
    n, width = values.shape
    starts = np.arange(n + 1) * width
    return sparse.csr_array((values.ravel(), np.tile(columns, n), starts), shape=shape)


@dataclass(frozen=True)
class _Scales:
    """What turns entries of A₀⁻¹ into weights w̄ between any rows and linked ones.

    Attributes
    ----------
    rows, linked : ndarray of float
        √d of the rows and of the linked ones, on one scale.
    delta : ndarray of float
        The diagonal of Δ.
    """

    rows: NDArray[np.float64]
    linked: NDArray[np.float64]
    delta: NDArray[np.float64]

    def weights(self, entries: Any) -> Any:
        """Return ½(√(d_i/d_j) + √(d_j/d_i)) x_ij / Δ_j for the entries x of a CSR matrix."""
        ratio = np.repeat(self.rows.astype(np.float32), np.diff(entries.indptr))
        ratio /= self.linked.astype(np.float32)[entries.indices]
        data = 1 / ratio
        data += ratio
        data *= entries.data
        data *= (0.5 / self.delta).astype(np.float32)[entries.indices]
        return sparse.csr_array((data, entries.indices, entries.indptr), shape=entries.shape)

    def largest(self) -> NDArray[np.float64]:
        """Return the largest of these factors for every row, apart from Δ."""
        extremes = np.array([self.linked.min(), self.linked.max()])
        ratio = self.rows[:, None] / extremes
        return (0.5 * (ratio + 1 / ratio)).max(axis=1)


def _local_part(
    halves: Halves,
    root: NDArray[np.float64],
    mean: NDArray[np.float64],
    tol: float,
    n_jobs: int | None,
    most: int,
) -> Any:
    """Return A₀⁻¹ between all rows and linked ones as weights, without negligible entries.

    What is left out of a row is, entry by entry, below `tol` times its largest weight.

    Parameters
    ----------
    halves : Halves
        A₀.
    root : ndarray of float
        √d, on any scale.
    mean : ndarray of float
        Mean weight of every row, a bound for its largest.
    tol : float
        Error allowed, relative to the largest weight of the row.
    n_jobs : int, optional
        Threads.
    most : int
        Entries of H that may be held.

    Returns
    -------
    csr_array of shape (n_samples, n_linked) or None
        Single precision; None if there are more entries.
    """
    share = tol / _SHARES
    u, linked = halves.rows, halves.linked
    scales = _Scales(root[u], root[linked], halves.delta)
    # H is nowhere less than αS_UL, its first term: the largest weight of a row is at least this.
    first = np.maximum(mean[u], row_maxima(scales.weights(halves.down), 0.0))
    hits = _hits(halves, share * first / scales.largest(), n_jobs, most)
    if hits is None:
        return None
    weight = scales.weights(hits)
    top = np.maximum(mean[u], row_maxima(weight, 0.0))
    bar = (share * top).astype(np.float32)
    hits = kept_entries(hits, weight.data >= np.repeat(bar, np.diff(hits.indptr)))
    del weight

    # A walker in row i enters L with probability hit_i; an error in the row of the label where it
    # does so is passed on to row i at most times that.
    hit = halves.hits_times(scales.linked[:, None])[:, 0] / scales.rows
    lightest = np.square(scales.linked.min())
    reached = hit > 0
    bound = np.append(
        2.0 * top[reached] / ((1.0 + np.square(scales.rows[reached]) / lightest) * hit[reached]),
        2.0 / ((1.0 + np.square(scales.linked) / lightest) * halves.delta),
    )
    series = _series(halves, scales, hits, share * float(bound.min()))
    # In both, x_ij stands for an entry of A₀⁻¹ times Δ_j: `weights` divides by it.
    lower = series + sparse.eye_array(len(linked), format="csr", dtype=np.float32)
    upper = scales.weights(_products(hits, lower, n_jobs))
    del hits, series
    within = _Scales(scales.linked, scales.linked, halves.delta)
    local = sparse.vstack([upper, within.weights(lower)], format="csr")
    del upper
    place = np.empty(len(root), dtype=np.intp)
    place[u] = np.arange(len(u))
    place[linked] = len(u) + np.arange(len(linked))
    return local[place]


def most_entries(n_samples: int, n_labeled: int) -> int:
    """Return how many entries of H are held before the walk is done otherwise.

    Parameters
    ----------
    n_samples, n_labeled : int
        Rows and labels.

    Returns
    -------
    int
        4 million, or 64 per row, or up to 400 per row the more labels there are.
    """
    per_row = np.clip(10 * _PER_ROW_OF_MANY * n_labeled / n_samples, _PER_ROW, _PER_ROW_OF_MANY)
    return max(_MOST_ENTRIES, int(per_row * n_samples))


def _hits(halves: Halves, least: NDArray[np.float64], n_jobs: int | None, most: int) -> Any:
    """Return the entries of H that are at least as large as is said for their row.

    None if they are more than `most`.
    """
    n, n_linked = halves.down.shape
    narrow = np.int32 if max(n, n_linked) < 2**31 else np.int64
    width = int(np.clip(_ENTRIES // n, 32, _COLUMNS))
    factor = halves.factor.in_precision(np.dtype(np.float32))
    down = halves.down.astype(np.float32).tocsc()
    bar = np.maximum(least, np.finfo(np.float32).tiny).astype(np.float32)[:, None]

    def solve(starts: Sequence[int]) -> tuple[NDArray[Any], ...]:
        room, above = np.empty((n, width), dtype=np.float32), np.empty((n, width), dtype=bool)
        found = []
        for start in starts:
            x = room[:, : min(width, n_linked - start)]
            x[:] = 0.0
            ends = down.indptr[start : start + width + 1]
            entries = slice(ends[0], ends[-1])
            column = np.repeat(np.arange(x.shape[1]), np.diff(ends))
            x[down.indices[entries], column] = down.data[entries]
            factor.solve_sorted(x)
            at = np.flatnonzero(np.greater_equal(x, bar, out=above[:, : x.shape[1]]))
            row, column = np.divmod(at, x.shape[1])
            values = x[row, column]
            found.append((row.astype(narrow), (column + start).astype(narrow), values))
        return _concatenated(found)

    runs = _runs(range(0, n_linked, width))
    parts, count = [], 0
    for part in in_threads(solve, runs, n_jobs):
        parts.append(part)
        count += len(part[0])
        if count > most:
            return None
    row, column, value = _concatenated(parts)
    del parts, part
    return sparse.coo_array((value, (row, column)), shape=(n, n_linked)).tocsr()


def _runs(items: Sequence[Any]) -> list[Sequence[Any]]:
    return [items[start : start + _RUN] for start in range(0, len(items), _RUN)]


def _concatenated(parts: Iterable[tuple[NDArray[Any], ...]]) -> tuple[NDArray[Any], ...]:
    return tuple(map(np.concatenate, zip(*parts)))


def _series(halves: Halves, scales: _Scales, hits: Any, least: float) -> Any:
    """Return Δ⁻¹N + (Δ⁻¹N)² + ..., without entries that are negligible in all rows.

    An entry x_kj counts as the share √(d_j/d_k) x_kj of walkers in k that go on to j.
    """

    def without_small(matrix: Any) -> Any:
        matrix = sparse.csr_array(matrix)
        share = matrix.data * scales.linked[matrix.indices]
        return kept_entries(
            matrix, share >= least * np.repeat(scales.linked, np.diff(matrix.indptr))
        )

    step = sparse.csr_array(halves.across + halves.down.T.tocsr() @ hits)
    step.data = step.data / np.repeat(halves.delta, np.diff(step.indptr))
    step = without_small(step).astype(np.float32)
    total, power = step, step
    going_on = np.ones(len(scales.linked))
    first = None
    while True:
        going_on = halves.n_times((scales.linked * going_on)[:, None])[:, 0]
        going_on /= halves.delta * scales.linked
        first = going_on.max() if first is None else first
        if going_on.max() * first / (1.0 - first) <= least:  # of all terms not yet added
            return total
        power = without_small(power @ step)
        total = total + power


def _products(a: Any, b: Any, n_jobs: int | None) -> Any:
    """Return a @ b, by threads."""
    bounds = np.linspace(0, a.shape[0], 9).astype(int)
    parts = [a[start:stop] for start, stop in pairwise(bounds)]
    return sparse.vstack(list(in_threads(lambda part: part @ b, parts, n_jobs)), format="csr")
