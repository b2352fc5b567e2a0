"""The constrained graph of own rows and their halo, and the strengthened trees over all rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.base import Ints
from manifoldknn.base.kernels import NUMPY, Kernels
from manifoldknn.distributed.walk.shared import Counted, Links, Shared
from manifoldknn.graph.constrained import GraphRecipe
from manifoldknn.graph.tree import tree_edges
from manifoldknn.graph.weights import ConstrainedGraph


class Numbering:
    """Rows by their numbers: own ones are those of a rank between two bounds; then the halo."""

    def __init__(self, links: Links, bounds: Ints, others: Ints) -> None:
        self.bounds, self.start, self.stop = bounds, bounds[links.rank], bounds[links.rank + 1]
        self.n_own = int(self.stop - self.start)
        foreign = (others < self.start) | (others >= self.stop)
        self.ghosts = np.unique(others[foreign])
        wanted = [self.ghosts[self.owners(self.ghosts) == rank] for rank in range(links.size)]
        asked = links.exchange(wanted)
        sent = [(rows - self.start).astype(np.intp) for rows in asked]
        received = [len(rows) for rows in wanted]
        self.together = Shared(links, self.n_own, sent, received, Counted())

    @property
    def n_rows(self) -> int:
        """Own rows and the halo."""
        return self.n_own + len(self.ghosts)

    def owners(self, rows: Ints) -> Ints:
        """Return the rank of every row."""
        return np.searchsorted(self.bounds, rows, side="right") - 1

    def local(self, rows: Ints) -> Ints:
        """Return where rows stand here; -1 for those that are neither own nor in the halo."""
        at = np.searchsorted(self.ghosts, rows)
        known = np.append(self.ghosts, -1)[at] == rows
        own = (rows >= self.start) & (rows < self.stop)
        return np.where(own, rows - self.start, np.where(known, self.n_own + at, -1))


class Trees:
    """Strengthened trees: each is grown where its root is, from lists that were asked for once."""

    def __init__(self, numbering: Numbering, nearest: Ints, roots: Ints, depth: int) -> None:
        self._numbering, self._links, self._depth = numbering, numbering.together.links, depth
        k = nearest.shape[1]
        known, lists = roots + numbering.start, nearest[roots].astype(np.int64)
        for _ in range(depth - 1):
            further = np.setdiff1d(lists, known)
            known, lists = (
                np.append(known, further),
                np.vstack([lists, self._asked(further, nearest)]),
            )
        self._names = np.unique(np.append(known, lists))
        at = np.searchsorted(self._names, known)
        self._table = np.repeat(np.arange(len(self._names))[:, None], k, axis=1)
        self._table[at] = np.searchsorted(self._names, lists)

    def _asked(self, rows: Ints, nearest: Ints) -> Ints:
        """Return the lists of any rows, from their owners."""
        owners = self._numbering.owners(rows)
        asked = self._links.exchange([rows[owners == rank] for rank in range(self._links.size)])
        answers = self._links.exchange(
            [nearest[theirs - self._numbering.start].astype(np.int64) for theirs in asked]
        )
        return np.concatenate(answers).reshape(-1, nearest.shape[1])  # rows ascend, and so do ranks

    def edges(self, roots: Ints) -> tuple[Ints, Ints, Ints]:
        """Return edges at own rows, and levels, of the trees of all roots; own ones are named.

        Of an edge whose other end is not here, the end that is stands for both.
        """
        numbering = self._numbering
        at = np.searchsorted(self._names, roots + numbering.start)
        low, high, level = tree_edges(self._table, at, self._depth)
        found = np.column_stack([self._names[low], self._names[high], level]).astype(np.int64)
        one, other = numbering.owners(found[:, 0]), numbering.owners(found[:, 1])
        ranks = range(self._links.size)
        told = [found[(one == rank) | (other == rank)] for rank in ranks]
        heard = np.concatenate(self._links.exchange(told)).reshape(-1, 3)
        order = np.lexsort((heard[:, 2], heard[:, 1], heard[:, 0]))
        heard = heard[order]
        first = np.ones(len(heard), dtype=bool)
        first[1:] = (heard[1:, :2] != heard[:-1, :2]).any(axis=1)
        heard = heard[first]
        low, high = numbering.local(heard[:, 0]), numbering.local(heard[:, 1])
        low, high = np.where(low < 0, high, low), np.where(high < 0, low, high)
        return np.minimum(low, high), np.maximum(low, high), heard[:, 2]


@dataclass(frozen=True)
class SharedRecipe(GraphRecipe):
    """A recipe of own rows and their halo; class numbers are those of both."""

    together: Any = None
    trees: Any = None

    def touched(self, codes: Ints) -> Ints:
        """Return rows such that labels change pairs among them only; owners know which."""
        mask = NUMPY.mask(super().touched(codes), len(codes))
        return np.flatnonzero(self.together.halo(mask))

    def constrained(self, codes: Ints) -> ConstrainedGraph:
        """Apply Table 1 to labels; rows of the halo have their must-links elsewhere."""
        graph = super().constrained(codes)
        own = codes.copy()
        own[self.together.n_own :] = -1
        return replace(graph, must_link=own, together=self.together)

    def _tree(self, codes: Ints, kernels: Kernels = NUMPY) -> tuple[Any, Any, Any]:
        del kernels
        return self.trees.edges(np.flatnonzero(codes[: self.together.n_own] >= 0))


def shared_recipe(
    links: Links,
    bounds: Ints,
    one: Ints,
    other: Ints,
    length: NDArray[np.float64],
    nearest: Ints,
    codes: Ints,
    **settings: Any,
) -> tuple[SharedRecipe, Ints]:
    """Return the recipe of own rows, and class numbers of these and the halo.

    Edges have `one` end in own rows; both ends are global numbers. `nearest` and `codes` are of own
    rows; `settings` are σ, θ and the depth of trees.
    """
    numbering = Numbering(links, bounds, other)
    low, high = numbering.local(one), numbering.local(other)
    low, high = np.minimum(low, high), np.maximum(low, high)
    order = np.lexsort((high, low))
    low, high, length = low[order], high[order], length[order]
    first = np.ones(len(low), dtype=bool)
    first[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])  # two of its parts may name an edge
    edges = low[first], high[first], length[first]
    trees = Trees(numbering, nearest, np.flatnonzero(codes >= 0), settings["tree_depth"])
    nobody = np.empty((numbering.n_rows, 0), dtype=np.intp)
    recipe = SharedRecipe(
        None, nobody, edges, graph="pruned", metric="euclidean", together=numbering.together,
        trees=trees, **settings,
    )  # fmt: skip
    return recipe, numbering.together.halo(codes)
