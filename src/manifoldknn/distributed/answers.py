"""Answers of a fitted model: for its own rows in the order of the input, and for new rows."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.base import Array
from manifoldknn.distributed.folder import Folder, Pieces
from manifoldknn.distributed.inputs import FileRows, ParquetRows, read
from manifoldknn.distributed.pieces import Piece, cells_in, owner_search
from manifoldknn.distributed.search import candidate_number, merged
from manifoldknn.extend.belonging import Belonging
from manifoldknn.extend.reconstruct import reconstruction
from manifoldknn.search.growing import GrowingArray
from manifoldknn.search.neighbors import NeighborIndex, Neighbors
from manifoldknn.vote.similarities import Similarities, combined
from manifoldknn.vote.votes import ClassVote, winners

_ROWS = 1 << 13
_NAMES = ("order", "codes")
_WALKED = ("logs", "log_scale")


def _vote(model: dict[str, Any]) -> ClassVote:
    return ClassVote(np.array(model["prior"]), model["sharpness"], usual=model["usual"])


def write(
    folder: Folder, _chunk: int, start: int, stop: int, offsets: list[int], model: dict[str, Any]
) -> Piece:
    """Class numbers and shares of the rows of a chunk, in the order of the input."""
    vote = _vote(model)
    codes = np.empty(stop - start, dtype=np.int32)
    shares = np.empty((stop - start, len(vote.prior)), dtype=np.float32)
    belonging = folder.read("belonging", 0, "values", mapped=True)
    for part in range(len(offsets) - 1):
        order, given = (folder.read("part", part, name, mapped=True) for name in _NAMES)
        some = np.flatnonzero((order >= start) & (order < stop))
        at = order[some] - start
        logs, scale = (folder.read("walk", part, name, mapped=True)[some] for name in _WALKED)
        votes = vote.shares(logs)
        codes[at] = np.where(given[some] >= 0, given[some], winners(votes))
        shares[at] = vote.doubted(votes, scale, belonging[offsets[part] + some])
    return {}, {"codes": codes, "shares": shares}


def answered(folder: Folder, chunk: int, name: str, classes: Array | None) -> Array:
    """Return the answers for a chunk, by class where `classes` are given."""
    found = folder.read("write", chunk, name)
    return found if classes is None else classes[found]


class CellIndex(NeighborIndex):
    """The search of a fit, for new rows: who is near in the nearest cells."""

    metric = "euclidean"

    def __init__(self, folder: Folder, offsets: list[int], probes: int) -> None:
        self._folder, self._offsets, self._probes = folder, offsets, probes
        self._cells = cells_in(folder)
        self._of_cell = folder.read("split", 0, "part")
        self.X = Pieces(folder, "part", "X", np.asarray(offsets))
        self._owner = lru_cache(maxsize=2)(self._opened)

    def _opened(self, owner: int) -> Any:
        return owner_search(self._folder, owner, self._offsets[owner])

    def among_samples(self, n_neighbors: int) -> Neighbors:
        """Refuse: lists of own rows are pieces of the fit."""
        raise NotImplementedError

    def query(self, Q: Any, n_neighbors: int) -> Neighbors:
        """Return the nearest samples of new rows, as far as they were found."""
        points = self._cells.projected(Q)
        near = self._cells.nearest(points, self._probes).astype(np.int64)
        found = self._merged(Q, points, near, n_neighbors)
        short = np.flatnonzero(np.isinf(found["away"]).any(axis=1))
        if len(short):  # cells too small: look everywhere
            every = np.arange(len(self._cells.centers), dtype=np.int64)
            everywhere = np.tile(every, (len(short), 1))
            again = self._merged(Q[short], points[short], everywhere, n_neighbors)
            for name in found:
                found[name][short] = again[name]
        return Neighbors(found["number"], found["away"])

    def _merged(
        self, Q: Any, points: NDArray[np.float32], near: NDArray[np.int64], n_neighbors: int
    ) -> dict[str, Array]:
        count = candidate_number(n_neighbors, self._cells)
        found = []
        for owner in range(len(self._offsets) - 1):
            mine = np.where(self._of_cell[near] == owner, near, -1)
            here = np.flatnonzero((mine >= 0).any(axis=1))
            if len(here):
                some = self._owner(owner).nearest(Q[here], points[here], mine[here], count)
                whole = {}
                for name, values in some.items():
                    blank = np.inf if values.dtype.kind == "f" else -1
                    whole[name] = np.full((len(Q), values.shape[1]), blank, dtype=values.dtype)
                    whole[name][here] = values
                found.append(whole)
        return merged(found, count, n_neighbors)


def predicted(folder: Folder, model: dict[str, Any], rows: Any, name: str) -> Array:
    """Return shares of new rows, chunk by chunk; `model` is what the client knows of the fit."""
    if isinstance(rows, FileRows | ParquetRows):
        rows = rows.read()
    X = read(None, 0, rows, None, name, None)[1]["X"].astype(model["type"], copy=False)
    if X.shape[1] != model["n_features"]:
        raise ValueError(
            f"{name} has {X.shape[1]} columns, but the model was fitted with {model['n_features']}."
        )
    offsets = model["offsets"]
    index = CellIndex(folder, offsets, model["probes"])
    known: Any = Similarities(
        *(Pieces(folder, "walk", at, np.asarray(offsets)) for at in _WALKED)  # type: ignore[arg-type]
    )
    vote = _vote(model)
    gaps, values = (
        GrowingArray(folder.read("belonging", 0, at, mapped=True)) for at in ("gaps", "values")
    )
    belonging = Belonging(gaps, values, model["typical"], model["limit"])
    out = np.empty((len(X), len(model["prior"])))
    for at in range(0, len(X), _ROWS):
        some = X[at : at + _ROWS]
        width = min(model["graph_neighbors"], offsets[-1])
        made = reconstruction(some, index, n_neighbors=width, n_jobs=1)
        found = combined(made.z, made.indices, known, n_jobs=1)
        belongs = belonging.of_new(made.z, made.indices, made.spacings)
        votes = vote.shares(found.logs)
        out[at : at + _ROWS] = vote.doubted(votes, found.log_scale, belongs)
    return out


def named(shares: Array, classes: Array) -> Array:
    """Return the winning classes."""
    return np.asarray(classes[winners(shares)])
