"""The heavy kernels of the graph on the processor; `manifoldknn.device.graph.kernels` has the same.

Each is done another way by a graphics card: what counts by sorting here compares there, what
follows a chain here goes by parallel rounds there.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from manifoldknn.base import Array, Bools, Floats, Ints
from manifoldknn.base.csr import kept_entries, narrowest
from manifoldknn.base.distances import EUCLIDEAN, distance_blocks
from manifoldknn.base.kernels import Kernels
from manifoldknn.graph.partsearch import MetricSearch, PartSearch, ProductSearch, pair_distances
from manifoldknn.graph.spanning import connected_parts, in_spanning_forest
from manifoldknn.search.neighbors import Neighbors


def _entries(indices: Ints, chosen: Bools, data: Array) -> Any:
    """Return the chosen members of the lists as a CSR matrix with `data` by their places."""
    n, k = indices.shape
    starts = np.concatenate([[0], np.cumsum(np.count_nonzero(chosen, axis=1))])
    narrow = narrowest(n * k)
    values = np.broadcast_to(data, chosen.shape)[chosen]
    columns = indices[chosen].astype(narrow)
    return sparse.csr_array((values, columns, starts.astype(narrow)), shape=(n, n))


def _first_of_each(matrix: Any) -> Any:
    """Return a CSR matrix with sorted columns without the second of equal ones.

    Lists that a user brought may name somebody twice; the nearer place counts.
    """
    again = matrix.indices[1:] == matrix.indices[:-1]
    starts = matrix.indptr[1:-1]
    again[starts[(starts > 0) & (starts < len(matrix.indices))] - 1] = False
    if again.any():
        matrix = kept_entries(matrix, np.append(True, ~again))
    matrix.has_canonical_format = True
    return matrix


class GraphKernels(Kernels):
    """Kernels of the graph by NumPy, SciPy and scikit-learn."""

    def ranked_pairs(self, neighbors: Neighbors) -> tuple[Any, ...]:
        """Return pairs of which one lists the other, sorted: low, high, length, and both ranks.

        A rank is the place of an end in the other's list, from 0; large if it is not there. Cost
        O(n·k): lists are sorted by transposing them as sparse matrices, which only counts.
        """
        indices, distances = neighbors.indices, neighbors.distances
        n, k = indices.shape
        # Both ranks of an edge in one integer, as short as can be: there are millions.
        for_rank = k.bit_length()
        ranks = np.arange(1, k + 1, dtype=np.min_scalar_type(-(1 << 2 * for_rank)))
        later = indices > np.arange(n)[:, None]
        from_low = _first_of_each(_entries(indices, later, ranks).tocsc().tocsr())
        np.logical_not(later, out=later)
        from_high = _first_of_each(_entries(indices, later, ranks << for_rank).tocsc().T)
        del later
        both = from_low + from_high
        del from_low, from_high
        low = np.repeat(np.arange(n, dtype=np.int64), np.diff(both.indptr))
        high = both.indices.astype(np.int64)
        rank_low, rank_high = both.data & ((1 << for_rank) - 1), both.data >> for_rank
        del both
        at = low * k
        at += rank_low
        one_sided = np.flatnonzero(rank_low == 0)
        at[one_sided] = high[one_sided] * k + rank_high[one_sided]
        at -= 1
        length = distances.ravel()[at]
        for rank in (rank_low, rank_high):
            rank -= 1
            rank[rank < 0] = np.iinfo(rank.dtype).max
        return low, high, length, rank_low, rank_high

    def spanning_forest(self, low: Any, high: Any, length: Any, n: int) -> tuple[Any, Any]:
        """Tell which edges belong to the minimum spanning forest, and the part of each node."""
        chosen = in_spanning_forest(low, high, length, n)
        return chosen, connected_parts(low[chosen], high[chosen], n)

    def measuring(self, X: Any, metric: Any) -> tuple[Any, "GraphKernels"]:
        """Return samples and kernels where distances between parts are measured in a metric."""
        del metric
        return X, self

    def distance_blocks(self, X: Any, rows: Ints, metric: Any) -> Iterator[tuple[Ints, Any]]:
        """Yield some of the rows and their distances to every sample, block by block."""
        return distance_blocks(X, rows, metric=metric)

    def pair_distances(self, X: Any, one: Ints, other: Ints, metric: Any) -> Floats:
        """Return the distance of each pair of rows, measured on the processor."""
        return pair_distances(X, one, other, metric=metric)

    def part_search(self, X: Any, parts: Ints, metric: Any, n_jobs: int | None) -> PartSearch:
        """Return a search by products (dense rows, Euclidean or cosine), or the metric itself."""
        named = metric if isinstance(metric, str) else ""
        products = named in EUCLIDEAN | {"cosine"} and not sparse.issparse(X)
        search = ProductSearch if products else MetricSearch
        return search(X, parts, metric=metric, n_jobs=n_jobs)


GRAPH = GraphKernels()
