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

from manifoldknn.base.csr import assembled, narrowest
from manifoldknn.base.kernels import Kernels

_PASSES = 2  # of pairing make one level
_SWEEPS = 3  # over rows that are not paired yet
_COARSEST = 1000  # groups that are solved exactly,
_TOO_MANY = 4  # and up to so many times more, since that takes a dense inverse
_SLOWEST = 0.8  # share of groups that are left after a level, at most
_MOST_LEVELS = 12

Levels = tuple[Any, ...]


class GroupKernels(Kernels):
    """What groups ask of sparse matrices, by SciPy: of `indptr`, `indices` and `data`."""

    def owners(self, matrix: Any) -> Any:
        """Return the row of every entry."""
        return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))

    def with_values(self, matrix: Any, values: Any) -> Any:
        """Return a matrix with other values in the same places."""
        return assembled(values, matrix.indices, matrix.indptr, matrix.shape)

    def contracted(self, weights: Any, group: Any) -> Any:
        """Return the graph of groups, edges between two of them added up."""
        member, m = _in_groups(np.ones(len(group)), group), int(group.max()) + 1
        out = sparse.coo_array(member.T @ weights @ member)
        between = out.row != out.col
        ends = out.row[between], out.col[between]
        return sparse.csr_array((out.data[between], ends), shape=(m, m))


GROUPS = GroupKernels()


def aggregates(log_weights: Any, kernels: GroupKernels = GROUPS) -> Levels:
    """Return which rows belong together, level by level.

    Parameters
    ----------
    log_weights : csr_array
        Logarithms of the weights of a symmetric graph; larger ones hold rows together.
    kernels : GroupKernels, optional
        Those of the matrix.

    Returns
    -------
    tuple of array
        The group of every row, then the group of every group, and so on until about a
        thousand are left; nothing where that many islands remain. Labels have no part in it.

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
    logs, size = log_weights.data, len(log_weights.indptr) - 1
    if not len(logs):
        return ()
    # Only their order matters, but sums of them make the weights of the next level.
    weights = kernels.with_values(
        log_weights, kernels.xp.exp(kernels.at_least(logs - logs.max(), -600.0))
    )
    levels: list[Any] = []
    while size > _COARSEST and len(levels) < _MOST_LEVELS:
        group = kernels.arange(size)
        for _ in range(_PASSES):
            of_pairs = paired(weights, kernels)
            group = of_pairs[group]
            weights = kernels.contracted(weights, of_pairs)
        if len(weights.indptr) - 1 > _SLOWEST * size:
            break
        levels.append(group)
        size = len(weights.indptr) - 1
    # Where many islands are left, no level holds them.
    return tuple(levels) if size <= _TOO_MANY * _COARSEST else ()


def paired(weights: Any, kernels: GroupKernels = GROUPS) -> Any:
    """Return a group for every row: pairs that each hang most on the other, and who joins them.

    Parameters
    ----------
    weights : csr_array
        Positive, symmetric.
    kernels : GroupKernels, optional
        Those of the matrix.

    Returns
    -------
    array of int
        Numbers from 0. A row without a partner joins the pair of its heaviest neighbour.
    """
    xp, everyone = kernels.xp, kernels.arange(len(weights.indptr) - 1)
    row, other, weight = kernels.owners(weights), weights.indices, weights.data
    favourite = wish = _favourites(row, other, weight, len(everyone), kernels)
    mate = xp.full_like(everyone, -1)
    for sweep in range(_SWEEPS):
        if sweep:
            free = (mate[row] < 0) & (mate[other] < 0)
            row, other, weight = row[free], other[free], weight[free]
            wish = _favourites(row, other, weight, len(everyone), kernels)
        happy = (mate < 0) & (wish >= 0) & (wish[kernels.at_least(wish, 0)] == everyone)
        mate = xp.where(happy, wish, mate)
    head = xp.where(mate >= 0, xp.minimum(everyone, mate), everyone)
    liked = kernels.at_least(favourite, 0)
    joins = (mate < 0) & (favourite >= 0) & (mate[liked] >= 0)  # else it stays alone for now
    return xp.unique(xp.where(joins, head[liked], head), return_inverse=True)[1]


def _favourites(row: Any, other: Any, weight: Any, n: int, kernels: Kernels) -> Any:
    """Return the neighbour at the heaviest edge of every row, the last of equal ones; or -1."""
    wish = kernels.arange(n)
    wish[:] = -1
    if len(row):
        runs = kernels.runs_of(row)
        best = kernels.repeat(runs.max(weight), kernels.xp.diff(runs.offsets))
        top = kernels.places(weight == best)
        last = top[kernels.runs_of(row[top]).offsets[1:] - 1]
        wish[row[last]] = kernels.long(other[last])
    return wish


class Preconditioner:
    """About A⁻¹, in single precision, for A = I - αS with must-links.

    Parameters
    ----------
    s : csr_array
        S without must-links.
    links : csr_array of shape (n_rows, n_classes)
        D^-½Y of must-links: S lacks its product with its transpose, less the diagonal.
    half_log_degrees : ndarray of shape (n_rows,)
        log √d.
    levels : tuple of ndarray
        Groups of these rows, from `aggregates` or `restricted`.
    alpha : float
        Share of strength kept per step.

    Notes
    -----
    Costs about a product with S per use, and two per level to make.
    """

    def __init__(
        self,
        s: Any,
        links: Any,
        half_log_degrees: NDArray[np.float64],
        levels: Levels,
        alpha: float,
    ) -> None:
        matrix = sparse.csr_array(sparse.diags_array(1.0 + alpha * _row_squares(links)) - alpha * s)
        half = half_log_degrees
        self._maps: list[tuple[Any, Any]] = []
        self._diagonals: list[NDArray[np.float32]] = []
        for group in levels:
            diagonal = matrix.diagonal() - alpha * _row_squares(links)
            self._diagonals.append((1.0 / diagonal).astype(np.float32)[:, None])
            m = int(group.max()) + 1
            top = np.full(m, -np.inf)
            np.maximum.at(top, group, half)
            root = np.exp(half - top[group])  # on a scale of its group's own: none vanishes
            square = np.bincount(group, np.square(root), minlength=m)
            root /= np.sqrt(square)[group]
            spread = _in_groups(root, group)
            gather = sparse.csr_array(spread.T)
            matrix = sparse.csr_array(gather @ matrix @ spread)
            links, half = sparse.csr_array(gather @ links), top + 0.5 * np.log(square)
            self._maps.append((spread.astype(np.float32), gather.astype(np.float32)))
        smallest = matrix.toarray() - alpha * (links @ links.T).toarray()
        self._inverse = linalg.inv(smallest, overwrite_a=True).astype(np.float32)

    def __call__(self, residual: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return M⁻¹ times a block of columns."""
        seen = [residual]
        for _, gather in self._maps:
            seen.append(gather @ seen[-1])
        out: NDArray[np.float32] = self._inverse @ seen.pop()
        for (spread, _), diagonal in zip(reversed(self._maps), reversed(self._diagonals)):
            out = spread @ out
            out += diagonal * seen.pop()
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
        there, numbers = np.unique(group[rows], return_inverse=True)
        out.append(numbers.astype(np.intp))
        rows = there
    return tuple(out)


def _in_groups(values: NDArray[np.float64], group: NDArray[np.intp]) -> Any:
    """Return the matrix that has a value for each row, in the column of its group."""
    n, m = len(group), int(group.max()) + 1
    narrow = narrowest(n)
    places = group.astype(narrow), np.arange(n + 1, dtype=narrow)
    return sparse.csr_array((values, *places), shape=(n, m))


def _row_squares(matrix: Any) -> NDArray[np.float64]:
    return np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel()
