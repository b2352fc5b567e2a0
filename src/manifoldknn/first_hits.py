"""Which labels walkers meet first, where only few labels count for a row.

H = A_UU⁻¹ αS_UL (see `halves`) is solved for all labels at once with a sparse right-hand side,

    A_UU = LDLᵀ,   Y = L⁻¹ αS_UL,   H = L⁻ᵀ D⁻¹ Y,

and entries that are negligible in their row are left out on the way. Rows are scaled such that
row i of H holds the probabilities with which a walker from i that meets a label at all meets this
one first: then all numbers are between 0 and 1, however far labels are and however far out a row.

In this scale every row of Lᵀ mixes rows that were solved before with weights that sum to less than
1. What was left out of those is mixed as well, so errors hardly grow, and two columns that are
solved along with H bound them in every row.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from manifoldknn.csr import (
    assembled,
    kept_entries,
    row_maxima,
    row_range,
    without_small_entries,
)
from manifoldknn.progress import countdown
from manifoldknn.sorted_factor import SortedFactor
from manifoldknn.threads import in_threads

_FORWARD = 0.01  # what is left out of Y, relative to what may be left out of H,
INNER = 0.03  # and of rows of H that others are made from
_PANEL = 32  # rows of several heights that are solved together, by a dense inverse
_CHUNK = 8192  # rows of one height at a time
_ALLOWED = 2.0  # error of an entry, relative to what may be left out
_ATTEMPTS = 3


@dataclass(frozen=True)
class Negligible:
    """What may be left out of a row of H.

    Attributes
    ----------
    share : float
        Weights below this share of the row's largest are negligible.
    floor : ndarray of shape (n,)
        A weight that the largest of the row is known to reach.
    least, most : ndarray of shape (n,)
        Factors by which entries become weights lie between these.
    """

    share: float
    floor: NDArray[np.float64]
    least: NDArray[np.float64]
    most: NDArray[np.float64]

    def below(self, rows: slice, largest: NDArray[Any]) -> NDArray[np.float64]:
        """Return below what an entry is negligible, given an entry that each row has."""
        known = np.maximum(self.floor[rows], self.least[rows] * largest)
        out: NDArray[np.float64] = self.share * known / self.most[rows]
        return out


@dataclass(frozen=True)
class HitProblem:
    """What H is made from, in the scale of probabilities.

    Parameters
    ----------
    factor : SortedFactor
        Of A_UU.
    down : csr_array of shape (n, n_labels)
        αS_UL times the scale of the labels, its rows in the order of the factor.
    log_scale : ndarray of shape (n,)
        Logarithms of what rows are divided by. For row sums of at most 1, a scale s with
        A_UU s ≥ `down` 1 ≥ 0. Rows where it is -inf are left alone, and empty.

    Attributes
    ----------
    scaled : SortedFactor
        The factor in single precision, for rows so divided.
    """

    factor: SortedFactor
    down: Any
    log_scale: NDArray[np.float64]
    scaled: SortedFactor

    @classmethod
    def of(cls, factor: SortedFactor, down: Any, log_scale: NDArray[np.float64]) -> HitProblem:
        """Return the problem in single precision."""
        inverse = np.exp(-np.where(np.isneginf(log_scale), np.inf, log_scale))
        data = down.data * np.repeat(inverse, np.diff(down.indptr))
        down = assembled(
            data.astype(np.float32), down.indices.astype(np.int32, copy=False),
            down.indptr.astype(np.int32, copy=False), down.shape,
        )  # fmt: skip
        return cls(factor, down, log_scale, factor.rescaled(log_scale, np.dtype(np.float32)))


def first_hits(
    problem: HitProblem, negligible: Negligible, *, most: int, n_jobs: int | None = None
) -> tuple[Any, NDArray[np.intp]] | None:
    """Return the entries of H that count.

    Parameters
    ----------
    problem : HitProblem
        The factor and the right-hand side.
    negligible : Negligible
        What may be left out.
    most : int
        Entries that may be held.
    n_jobs : int, optional
        Threads. The answer does not depend on it.

    Returns
    -------
    hits : csr_array of shape (n, n_labels), float32
        Entries, each wrong by less than twice what is negligible in its row; what is missing is
        less than three times that.
    rows : ndarray of int
        Which row of the factor each of them is.
        None instead of both if entries are too many or that accuracy is not reached.

    Notes
    -----
    Costs O(entries of the factor · entries per row of H) and memory for about twice the entries
    that are returned.
    """
    solver = _Solver(problem, n_jobs)
    finer = 1.0
    for _ in range(_ATTEMPTS):
        found = solver.attempt(negligible, finer, most)
        if found is None:
            return None
        hits, order, excess = found
        if excess <= _ALLOWED:
            return hits, order
        if not np.isfinite(excess):
            return None
        finer *= 0.75 * _ALLOWED / excess  # the bound is as good as proportional
    return None


class _Solver:
    """Solves panels of rows, one after the other."""

    def __init__(self, problem: HitProblem, n_jobs: int | None) -> None:
        self.factor, self.down, self.n_jobs = problem.factor, problem.down, n_jobs
        self.log_scale = problem.log_scale
        self.n, self.n_labels = problem.down.shape
        self.diagonal = problem.factor.diagonal[:, 0]
        # None of their entries is positive.
        self.lower, self.upper = problem.scaled.lower, problem.scaled.upper
        self.panels = _panels(problem.factor.bounds)

    def attempt(
        self, negligible: Negligible, finer: float, most: int
    ) -> tuple[Any, NDArray[np.intp], float] | None:
        """Return hits, their rows, and a bound of the error, relative to what is negligible."""
        forward = self._forward(negligible, finer * _FORWARD, most)
        if forward is None:
            return None
        y, left_out = forward
        backward = self._backward(y, negligible, finer * INNER, most)
        del forward, y
        if backward is None:
            return None
        hits, order, error, below = backward
        error += self._error_of_forward(left_out)
        seen = ~(below <= 0)
        excess = float(np.max(error[seen] / below[seen], initial=0.0))
        return without_small_entries(hits, below[order]), order, excess

    def _forward(
        self, negligible: Negligible, share: float, most: int
    ) -> tuple[Any, NDArray[np.float64]] | None:
        """Return Y, and what was left out of each of its rows."""
        found = _Rows(self.n, self.n_labels, most)
        left_out = np.zeros(self.n)

        def solve(rows: slice, inverse: Any, known: Any) -> Any:
            part = row_range(self.down, rows)
            if known.shape[0]:
                before = row_range(self.lower, rows)
                if inverse is not None:
                    before = kept_entries(before, before.indices < rows.start)
                part = part - _renumbered(before, before.indices, known.shape[0]) @ known
            if inverse is not None:
                part = inverse @ part
            pivots = self.diagonal[rows]
            below = share * pivots * negligible.below(rows, row_maxima(part, 0.0) / pivots)
            left_out[rows] = below
            return without_small_entries(part, below)

        for panel in countdown(iter(self.panels), len(self.panels), "groups of rows, forward"):
            if not found.extend(self._solved(panel, solve, self.lower, found.matrix())):
                return None
        return found.matrix(), left_out

    def _backward(
        self, y: Any, negligible: Negligible, share: float, most: int
    ) -> tuple[Any, NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]] | None:
        """Return H, which rows it has, a bound of its error, and below what it is negligible."""
        found = _Rows(self.n, self.n_labels, most)
        slot = np.zeros(self.n, dtype=np.int32)
        carried, allowed = np.zeros(self.n), np.zeros(self.n)

        def solve(rows: slice, inverse: Any, known: Any) -> Any:
            part = row_range(y, rows)
            scaled = part.data / np.repeat(self.diagonal[rows], np.diff(part.indptr))
            part = assembled(scaled.astype(np.float32), part.indices, part.indptr, part.shape)
            passed_on = np.zeros(rows.stop - rows.start)
            if known.shape[0]:
                later = row_range(self.upper, rows)
                if inverse is not None:
                    later = kept_entries(later, later.indices >= rows.stop)
                passed_on = -(later @ carried)
                part = part - _renumbered(later, slot[later.indices], known.shape[0]) @ known
            if inverse is not None:
                part, passed_on = inverse @ part, inverse @ passed_on
            below = negligible.below(rows, row_maxima(part, 0.0))
            allowed[rows], carried[rows] = below, passed_on
            if rows.stop <= self.factor.bounds[1]:  # nobody is made from rows of the first height
                return without_small_entries(part, below)
            carried[rows] += share * below
            return without_small_entries(part, share * below)

        order = []
        panels = self.panels[::-1]
        for panel in countdown(iter(panels), len(panels), "groups of rows, backward"):
            start = found.n_rows
            if not found.extend(self._solved(panel, solve, self.upper, found.matrix())):
                return None
            slot[panel] = start + np.arange(panel.stop - panel.start)
            order.append(np.arange(panel.start, panel.stop))
        return found.matrix(), np.concatenate(order), carried, allowed

    def _solved(self, panel: slice, solve: Any, triangle: Any, known: Any) -> Any:
        """Yield the rows of a panel, solved, given all that it depends on."""
        if panel.stop - panel.start <= _PANEL:
            yield solve(panel, _inverse(triangle, panel), known)
            return
        chunks = [
            slice(start, min(start + _CHUNK, panel.stop))
            for start in range(panel.start, panel.stop, _CHUNK)
        ]
        yield from in_threads(lambda rows: solve(rows, None, known), chunks, self.n_jobs)

    def _error_of_forward(self, left_out: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the error of H that comes of what was left out of Y: A_UU⁻¹ times that."""
        scale = np.exp(self.log_scale)
        solved = self.factor.solve_sorted((left_out * scale)[:, None])[:, 0]
        return np.divide(solved, scale, out=np.zeros(self.n), where=scale > 0)


class _Rows:
    """A CSR matrix that is made row after row, in memory that is only taken as it is needed."""

    def __init__(self, most_rows: int, n_columns: int, most: int) -> None:
        self.n_rows, self.n_columns = 0, n_columns
        kind = np.int32 if most < 2**31 else np.int64
        self._indptr = np.zeros(most_rows + 1, dtype=kind)
        # Untouched pages of these take no memory.
        self._indices, self._data = np.empty(most, dtype=kind), np.empty(most, dtype=np.float32)

    def extend(self, parts: Any) -> bool:
        """Add rows; False if there is no room for them."""
        for part in parts:
            start = int(self._indptr[self.n_rows])
            stop = start + part.nnz
            if stop > len(self._data):
                return False
            self._indices[start:stop], self._data[start:stop] = part.indices, part.data
            ends = self._indptr[self.n_rows + 1 : self.n_rows + 1 + part.shape[0]]
            ends[:] = start + part.indptr[1:]
            self.n_rows += part.shape[0]
        return True

    def matrix(self) -> Any:
        """Return the rows there are; they share this memory."""
        stop = self._indptr[self.n_rows]
        return assembled(
            self._data[:stop], self._indices[:stop], self._indptr[: self.n_rows + 1],
            (self.n_rows, self.n_columns),
        )  # fmt: skip


def _panels(bounds: NDArray[np.intp]) -> list[slice]:
    """Return runs of heights with few rows, and single heights with many."""
    cuts = [int(bounds[0])]
    for start, stop in pairwise(bounds):
        if start > cuts[-1] and stop - cuts[-1] > _PANEL:
            cuts.append(int(start))
    cuts.append(int(bounds[-1]))
    return [slice(a, b) for a, b in pairwise(cuts)]


def _inverse(triangle: Any, panel: slice) -> Any:
    """Return (I + T)⁻¹ for the square of a strict triangle, of either kind, that is in a panel."""
    square = row_range(triangle, panel)[:, panel].toarray().astype(np.float64)
    is_lower = bool(np.tril(square).any())
    unit = np.eye(len(square))
    inverse = linalg.solve_triangular(unit + square, unit, lower=is_lower, unit_diagonal=True)
    return sparse.csr_array(inverse.astype(np.float32))


def _renumbered(matrix: Any, columns: NDArray[Any], n_columns: int) -> Any:
    """Return a matrix whose entries stand in other columns."""
    return assembled(matrix.data, columns, matrix.indptr, (matrix.shape[0], n_columns))
