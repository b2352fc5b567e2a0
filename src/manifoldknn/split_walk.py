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

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldknn.csr import (
    assembled,
    kept_entries,
    row_maxima,
    row_range,
    without_small_entries,
)
from manifoldknn.far_rows import arrivals_of_far_rows
from manifoldknn.first_hits import HitProblem, Negligible, first_hits
from manifoldknn.halves import Halves, can_be_halved
from manifoldknn.hit_columns import columns_are_cheaper, hit_columns
from manifoldknn.nearest import NearestLabeled, stacked
from manifoldknn.normalized import NormalizedGraph
from manifoldknn.precision import single_precision_serves
from manifoldknn.progress import countdown
from manifoldknn.split_weights import SplitWeights
from manifoldknn.threads import in_threads, single_threaded_products

# The tolerance is shared by what is left out of H and twice its errors, by what is left out of the
# series, by its end, by what is left out of their product, and by smooth weights not looked at.
_SHARES = 7.0
_ROWS = 2048  # of weights at a time
_PARTS = 32  # of rows whose weights are multiplied at a time
_TERMS = 4  # of the series that have room for what is left out of each
_SERIES_ACCURACY = 1e-2  # of smooth weights, relative to the tolerance
_LOG_RANGE = 600.0  # of degrees: double precision holds products of their roots,
_LEAST_PROBABILITY = 1e-130  # and with them this: rows whose walkers meet labels less often are far
_MOST_ENTRIES = 1 << 22  # of H that may always be held,
_LEAST_PER_ROW, _MOST_PER_ROW = 64, 256  # or so many per row, the latter
_MANY = 0.01  # where this share of the rows or more is labelled,
_MOST_OF_ALL = 0.25  # but not more than this share of all: then it is not sparse


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
        not asked for, or far more weights that count than usual.

    Notes
    -----
    Costs O(n) for every label that counts for a row and entry per row of the factor, however many
    labels there are; where classes are small, O(n·l/C) comparisons. Memory is O(n·(n_kept + C)), a
    block, the factor, and the entries of H that count, `most_entries` at most.
    """
    if not _single_precision_serves(graph.log_degrees, labeled, tol):
        return None
    asked = np.zeros(graph.n_samples, dtype=bool)
    asked[labeled] = True
    if not asked[graph.group >= 0].all() or not can_be_halved(graph, alpha):
        return None
    # Products are small: threads of their own would not help, and would stay awake for a while.
    with single_threaded_products():
        weights = _weights(graph, labeled, alpha, n_kept, tol, n_jobs)
        if weights is None:
            return None
        blocks = weights.blocks(_ROWS)
        found = in_threads(weights.heaviest, blocks, n_jobs)
        return stacked(countdown(found, len(blocks), "blocks of rows"))


def _single_precision_serves(
    log_degrees: NDArray[np.float64], labeled: NDArray[np.intp], tol: float
) -> bool:
    """Tell whether single precision holds the weights, and double precision all scales of rows.

    Rows of small degree, far from all others, do no harm: see `_weights`.
    """
    relevant = np.append(log_degrees[labeled], log_degrees.max())
    return single_precision_serves(relevant, tol) and bool(np.ptp(log_degrees) < _LOG_RANGE)


def _weights(
    graph: NormalizedGraph,
    labeled: NDArray[np.intp],
    alpha: float,
    n_kept: int,
    tol: float,
    n_jobs: int | None,
) -> SplitWeights | None:
    """Return the weights of equation 4, in single precision; None if they are too many.

    Weights of a row are divided by the probability with which a walker from it meets a label.
    """
    n = graph.n_samples
    half = 0.5 * graph.log_degrees
    offset = 0.5 * (half[labeled].max() + half[labeled].min())
    root = np.exp(half - offset)
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
    # The smooth part amplifies errors as often as walkers are thrown, 1 / (1 - α) times.
    x = halves.solve(rhs, accuracy=_SERIES_ACCURACY * (1.0 - alpha) * tol)
    R = x[:, :n_groups].copy()
    inner = np.eye(n_groups) - alpha * (q.T @ R)
    smooth = alpha * np.linalg.solve(inner.T, R.T).T
    sums = x[:, n_groups : n_groups + 2] + smooth @ (R.T @ sources)
    # √d times the probability to meet a label: single precision holds what is divided by it.
    scale = root.copy()
    scale[halves.rows] = halves.hits_times(root[linked, None])[:, 0]
    scale[halves.rows] += x[halves.rows, n_groups + 2 :] @ root[lonely]
    far = scale < _LEAST_PROBABILITY * root
    with np.errstate(divide="ignore"):
        log_scale = np.log(scale)
    found = arrivals_of_far_rows(graph.log_s, far, log_scale, alpha)
    if found is None:
        return None
    arrivals, log_scale = found
    scale = np.where(far, 0.0, scale)
    for part in (x, smooth, sums):
        part[far] = 0.0
        part[~far] /= scale[~far, None]
        part[far] = arrivals @ part
    square = np.square(root)
    mean = 0.5 * (sums[:, 0] + sums[:, 1] * square) / len(labeled)
    left = [smooth * (0.5 * square)[:, None], 0.5 * smooth]
    right = [R[labeled] / root[labeled, None], R[labeled] * root[labeled, None]]
    local = _local_part(
        halves, root, scale, arrivals, mean, tol / _SHARES, n_jobs, most_entries(n, len(labeled))
    )
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
        alone = x[:, n_groups + 2 :] * 0.5 * (square[:, None] / root[lonely] + root[lonely])
        local = local + _columns(alone.astype(np.float32), column[lonely], local.shape)
    return SplitWeights(
        local,
        np.hstack(left).astype(np.float32),
        np.hstack(right).T.astype(np.float32),
        kind[labeled],
        n_kept,
        log_scale=log_scale - half + offset,
        slack=tol / _SHARES,
    )


def _columns(values: NDArray[np.float32], columns: NDArray[Any], shape: tuple[int, int]) -> Any:
    """Return a CSR matrix that holds some whole columns."""
    n, width = values.shape
    starts = np.arange(n + 1) * width
    return sparse.csr_array((values.ravel(), np.tile(columns, n), starts), shape=shape)


@dataclass(frozen=True)
class _Scales:
    """What turns steps between rows and linked ones into weights w̄.

    Attributes
    ----------
    rows, linked : ndarray of float
        d of the rows and of the linked ones, on one scale.
    delta : ndarray of float
        The diagonal of Δ.
    """

    rows: NDArray[np.float64]
    linked: NDArray[np.float64]
    delta: NDArray[np.float64]

    def weights(self, entries: Any) -> Any:
        """Return ½(1 + d_i/d_j) p_ij / Δ_j for the entries p of a CSR matrix."""
        data = np.repeat(self.rows.astype(np.float32), np.diff(entries.indptr))
        data /= self.linked.astype(np.float32)[entries.indices]
        data += 1
        data *= entries.data
        data *= (0.5 / self.delta).astype(np.float32)[entries.indices]
        return assembled(data, entries.indices, entries.indptr, entries.shape)

    def extremes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return bounds of these factors for every row."""
        least = 0.5 * (1 + self.rows / self.linked.max()) / self.delta.max()
        most = 0.5 * (1 + self.rows / self.linked.min()) / self.delta.min()
        return least, most


def _local_part(
    halves: Halves,
    root: NDArray[np.float64],
    scale: NDArray[np.float64],
    arrivals: Any,
    mean: NDArray[np.float64],
    share: float,
    n_jobs: int | None,
    most: int,
) -> Any:
    """Return A₀⁻¹ between all rows and linked ones as weights, without negligible entries.

    What is left out of a row is, entry by entry, below a few `share` of its largest weight.

    Parameters
    ----------
    halves : Halves
        A₀.
    root : ndarray of float
        √d, on any scale.
    scale : ndarray of float
        What rows are divided by, times √d; 0 in far rows.
    arrivals : csr_array of shape (n_far, n_samples)
        Where walkers from far rows arrive first.
    mean : ndarray of float
        Mean weight of every row, a bound for its largest.
    share : float
        Error allowed at each step, relative to the largest weight of the row.
    n_jobs : int, optional
        Threads.
    most : int
        Entries that may be held.

    Returns
    -------
    csr_array of shape (n_samples, n_linked) or None
        Single precision; None if there are more entries.
    """
    u, linked = halves.rows, halves.linked
    degrees, linked_degrees = np.square(root), np.square(root[linked])
    scales = _Scales(degrees[u], linked_degrees, halves.delta)
    down = assembled(
        halves.down.data * root[linked][halves.down.indices], halves.down.indices,
        halves.down.indptr, halves.down.shape,
    )  # fmt: skip
    with np.errstate(divide="ignore"):
        problem = HitProblem.of(halves.factor, down, np.log(scale[u]))
    # Errors in a row of H are multiplied by I + series, and may add up in the column of a label.
    of_hits = share / halves.largest_column_sum()
    negligible = Negligible(of_hits, mean[u], *scales.extremes())
    solve = hit_columns if columns_are_cheaper(problem, negligible) else first_hits
    found = solve(problem, negligible, most=most, n_jobs=n_jobs)
    del problem
    if found is None:
        return None
    hits, order = found
    u = u[order]
    scales = _Scales(degrees[u], linked_degrees, halves.delta)
    top = np.maximum(mean[u], row_maxima(scales.weights(hits), 0.0))

    # Walkers of row i meet labels with probability 1 at most, in the scale of the row; an error in
    # the row of the label where they do so is passed on to row i at most times that.
    lightest = linked_degrees.min()
    bound = np.append(
        2.0 * top[top > 0] / (1.0 + degrees[u][top > 0] / lightest),
        2.0 / ((1.0 + linked_degrees / lightest) * halves.delta),
    )
    into = down.T.tocsr()[:, order]  # αP from linked rows, in the scale of hits
    into.data = into.data * scale[u][into.indices]
    into.data /= np.repeat(linked_degrees, np.diff(into.indptr))
    series = _series(halves, root, into.astype(np.float32), hits, share * float(bound.min()))
    # In both, p_ij stands for an entry of A₀⁻¹ times Δ_j: `weights` divides by it.
    lower = series + sparse.eye_array(len(linked), format="csr", dtype=np.float32)
    below = negligible.below(slice(None), row_maxima(hits, 0.0)[np.argsort(order)])[order]
    steps = sparse.vstack([_products(hits, lower, below, n_jobs), lower], format="csr")
    del hits, series
    place = np.empty(len(root), dtype=np.intp)
    place[u] = np.arange(len(u))
    place[linked] = len(u) + np.arange(len(linked))
    sorted_degrees = degrees[np.concatenate([u, linked])]
    if arrivals.shape[0]:
        far = np.flatnonzero(scale == 0)
        from_far = arrivals.copy()
        from_far.indices = place[arrivals.indices].astype(from_far.indices.dtype)
        steps = sparse.vstack([steps, from_far.astype(np.float32) @ steps], format="csr")
        place[far] = len(root) + np.arange(len(far))
        sorted_degrees = np.append(sorted_degrees, degrees[far])
    return _Scales(sorted_degrees, linked_degrees, halves.delta).weights(steps)[place]


def most_entries(n_samples: int, n_labeled: int) -> int:
    """Return how many entries of H are held before the walk is done otherwise.

    Parameters
    ----------
    n_samples, n_labeled : int
        Rows and labels.

    Returns
    -------
    int
        64 per row, up to 256 the more labels there are, but at most a quarter of all; 4 million
        in any case.
    """
    share = n_labeled / n_samples
    per_row = np.clip(_MOST_PER_ROW * share / _MANY, _LEAST_PER_ROW, _MOST_PER_ROW)
    return max(_MOST_ENTRIES, int(n_samples * min(per_row, _MOST_OF_ALL * n_labeled)))


def _series(halves: Halves, root: NDArray[np.float64], into: Any, hits: Any, least: float) -> Any:
    """Return Δ⁻¹N + (Δ⁻¹N)² + ... as shares of walkers, without those negligible in all rows."""

    def without_small(matrix: Any) -> Any:
        return kept_entries(matrix, matrix.data >= np.float32(least / _TERMS))

    of_linked = root[halves.linked]
    across = halves.across.copy()
    across.data = across.data * of_linked[across.indices]
    across.data /= np.repeat(of_linked, np.diff(across.indptr))
    step = sparse.csr_array(across.astype(np.float32) + into @ hits)
    step.data /= np.repeat(halves.delta, np.diff(step.indptr)).astype(np.float32)
    step = without_small(step)
    total, power = step, step
    going_on = np.ones(len(of_linked))
    first = None
    while True:
        going_on = halves.n_times((of_linked * going_on)[:, None])[:, 0]
        going_on /= halves.delta * of_linked
        first = going_on.max() if first is None else first
        if going_on.max() * first / (1.0 - first) <= least:  # of all terms not yet added
            return total
        power = without_small(power @ step)
        total = total + power


def _products(a: Any, b: Any, below: NDArray[np.float64], n_jobs: int | None) -> Any:
    """Return a @ b without entries below a number per row, by threads."""
    bounds = np.linspace(0, a.shape[0], _PARTS + 1).astype(int)

    def product(rows: slice) -> Any:
        return without_small_entries(row_range(a, rows) @ b, below[rows])

    parts = [slice(start, stop) for start, stop in pairwise(bounds)]
    return sparse.vstack(list(in_threads(product, parts, n_jobs)), format="csr")
