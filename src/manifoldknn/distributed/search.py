"""Neighbours of rows that lie in parts.

A row asks the owners of its nearest cells. An owner looks through these cells for the candidates
that are nearest in the coordinates of the cells, and measures them in all columns. At home
candidates of all owners are ranked by the first distance, and what is left by the second. So the
list of a row depends on its cells, and not on who owns them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.base import Array, Ints
from manifoldknn.base.distances import euclidean_lists
from manifoldknn.distributed.cells import Cells
from manifoldknn.search.engines import is_quick
from manifoldknn.search.faiss_threads import faiss_threads
from manifoldknn.search.inverted import RECALL

_AIM = 1.0 - (1.0 - RECALL) / 2  # share of true neighbours in the cells that are looked into
_SPARE, _MORE = 5, 2.1  # candidates: so many more, or times more where distances are projected
_ROWS = 1 << 13


def candidate_number(n_neighbors: int, cells: Cells) -> int:
    """Return how many candidates are ranked again, for so many neighbours."""
    return int(_MORE * n_neighbors) if cells.axes.shape[1] else n_neighbors + _SPARE


class OwnerSearch:
    """A search through the cells of one owner.

    `rows`, `order` (the number in the input) and `cell` are of its rows, sorted by cell and number;
    the first of them has the number `start` among the rows of all owners. `points` are their
    coordinates, where these are known.
    """

    def __init__(
        self, cells: Cells, rows: Array, order: Ints, cell: Ints, start: int,
        points: NDArray[np.float32] | None = None,
    ) -> None:  # fmt: skip
        self._cells, self._rows, self._order, self._start = cells, rows, order, start
        self._single: NDArray[np.float32] | None = None
        points = cells.projected(rows) if points is None else points
        count, width = cells.centers.shape
        numbers = np.arange(len(rows), dtype=np.int64)
        cell = np.ascontiguousarray(cell, dtype=np.int64)
        with faiss_threads(1) as faiss:
            self._lists: Any = faiss.IndexIVFFlat(faiss.IndexFlatL2(width), width, count)
            self._lists.is_trained = True
            if len(rows):
                pointers = [faiss.swig_ptr(a) for a in (points, numbers, cell)]
                self._lists.add_core(len(rows), *pointers)

    def nearest(
        self, asked: Array, points: NDArray[np.float32], near: NDArray[np.int64], count: int
    ) -> dict[str, Array]:
        """Return candidates of some rows in `near` cells (-1: of others), nearest first.

        `number` among all rows, -1 for nobody, `order` in the input, `first` distance, squared and
        in the coordinates of cells, and `away`, in all columns.
        """
        with faiss_threads(1):
            self._lists.nprobe = near.shape[1]
            zeros = np.zeros(near.shape, dtype=np.float32)
            first, found = self._lists.search_preassigned(points, count, near, zeros)
        nobody = found < 0
        at = np.where(nobody, 0, found)
        away = np.full(found.shape, np.inf)
        if len(self._rows):
            away = self._measured(asked, at)
        away[nobody] = np.inf
        order = self._order[at] if len(self._order) else at
        return {
            "number": np.where(nobody, -1, found + self._start),
            "order": np.where(nobody, np.iinfo(np.int64).max, order),
            "first": np.where(nobody, np.inf, first).astype(np.float32),
            "away": away,
        }

    def _measured(self, asked: Array, at: Ints) -> Array:
        """Return distances in all columns; of wide rows in single precision, as one machine."""
        if not self._cells.axes.shape[1]:
            return euclidean_lists(asked, self._rows, at)
        if self._single is None:
            self._single = self._moved(self._rows)
        sources = np.repeat(np.arange(len(asked), dtype=np.int64), at.shape[1])
        squared, moved = np.empty(at.size, dtype=np.float32), self._moved(asked)
        arrays = (moved, sources, self._single, np.ascontiguousarray(at).ravel(), squared)
        with faiss_threads(1) as faiss:
            pointers = [faiss.swig_ptr(array) for array in arrays]
            faiss.pairwise_indexed_L2sqr(asked.shape[1], at.size, *pointers)
        return np.sqrt(squared.astype(np.float64)).reshape(at.shape)

    def _moved(self, rows: Array) -> NDArray[np.float32]:
        """Return rows in single precision; others than such are moved to the origin before."""
        if rows.dtype != np.float32:
            rows = rows - self._cells.center
        return np.ascontiguousarray(rows, dtype=np.float32)


def merged(found: list[dict[str, Array]], count: int, n_neighbors: int) -> dict[str, Array]:
    """Return the nearest of the candidates of all owners, equal ones by their numbers in the input.

    `found` are what `OwnerSearch.nearest` returned for the same rows, without the rows themselves.
    """
    every = {name: np.concatenate([part[name] for part in found], axis=1) for name in found[0]}
    every = _sorted(every, "first", count)
    return _sorted(every, "away", n_neighbors)


def _sorted(every: dict[str, Array], by: str, count: int) -> dict[str, Array]:
    place = np.lexsort((every["order"], every[by]), axis=1)[:, :count]
    return {name: np.take_along_axis(values, place, axis=1) for name, values in every.items()}


def without(found: dict[str, Array], order: Ints) -> dict[str, Array]:
    """Return candidates without the asking rows, whose numbers in the input are given."""
    itself = found["order"] == order[:, None]
    out = {name: values.copy() for name, values in found.items()}
    out["first"][itself], out["away"][itself] = np.inf, np.inf
    out["number"][itself] = -1
    return out


def exact_nearest(asked: Array, rows: Array, order: Ints, cell: Ints, count: int) -> dict[str, Any]:
    """Return the nearest of an owner's rows, by comparing all pairs: numbers, distances, cells."""
    count = min(count, len(rows))
    best_away = np.full((len(asked), 0), np.inf)
    best_order, best_cell = (np.zeros((len(asked), 0), dtype=np.int64) for _ in range(2))
    for start in range(0, len(rows), _ROWS):
        some = slice(start, start + _ROWS)
        block = rows[some].astype(np.float64)
        away = np.square(asked.astype(np.float64)).sum(axis=1)[:, None] - 2.0 * (asked @ block.T)
        away += np.square(block).sum(axis=1)
        shape = away.shape
        best_away = np.hstack([best_away, away])
        best_order = np.hstack([best_order, np.broadcast_to(order[some], shape)])
        best_cell = np.hstack([best_cell, np.broadcast_to(cell[some], shape)])
        if best_away.shape[1] > count:
            keep = np.argpartition(best_away, count - 1, axis=1)[:, :count]
            best_away, best_order, best_cell = (
                np.take_along_axis(values, keep, axis=1)
                for values in (best_away, best_order, best_cell)
            )
    return {"away": best_away, "order": best_order, "cell": best_cell}


def chosen_probes(cells: Cells, asked: Array, truth: Ints, n_rows: int) -> int:
    """Return how many cells have to be looked into for enough of the true neighbours.

    `truth` are the cells of the true neighbours of the rows `asked`. Few and narrow rows look into
    all cells: one machine finds all true neighbours there.
    """
    count = len(cells.centers)
    if not cells.axes.shape[1] and is_quick(n_rows, asked.shape[1]):
        return count
    ranked = cells.nearest(cells.projected(asked), count)
    rank = np.empty_like(ranked)
    np.put_along_axis(rank, ranked, np.arange(count, dtype=rank.dtype)[None, :], axis=1)
    ranks = np.sort(np.take_along_axis(rank, truth.astype(np.intp), axis=1).ravel())
    least = int(ranks[min(len(ranks) - 1, int(np.ceil(_AIM * len(ranks))))]) + 1
    probes = [p for e in range(2, 30) for p in (2**e, 3 * 2 ** (e - 1)) if p < count]
    return next((p for p in probes if p >= least), count)


def recall(truth: Ints, found: Ints) -> float:
    """Return the share of true neighbours that were found, both by their numbers in the input."""
    hits = sum(len(np.intersect1d(a, b)) for a, b in zip(truth, found))
    return hits / max(1, truth.size)
