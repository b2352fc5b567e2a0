"""Rows that hang together, and the preconditioner made of them, on a device.

Those of `manifoldknn.walk.aggregates`. A group of any level weighs its rows by √(d / Σd), so all
levels are had from the rows at once: with Q_m the map of level m,

    M⁻¹ = I + Σ_m Q_m D_m⁻¹ Q_mᵀ + Q A_c⁻¹ Qᵀ,

as A has ones on its diagonal. Sums go down level by level, and one product brings all of them back:
a graphics processor minds the number of its tasks more than their size.
"""

import math

import torch
from torch import Tensor

from manifoldknn.device.kernels import Runs, TorchKernels
from manifoldknn.device.walk.products import SparseProduct, WalkMatrix
from manifoldknn.graph.weights import row_log_sums
from manifoldknn.walk import aggregates as rules

_TOO_MANY = 4  # times as many groups as are wanted: not to be solved exactly
_TERMS = 10.0  # of a series, times 1 / (1 - α): what is left out is of the order e^-20
_DOUBLINGS = 24  # of terms, at most: rounding doubles as well

Levels = tuple[Tensor, ...]


def aggregates(row: Tensor, column: Tensor, log_weights: Tensor, n_rows: int) -> Levels:
    """Return which rows belong together, level by level, as on the CPU.

    Edges come once in each direction, by rows. A graph that falls into too many pieces has no
    levels.
    """
    if not len(row):
        return ()
    weight = torch.exp((log_weights - log_weights.max()).clamp_(min=-600.0))
    levels: list[Tensor] = []
    size = n_rows
    while size > rules._COARSEST and len(levels) < rules._MOST_LEVELS:
        group = torch.arange(size, device=row.device)
        for _ in range(rules._PASSES):
            pair = paired(row, column, weight, size)
            group, size = pair[group], int(pair.max()) + 1
            one, other = pair[row], pair[column]
            between = torch.nonzero(one != other).squeeze(1)
            key = one[between] * size + other[between]
            key, weight = _summed(key, weight[between])
            row, column = key // size, key % size
        if size > rules._SLOWEST * len(group):
            break
        levels.append(group)
    return tuple(levels) if size <= _TOO_MANY * rules._COARSEST else ()


def paired(row: Tensor, column: Tensor, weight: Tensor, n_rows: int) -> Tensor:
    """Return a group for every row, from 0, as `manifoldknn.walk.aggregates.paired` does."""
    everyone = torch.arange(n_rows, device=row.device)
    favourite = wish = _favourites(row, column, weight, n_rows)
    mate = torch.full_like(everyone, -1)
    for sweep in range(rules._SWEEPS):
        if sweep:
            free = torch.nonzero((mate[row] < 0) & (mate[column] < 0)).squeeze(1)
            row, column, weight = row[free], column[free], weight[free]
            wish = _favourites(row, column, weight, n_rows)
        happy = (mate < 0) & (wish >= 0) & (wish[wish.clamp(min=0)] == everyone)
        mate = torch.where(happy, wish, mate)
    head = torch.where(mate >= 0, torch.minimum(everyone, mate), everyone)
    liked = favourite.clamp(min=0)
    joins = (mate < 0) & (favourite >= 0) & (mate[liked] >= 0)
    return torch.unique(torch.where(joins, head[liked], head), return_inverse=True)[1]


def _favourites(row: Tensor, column: Tensor, weight: Tensor, n_rows: int) -> Tensor:
    """Return the neighbour at the heaviest edge of every row, the last of equal ones; or -1."""
    wish = torch.full((n_rows,), -1, dtype=torch.int64, device=row.device)
    if len(row):
        runs = Runs.of_numbers(row)
        best = torch.repeat_interleave(runs.max(weight[:, None])[:, 0], runs.offsets.diff())
        last = runs.max(torch.where(weight == best, column, -1).double()[:, None])
        wish[row[runs.offsets[:-1]]] = last[:, 0].long()
    return wish


class Preconditioner:
    """About A⁻¹ for A = I - αS with must-links, some copies of one graph after the other.

    `log_roots` are log √d and `rows` all rows of all copies, in the order of the matrix; `levels`
    are of one copy, from `aggregates`.
    """

    def __init__(
        self,
        matrix: WalkMatrix,
        log_roots: Tensor,
        rows: Tensor,
        levels: Levels,
        copies: int,
    ) -> None:
        offsets, columns, values, linked, group, scale, alpha = matrix
        n, half, device = len(rows), log_roots, rows.device
        row, column = torch.repeat_interleave(offsets.diff()), columns.long()
        n_classes = int(group.max()) + 1 if len(group) else 1
        diagonal = matrix.diagonal()  # of A, but for must-links
        self._down: list[SparseProduct] = []
        at, first = rows, n
        places, factors = [torch.arange(n, device=device)], [torch.ones_like(half)]
        for number, level in enumerate(levels):
            m = int(level.max()) + 1
            above = (level + m * torch.arange(copies, device=device)[:, None]).reshape(-1)
            at = above[at]
            above = above if number else at
            total = self._add_sums(above, m * copies, half)
            share = torch.exp(log_roots - total[at])  # of every row in its group
            places.append(first + at)
            first, half = first + m * copies, total
            key, sums = _summed(at[linked] * n_classes + group, share[linked] * scale)
            if number == len(levels) - 1:
                break
            inside = torch.where(at[row] == at[column], values, 0.0)
            spread = SparseProduct(offsets, columns, inside)(share[:, None])[:, 0]
            found = self._sums(diagonal * share - alpha * spread)
            key, squares = _summed(key // n_classes, sums.square())
            found[key] -= alpha * squares
            factors.append(share / found[at])
        links = values.new_zeros(m * copies, n_classes)
        links.view(-1)[key] = sums
        links = links.view(copies, m, n_classes)
        key, sums = _summed(at[row] * m + at[column] % m, values * share[row] * share[column])
        dense = values.new_zeros(copies, m, m)
        dense.view(-1)[key] = -alpha * sums
        dense.diagonal(dim1=1, dim2=2).add_(self._sums(diagonal * share).view(copies, m))
        dense.baddbmm_(links, links.mT, alpha=-alpha)
        self._inverse = inverse_by_products(dense, alpha) if dense.is_cuda else dense.inverse()
        where = torch.stack(places, 1)
        offsets = torch.arange(n + 1, device=device) * where.shape[1]
        weights = torch.stack([*factors, share], 1)
        self._up = SparseProduct(offsets, where.reshape(-1), weights.reshape(-1))

    def __call__(self, residual: Tensor) -> Tensor:
        """Return M⁻¹ times a block of columns."""
        seen = [residual]
        for down in self._down:
            seen.append(down(seen[-1]))
        coarse = seen[-1].view(*self._inverse.shape[:2], -1)
        seen[-1] = torch.bmm(self._inverse, coarse).view(seen[-1].shape)
        return self._up(torch.cat(seen))

    def _add_sums(self, above: Tensor, size: int, half: Tensor) -> Tensor:
        """Add a level of sums, and return log √(Σd) of its groups."""
        ordered, members = torch.sort(above, stable=True)
        starts = torch.searchsorted(ordered, torch.arange(size + 1, device=above.device))
        total = 0.5 * row_log_sums(starts, 2.0 * half[members], TorchKernels(half.device))
        share = torch.exp(half - total[above])[members]
        self._down.append(SparseProduct(starts, members, share))
        return total

    def _sums(self, values: Tensor) -> Tensor:
        """Return sums over the groups of the last level so far, each row by its share."""
        values = values[:, None]
        for down in self._down:
            values = down(values)
        return values[:, 0]


def inverse_by_products(matrix: Tensor, alpha: float) -> Tensor:
    """Return (1 - E)⁻¹ = Π (1 + E^(2^k)), with eigenvalues of E of no more than α.

    A graphics processor is quick at products, and has to load its programs for all else.
    """
    one = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    power = one - matrix
    found = one + power
    for _ in range(min(_DOUBLINGS, math.ceil(math.log2(_TERMS / (1.0 - alpha))))):
        power = power @ power
        found = torch.baddbmm(found, found, power)
    return found


def _summed(key: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Return different keys, ascending, and the sums of their values."""
    if not len(key):
        return key, values
    key, order = torch.sort(key, stable=True)
    runs = Runs.of_numbers(key)
    return key[runs.offsets[:-1]], runs.sum(values[order, None])[:, 0]
