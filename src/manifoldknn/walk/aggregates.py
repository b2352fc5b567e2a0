"""Rows that hang together, and what conjugate gradients gain from knowing them.

Near α = 1 a walker travels far, and each iteration carries news over one edge only. So rows are put
together with the neighbour they hang on most, these groups again, and so on. With P_m the map
from the groups of level m to the rows below, each row weighing √d, the preconditioner

    M⁻¹ = Σ_m P_m D_m⁻¹ P_mᵀ + P A_c⁻¹ Pᵀ

adds what every level says of a residual; D_m is the diagonal of P_mᵀ A P_m, and the smallest level
is solved exactly. √d is the vector that A nearly takes to 0, and all levels hold it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from manifoldknn.base import Floats
from manifoldknn.base.csr import kept_entries, narrowest
from manifoldknn.graph.together import ALONE, Alone
from manifoldknn.walk.blockcg import column_dots

_PASSES = 2  # of pairing make one level
_SWEEPS = 3  # over rows that are not paired yet
_COARSEST = 1000  # groups that are solved exactly,
_TOO_MANY = 4  # and up to so many times more, since that takes a dense inverse
_SLOWEST = 0.8  # share of groups that are left after a level, at most
_MOST_LEVELS = 12

Levels = tuple[NDArray[np.intp], ...]


def aggregates(log_weights: Any, *, coarsest: int | None = None) -> Levels:
    """Return which rows belong together, level by level.

    Parameters
    ----------
    log_weights : csr_array
        Logarithms of the weights of a symmetric graph; larger ones hold rows together.
    coarsest : int, optional
        How few groups are few enough; a thousand by default.

    Returns
    -------
    tuple of ndarray
        The group of every row, then the group of every group, and so on until about
        `coarsest` are left; nothing where that many islands remain. Labels have no part in it.

    Notes
    -----
    O(edges) per level, and levels shrink by a factor of about five.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from manifoldknn.walk.aggregates import paired
    >>> chain = sparse.csr_array(np.diag([3.0, 1.0, 2.0], 1) + np.diag([3.0, 1.0, 2.0], -1))
    >>> paired(chain)
    array([0, 0, 1, 1])
    """
    weights, coarsest = log_weights.copy(), coarsest or _COARSEST
    # Only their order matters, but sums of them make the weights of the next level.
    weights.data = np.exp(np.maximum(weights.data - weights.data.max(initial=-np.inf), -600.0))
    levels: list[NDArray[np.intp]] = []
    while weights.shape[0] > coarsest and len(levels) < _MOST_LEVELS:
        group = np.arange(weights.shape[0])
        for _ in range(_PASSES):
            of_pairs = paired(weights)
            group = of_pairs[group]
            weights = contracted(weights, of_pairs)
        if weights.shape[0] > _SLOWEST * len(group):
            break
        levels.append(group)
    n_left = int(levels[-1].max()) + 1 if levels else log_weights.shape[0]
    return (
        tuple(levels) if n_left <= _TOO_MANY * coarsest else ()
    )  # many islands: no level holds them


def grouped(log_weights: Any) -> list[NDArray[np.intp]]:
    """Return a group for every row, of fewer and fewer groups down to about a thousand.

    The first are the rows themselves, and the only ones if rows are few or all islands. O(edges).
    """
    groups = [np.arange(log_weights.shape[0])]
    for level in aggregates(log_weights):
        groups.append(level[groups[-1]])
    return groups


def paired(weights: Any) -> NDArray[np.intp]:
    """Return a group for every row: pairs that each hang most on the other, and who joins them.

    Parameters
    ----------
    weights : csr_array
        Positive, symmetric.

    Returns
    -------
    ndarray of int
        Numbers from 0. A row without a partner joins the pair of its heaviest neighbour.
    """
    n = weights.shape[0]
    everyone = np.arange(n)
    row = np.repeat(everyone.astype(weights.indices.dtype), np.diff(weights.indptr))
    favourite = _favourites(row, weights.indices, weights.data, n)
    mate = np.full(n, -1, dtype=np.intp)
    ends, other, weight = row, weights.indices, weights.data
    wish = favourite
    for sweep in range(_SWEEPS):
        if sweep:
            alone = mate < 0
            free = alone[ends] & alone[other]
            ends, other, weight = ends[free], other[free], weight[free]
            wish = _favourites(ends, other, weight, n)
        asking = np.flatnonzero((mate < 0) & (wish >= 0))
        happy = asking[wish[wish[asking]] == asking]
        mate[happy] = wish[happy]
    head = np.where(mate >= 0, np.minimum(everyone, mate), everyone)
    joins = (mate < 0) & (favourite >= 0)
    joins[joins] = mate[favourite[joins]] >= 0  # else it stays alone for now
    head[joins] = head[favourite[joins]]
    numbers: NDArray[np.intp] = np.unique(head, return_inverse=True)[1].astype(np.intp)
    return numbers


def _favourites(
    row: NDArray[np.intp], other: NDArray[Any], weight: NDArray[np.float64], n: int
) -> NDArray[np.intp]:
    """Return the neighbour at the heaviest edge of every row, the last of equal ones; or -1."""
    wish = np.full(n, -1, dtype=np.intp)
    if len(row):
        starts = np.flatnonzero(row[1:] != row[:-1]) + 1
        starts = np.concatenate([[0], starts])
        best = np.zeros(n, dtype=weight.dtype)
        best[row[starts]] = np.maximum.reduceat(weight, starts)
        top = np.flatnonzero(weight == best[row])
        wish[row[top]] = other[top]
    return wish


def contracted(weights: Any, group: NDArray[np.intp]) -> Any:
    """Return the graph of groups: edges between two of them added up, those within one left out."""
    member = _in_groups(np.ones(len(group), dtype=weights.dtype), group)
    out = sparse.csr_array(member.T @ weights @ member)
    m = np.arange(out.shape[0], dtype=out.indices.dtype)
    return kept_entries(out, out.indices != np.repeat(m, np.diff(out.indptr)))


class Preconditioner:
    """About A⁻¹, in single precision, for A = I - αS with must-links.

    Parameters
    ----------
    off : csr_array
        -αS without must-links.
    links : csr_array of shape (n_rows, n_classes)
        D^-½Y of must-links: S lacks its product with its transpose, less the diagonal.
    half_log_degrees : ndarray of shape (n_rows,)
        log √d.
    levels : tuple of ndarray
        Groups of these rows, from `aggregates` or `restricted`.
    alpha : float
        Share of strength kept per step.
    together : Alone, optional
        Who shares the rows: groups are of one machine, and the smallest level is of all.

    Notes
    -----
    Costs about a product with S per use, and two per level to make.
    """

    def __init__(
        self,
        off: Any,
        links: Any,
        half_log_degrees: NDArray[np.float64],
        levels: Levels,
        alpha: float,
        together: Alone = ALONE,
    ) -> None:
        half, self._together = half_log_degrees, together
        n = off.shape[0]
        weight, place = np.ones(n), np.arange(n)  # of a row in its group of the last level
        own, across = (
            (off, off) if together.size == 1 else (off[:, :n], sparse.coo_array(off[:, n:]))
        )
        # A is never written out: it is this diagonal, this matrix, and must-links.
        plain, matrix = 1.0 + alpha * _row_squares(links), own
        self._gathers: list[Any] = []
        self._sums: list[Any] = []  # [P_m D_m⁻¹]: what groups say, and what their rows do
        self._diagonals: list[NDArray[np.float32]] = []  # D_m⁻¹
        for group in levels:
            diagonal = plain + matrix.diagonal() - alpha * _row_squares(links)
            m = int(group.max(initial=-1)) + 1
            top = np.full(m, -np.inf)
            np.maximum.at(top, group, half)
            root = np.exp(half - top[group])  # on a scale of its group's own: none vanishes
            square = np.bincount(group, np.square(root), minlength=m)
            root /= np.sqrt(square)[group]
            weight, place = weight * root[place], group[place]
            spread = _in_groups(root, group)
            gather = sparse.csr_array(spread.T)
            plain = np.bincount(group, np.square(root) * plain, minlength=m).astype(np.float64)
            matrix = sparse.csr_array(gather @ matrix @ spread)
            links, half = sparse.csr_array(gather @ links), top + 0.5 * np.log(square)
            self._gathers.append(gather.astype(np.float32))
            self._sums.append(_beside(spread, 1.0 / diagonal))
            self._diagonals.append((1.0 / diagonal).astype(np.float32)[:, None])
        if together.size == 1:
            self._mine, smallest = slice(None), (matrix - alpha * (links @ links.T)).toarray()
            smallest[np.diag_indices_from(smallest)] += plain
        else:
            sizes = np.zeros(together.size, dtype=np.intp)
            sizes[together.rank] = len(plain)
            ends = np.cumsum(together.sum(sizes))
            self._mine = slice(ends[together.rank] - len(plain), ends[together.rank])
            of_groups = np.zeros((ends[-1], links.shape[1]))
            of_groups[self._mine] = links.toarray()
            smallest = np.zeros((ends[-1], ends[-1]))
            smallest[self._mine, self._mine] = matrix.toarray() + np.diag(plain)
            place = place + self._mine.start
            theirs, weights = together.halo(place)[n:], together.halo(weight)[n:]
            values = across.data * weight[across.row] * weights[across.col]
            np.add.at(smallest, (place[across.row], theirs[across.col]), values)
            of_groups = together.sum(of_groups)
            smallest = together.sum(smallest) - alpha * (of_groups @ of_groups.T)
        # Symmetric: seen as its transpose, LAPACK needs no copy of it.
        self._inverse = linalg.inv(smallest.T, overwrite_a=True).astype(np.float32)

    def __call__(self, residual: NDArray[Any]) -> tuple[NDArray[Any], Floats]:
        """Return M⁻¹ times a block of columns, and their products with themselves and with that."""
        seen = [residual]
        for gather in self._gathers:
            seen.append(gather @ seen[-1])
        coarse = seen.pop()
        if self._together.size == 1:
            out = self._finished(self._inverse @ coarse, seen)
            return out, np.stack([column_dots(residual, residual), column_dots(residual, out)])
        # What levels add to rM⁻¹r is known before the smallest is, so that one question will do.
        levels = [column_dots(a, b * a) for a, b in zip(seen, self._diagonals)]
        dots = np.stack([column_dots(residual, residual), np.sum(levels, axis=0)])
        coarse, dots = self._together.gathered_and_sum(coarse, dots)
        found = self._inverse @ coarse
        dots[1] += column_dots(coarse, found)
        return self._finished(found[self._mine], seen), dots

    def _finished(self, out: NDArray[Any], seen: list[NDArray[Any]]) -> NDArray[Any]:
        """Return what all levels say, given what the smallest does."""
        for sums in reversed(self._sums):
            out = sums @ np.concatenate([out, seen.pop()])
        return out


def restricted(levels: Levels, rows: NDArray[np.intp]) -> Levels:
    """Return the groups of some rows, numbered anew where others have nobody left.

    Parameters
    ----------
    levels : tuple of ndarray
        Of all rows.
    rows : ndarray of int
        Those that are left.

    Returns
    -------
    tuple of ndarray
        Of those rows.
    """
    out: list[NDArray[np.intp]] = []
    for group in levels:
        there, first, found = np.unique(group[rows], return_index=True, return_inverse=True)
        # In the order of their first rows: who stands near each other here does so in the next.
        order = np.argsort(first)
        number = np.empty(len(order), dtype=np.intp)
        number[order] = np.arange(len(order))
        out.append(number[found])
        rows = there[order]
    return tuple(out)


def _in_groups(values: NDArray[np.float64], group: NDArray[np.intp]) -> Any:
    """Return the matrix that has a value for each row, in the column of its group."""
    n, m = len(group), int(group.max(initial=-1)) + 1
    narrow = narrowest(n)
    places = group.astype(narrow), np.arange(n + 1, dtype=narrow)
    return sparse.csr_array((values, *places), shape=(n, m))


def _beside(spread: Any, diagonal: NDArray[np.float64]) -> Any:
    """Return [spread, diag(diagonal)] in single precision: two entries in every row."""
    n, m = spread.shape
    data = np.stack([spread.data, diagonal], axis=1).astype(np.float32)
    narrow = narrowest(n + m)
    places = np.stack([spread.indices, np.arange(m, m + n)], axis=1).astype(narrow)
    return sparse.csr_array(
        (data.ravel(), places.ravel(), np.arange(0, 2 * n + 1, 2, dtype=narrow)), shape=(n, m + n)
    )


def _row_squares(matrix: Any) -> NDArray[np.float64]:
    return np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel()
