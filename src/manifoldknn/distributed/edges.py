"""Edges of the pruned graph of rows that lie in parts, with exactly those of one machine.

A part sees all pairs at its own rows, once others have told who lists them. Two of the rules of
`graph.edges` look at such pairs alone. The third, the spanning forest, is found in one round. An
edge that is not in the forest of what a part sees is in no forest of more. What a part keeps is
contracted: the shortest edge out of a group of own rows is in the forest. What is left over, few
groups and edges, is solved in one place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifoldknn.base import Array, Bools, Floats, Ints
from manifoldknn.base.distances import euclidean_pairs
from manifoldknn.graph.edges import are_near
from manifoldknn.graph.joining import is_affordable, joined_parts
from manifoldknn.graph.kernels import GRAPH
from manifoldknn.graph.spanning import connected_parts, in_spanning_forest
from manifoldknn.search.neighbors import Neighbors

_FEW = 8  # rows that stand for a part where looking at all would take too long
_BLOCK = 1 << 22


@dataclass(frozen=True)
class Listed:
    """Who lists whom: rows by their numbers in the input, places in lists, and distances."""

    row: Ints
    other: Ints
    place: Ints
    away: Floats


@dataclass(frozen=True)
class Seen:
    """Pairs that a part sees, sorted by their numbers in the input.

    Attributes
    ----------
    low, high : ndarray of int
        Numbers in the input.
    length : ndarray of float
        How far apart they are.
    keep : ndarray of bool
        Whether rules that look at pairs alone keep them.
    certain : ndarray of bool
        Whether they are in the forest of all rows for certain.
    group : ndarray of int
        The group of every own row, in the order in which they were given.
    rest : dict of ndarray
        Edges between groups that may be in the forest: places among pairs, and the groups of both
        ends, -1 for rows of others.
    """

    low: Ints
    high: Ints
    length: Floats
    keep: Bools
    certain: Bools
    group: Ints
    rest: dict[str, Ints]


def seen_pairs(order: Ints, lists: Ints, distances: Floats, told: Listed, n_neighbors: int) -> Seen:
    """Return the pairs at own rows.

    `order` are the numbers of own rows in the input, `lists` those of their neighbours; `told` is
    what others list of own rows.
    """
    names = np.unique(np.concatenate([order, lists.ravel(), told.row]))
    k = lists.shape[1]
    # A pair of a row and itself stands for what the lists of others name elsewhere.
    indices = np.repeat(np.arange(len(names))[:, None], k, axis=1)
    away = np.zeros((len(names), k))
    own = np.searchsorted(names, order)
    indices[own], away[own] = np.searchsorted(names, lists), distances
    at = np.searchsorted(names, told.row)
    indices[at, told.place], away[at, told.place] = np.searchsorted(names, told.other), told.away
    low, high, length, rank_low, rank_high = GRAPH.ranked_pairs(Neighbors(indices, away))
    pairs = np.flatnonzero(low < high)
    low, high, length = low[pairs], high[pairs], length[pairs]
    keep = are_near(rank_low[pairs], rank_high[pairs], n_neighbors, GRAPH)
    in_forest = in_spanning_forest(low, high, length, len(names))
    is_own = GRAPH.mask(own, len(names))
    certain, group, rest = _contracted(low, high, length, in_forest, is_own)
    return Seen(names[low], names[high], length, keep, certain, group[own], rest)


def _contracted(
    low: Ints, high: Ints, length: Floats, in_forest: Bools, is_own: Bools
) -> tuple[Bools, Ints, dict[str, Ints]]:
    """Return which edges are certain, the groups they make of own rows, and the rest."""
    edges = np.flatnonzero(in_forest)
    edges = edges[np.argsort(length[edges], kind="stable")]  # equal ones by their numbers
    one, other = low[edges], high[edges]
    inner = is_own[one] & is_own[other]
    rank = np.arange(len(edges))
    group, certain = np.arange(len(is_own)), np.zeros(len(edges), dtype=bool)
    while True:
        out = ~inner | (group[one] != group[other])
        shortest = np.full(len(is_own), len(edges), dtype=np.intp)
        for end in (one, other):
            at = out & is_own[end]
            np.minimum.at(shortest, group[end[at]], rank[at])
        chosen = np.unique(shortest[shortest < len(edges)])
        chosen = chosen[inner[chosen]]
        if not len(chosen):
            break
        certain[chosen] = True
        group = connected_parts(group[one[chosen]], group[other[chosen]], len(is_own))[group]
    left = np.flatnonzero(~certain)
    group = np.unique(group[is_own], return_inverse=True)[1]
    numbers = np.full(len(is_own), -1, dtype=np.intp)
    numbers[is_own] = group
    found = np.zeros(len(low), dtype=bool)
    found[edges[certain]] = True
    rest = {"pair": edges[left], "one": numbers[one[left]], "other": numbers[other[left]]}
    return found, numbers, rest


def forest_of_rests(
    rests: list[dict[str, Array]], n_groups: list[int]
) -> tuple[Array, list[Ints], int]:
    """Return which edges of the rests are in the forest, and the part of the graph of each group.

    A rest has `low`, `high` and `length` of its edges, and groups `one` and `other` of both ends.
    An edge between two parts is in the rests of both, or in no forest. Returns pairs of numbers in
    the input, sorted; parts of all groups, rest by rest; and how many there are.
    """
    first = np.cumsum([0, *n_groups])
    every = {name: np.concatenate([rest[name] for rest in rests]) for name in rests[0]}
    shift = np.repeat(first[:-1], [len(rest["low"]) for rest in rests])
    ends = [np.where(every[end] < 0, -1, every[end] + shift) for end in ("one", "other")]
    order = np.lexsort((every["high"], every["low"]))
    low, high, length = (every[name][order] for name in ("low", "high", "length"))
    one, other = (end[order] for end in ends)
    again = np.zeros(len(low), dtype=bool)
    again[1:] = (low[1:] == low[:-1]) & (high[1:] == high[:-1])
    second = np.flatnonzero(again)
    for end in (one, other):
        end[second - 1] = np.maximum(end[second - 1], end[second])
    whole = np.flatnonzero(~again & (one >= 0) & (other >= 0))
    one, other = np.minimum(one, other)[whole], np.maximum(one, other)[whole]
    # Of several edges between two groups the shortest counts.
    by_groups = np.lexsort((length[whole], other, one))
    distinct = np.ones(len(whole), dtype=bool)
    a, b = one[by_groups], other[by_groups]
    distinct[1:] = (a[1:] != a[:-1]) | (b[1:] != b[:-1])
    shortest = np.sort(by_groups[distinct])
    one, other, at = one[shortest], other[shortest], whole[shortest]
    kept = in_spanning_forest(one, other, length[at], int(first[-1]))
    part = connected_parts(one[kept], other[kept], int(first[-1]))
    pairs = np.column_stack([low[at[kept]], high[at[kept]]])
    return pairs, np.split(part, first[1:-1]), int(part.max(initial=-1)) + 1


def kept_pairs(seen: Seen, pairs: Ints) -> Bools:
    """Tell which pairs have an edge, given those of the forest that were not certain."""
    keep = seen.keep | seen.certain
    rest = seen.rest["pair"]
    if len(pairs) and len(rest):
        n = int(max(seen.high.max(), pairs.max())) + 1
        known = np.sort(pairs[:, 0] * n + pairs[:, 1])
        keep[rest] |= GRAPH.contains(known, seen.low[rest] * n + seen.high[rest])[0]
    return keep


def nearest_of_largest(asked: Array, rows: Array, order: Ints) -> tuple[Ints, Floats]:
    """Return the place of the nearest of some rows for each that is asked for, and how far it is.

    Of equally near ones, that with the smallest number in the input.
    """
    best, at = np.full(len(asked), np.inf), np.zeros(len(asked), dtype=np.intp)
    if not len(rows):
        return at, best
    by_number = np.argsort(order)
    X = rows[by_number].astype(np.float64)
    center = X.mean(axis=0)
    X -= center
    Q = asked - center
    norms, own = np.square(X).sum(axis=1), np.square(Q).sum(axis=1)
    step = max(1, _BLOCK // len(X))
    for start in range(0, len(Q), step):
        some = slice(start, start + step)
        block = np.maximum(own[some, None] - 2.0 * (Q[some] @ X.T) + norms, 0.0)
        np.sqrt(block, out=block)
        limit = block.min(axis=1) + 1e-7 * block.max()
        r, c = np.nonzero(block <= limit[:, None])
        away = euclidean_pairs(asked[some], rows, r, by_number[c])
        first = np.lexsort((c, away, r))
        first = first[np.unique(r[first], return_index=True)[1]]
        best[some], at[some] = away[first], by_number[c[first]]
    return at, best


def rows_to_join(sizes: Ints, part: Ints, n_columns: int) -> Bools:
    """Tell which rows are looked at to join parts: those outside the largest, or some of each."""
    outside = part != int(np.argmax(sizes))
    n_rows = int(sizes.sum())
    if is_affordable(n_rows - int(sizes.max()), n_rows, n_columns, "euclidean"):
        return outside
    order = np.argsort(part, kind="stable")
    place = np.empty(len(part), dtype=np.intp)
    starts = np.searchsorted(part[order], part[order])
    place[order] = np.arange(len(part)) - starts
    return outside & (place < _FEW)


def joining_pairs(rows: Array, order: Ints, part: Ints) -> tuple[Any, Any, Any]:
    """Return edges that join parts, by numbers in the input, given the rows that are looked at."""
    by_number = np.argsort(order)
    parts = np.unique(part[by_number], return_inverse=True)[1]
    low, high, length = joined_parts(rows[by_number], parts, metric="euclidean", n_jobs=1)
    return order[by_number][low], order[by_number][high], length
