"""Edges of rows in parts against those of one machine."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifoldknn.distributed.edges import (
    Listed,
    forest_of_rests,
    joining_pairs,
    kept_pairs,
    nearest_of_largest,
    rows_to_join,
    seen_pairs,
)
from manifoldknn.graph.edges import pruned_edges
from manifoldknn.search.neighbors import ExactIndex


def edges_of_parts(X, lists, part, n_neighbors):
    """Return the edges that all parts find, by numbers in the input."""
    members = [np.flatnonzero(part == p) for p in range(part.max() + 1)]
    seen = []
    for own in members:
        others = np.flatnonzero(~np.isin(np.arange(len(X)), own))
        row, place = np.nonzero(np.isin(lists.indices[others], own))
        told = Listed(
            others[row],
            lists.indices[others][row, place],
            place,
            lists.distances[others][row, place],
        )
        seen.append(seen_pairs(own, lists.indices[own], lists.distances[own], told, n_neighbors))
    rests = []
    for s in seen:
        at = s.rest["pair"]
        named = {"low": s.low[at], "high": s.high[at], "length": s.length[at]}
        rests.append(named | {end: s.rest[end] for end in ("one", "other")})
    pairs, parts, count = forest_of_rests(rests, [int(s.group.max()) + 1 for s in seen])
    found = set()
    for s in seen:
        keep = kept_pairs(s, pairs)
        found |= set(zip(s.low[keep].tolist(), s.high[keep].tolist(), s.length[keep].tolist()))
    if count > 1:
        component = np.empty(len(X), dtype=int)
        for own, s, of_groups in zip(members, seen, parts):
            component[own] = of_groups[s.group]
        sizes = np.bincount(component)
        repeats = ((lists.indices < np.arange(len(X))[:, None]) & (lists.distances == 0)).any(1)
        asked = np.flatnonzero(rows_to_join(sizes, component, X.shape[1]) & ~repeats)
        largest = np.flatnonzero((component == sizes.argmax()) & ~repeats)
        best, near = np.full(len(asked), np.inf), np.full(len(asked), len(X))
        for own in members:
            own = np.intersect1d(own, largest)
            if len(own):
                at, away = nearest_of_largest(X[asked], X[own], own)
                better = (away < best) | ((away == best) & (own[at] < near))
                best, near = np.where(better, away, best), np.where(better, own[at], near)
        rows = np.union1d(asked, near)
        low, high, length = joining_pairs(X[rows], rows, component[rows])
        found |= set(zip(low.tolist(), high.tolist(), length.tolist()))
    return sorted(found)


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(12, 120), n_parts=st.integers(1, 5), seed=st.integers(0, 999),
    kind=st.sampled_from(["smooth", "grid", "islands"]), k=st.integers(3, 8),
)  # fmt: skip
def test_the_same_edges_however_rows_are_shared_out(n, n_parts, seed, kind, k):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    if kind == "grid":  # ties and repeated rows
        X = rng.integers(0, 6, size=(n, 2)).astype(float)
    if kind == "islands":
        X = X + 50 * rng.integers(0, 4, size=(n, 1))
    lists = ExactIndex(X).among_samples(min(k, n - 1))
    part = np.append(np.arange(n_parts), rng.integers(0, n_parts, size=n - n_parts))
    low, high, length = pruned_edges(X, lists, 3, metric="euclidean")
    expected = sorted(zip(low.tolist(), high.tolist(), length.tolist()))
    assert edges_of_parts(X, lists, part, 3) == expected


@pytest.mark.parametrize("n_parts", [1, 4])
def test_parts_that_follow_the_data(n_parts):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 5)).astype(np.float32)
    lists = ExactIndex(X).among_samples(30)
    part = np.argsort(np.argsort(X[:, 0])) * n_parts // 3000
    low, high, length = pruned_edges(X, lists, 10, metric="euclidean")
    expected = sorted(zip(low.tolist(), high.tolist(), length.tolist()))
    assert edges_of_parts(X, lists, part, 10) == expected
