"""The heavy kernels of the graph on the processor; `manifoldknn.device.graph.kernels` has the same.

Each is done another way by a graphics card: what counts by sorting here compares there, what
follows a chain here goes by parallel rounds there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.base.distances import distance_blocks
from manifoldknn.base.kernels import Kernels
from manifoldknn.graph.pairs import ranked_pairs
from manifoldknn.graph.partsearch import PartSearch, pair_distances, search_of_parts
from manifoldknn.graph.spanning import connected_parts, in_spanning_forest
from manifoldknn.search.neighbors import Neighbors


class GraphKernels(Kernels):
    """Kernels of the graph by NumPy, SciPy and scikit-learn."""

    def ranked_pairs(self, neighbors: Neighbors) -> tuple[Any, ...]:
        """Return pairs of which one lists the other, sorted: low, high, length, and both ranks.

        A rank is the place of an end in the other's list, from 0; large if it is not there.
        """
        return ranked_pairs(neighbors)

    def spanning_forest(self, low: Any, high: Any, length: Any, n: int) -> tuple[Any, Any]:
        """Tell which edges belong to the minimum spanning forest, and the part of each node."""
        chosen = in_spanning_forest(low, high, length, n)
        return chosen, connected_parts(low[chosen], high[chosen], n)

    def measuring(self, X: Any, metric: Any) -> tuple[Any, GraphKernels]:
        """Return samples and kernels where distances between parts are measured in a metric."""
        del metric
        return X, self

    def distance_blocks(
        self, X: Any, rows: NDArray[np.intp], metric: Any
    ) -> Iterator[tuple[NDArray[np.intp], Any]]:
        """Yield some of the rows and their distances to every sample, block by block."""
        return distance_blocks(X, rows, metric=metric)

    def pair_distances(
        self, X: Any, one: NDArray[np.intp], other: NDArray[np.intp], metric: Any
    ) -> NDArray[np.float64]:
        """Return the distance of each pair of rows, measured on the processor."""
        return pair_distances(X, one, other, metric=metric)

    def part_search(
        self, X: Any, parts: NDArray[np.intp], metric: Any, n_jobs: int | None
    ) -> PartSearch:
        """Return a search over the members of parts."""
        return search_of_parts(X, parts, metric=metric, n_jobs=n_jobs)


GRAPH = GraphKernels()
