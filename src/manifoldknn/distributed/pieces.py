"""What tasks do: each makes one piece of a stage from pieces of stages before.

A function here takes the folder, the number of its piece and settings, and returns a note and
arrays. `made` writes them, or finds that they are there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.base import Array, Ints
from manifoldknn.base.csr import narrowest
from manifoldknn.base.heap import freed_arrays_kept
from manifoldknn.distributed.cells import Cells, sample_size, sampled_rows
from manifoldknn.distributed.edges import (
    Listed,
    Seen,
    forest_of_rests,
    joining_pairs,
    kept_pairs,
    nearest_of_largest,
    rows_to_join,
    seen_pairs,
)
from manifoldknn.distributed.folder import Folder
from manifoldknn.distributed.search import (
    OwnerSearch,
    candidate_number,
    exact_nearest,
    merged,
    without,
)
from manifoldknn.extend.belonging import AROUND, Belonging

_ROWS = 1 << 14  # searched at a time
CHECKED = 192  # rows on which recall is measured

Piece = tuple[dict[str, Any], dict[str, Array]]


def made(path: str, stage: str, number: int, make: Callable[..., Piece], *how: Any) -> Any:
    """Make a piece, unless it is there, and return its note."""
    folder = Folder(path)
    note = folder.note(stage, number)
    if note is None:
        with freed_arrays_kept():
            note, arrays = make(folder, number, *how)
        folder.write(stage, number, note, **arrays)
    return note


def sample(folder: Folder, chunk: int, start: int, n_rows: int, seed: int) -> Piece:
    """Rows of the sample, and of those on which recall is measured, that lie in a chunk."""
    X = folder.read("read", chunk, "X", mapped=True)
    out = {}
    for name, size, lot in (("sample", sample_size(n_rows), 0), ("checked", CHECKED, 1)):
        rows = sampled_rows(n_rows, size, seed + lot)
        rows = rows[(rows >= start) & (rows < start + len(X))]
        out[name], out[name + "_rows"] = X[rows - start], rows
    return {}, out


def cells(folder: Folder, _number: int, n_chunks: int, n_rows: int, seed: int) -> Piece:
    """Find the cells of all rows."""
    rows = np.concatenate([folder.read("sample", c, "sample") for c in range(n_chunks)])
    found = Cells.of_sample(rows, n_rows, seed)
    return {}, {"centers": found.centers, "center": found.center, "axes": found.axes}


def cells_in(folder: Folder) -> Cells:
    """Return the cells of a folder."""
    return Cells(*(folder.read("cells", 0, name) for name in ("centers", "center", "axes")))


def assign(folder: Folder, chunk: int, start: int, classes: list[int]) -> Piece:
    """Sort the rows of a chunk by cell; class numbers become those of all chunks."""
    X, known = folder.read("read", chunk, "X"), cells_in(folder)
    cell = np.concatenate(
        [
            known.nearest(known.projected(X[at : at + _ROWS]), 1)[:, 0]
            for at in range(0, max(1, len(X)), _ROWS)
        ]
    )
    order = np.argsort(cell, kind="stable")
    codes = np.append(np.array(classes, dtype=np.int32), np.int32(-1))
    return {}, {
        "X": X[order],
        "cell": cell[order],
        "order": (start + order).astype(np.int64),
        "codes": codes[folder.read("read", chunk, "codes")[order]],
        "counts": np.bincount(cell, minlength=len(known.centers)),
    }


def part(folder: Folder, number: int, n_chunks: int) -> Piece:
    """Bring the rows of a part together, sorted by cell and number in the input."""
    of_cell, here = folder.read("split", 0, "part"), []
    for chunk in range(n_chunks):
        cell = folder.read("assign", chunk, "cell")
        here.append(np.flatnonzero(of_cell[cell] == number))

    def rows_of(chunk: int, name: str) -> Array:
        return folder.read("assign", chunk, name, mapped=True)[here[chunk]]

    names, chunks = ("cell", "order", "codes"), range(n_chunks)
    columns = {name: np.concatenate([rows_of(c, name) for c in chunks]) for name in names}
    place = np.lexsort((columns["order"], columns["cell"]))
    out = {name: values[place] for name, values in columns.items()}
    to, end = np.empty_like(place), 0
    to[place] = np.arange(len(place))
    for chunk in chunks:  # rows may be wide: each goes straight to its place
        rows = rows_of(chunk, "X")
        if not chunk:
            out["X"] = np.empty((len(place), rows.shape[1]), dtype=rows.dtype)
        out["X"][to[end : end + len(rows)]] = rows
        end += len(rows)
    return {"rows": len(place)}, out


def truth(folder: Folder, number: int, n_chunks: int, count: int) -> Piece:
    """Exact neighbours of the checked rows among those of a part."""
    asked = np.concatenate([folder.read("sample", c, "checked") for c in range(n_chunks)])
    X, order, cell = (folder.read("part", number, name, mapped=True) for name in _ROW_NAMES)
    return {}, exact_nearest(asked, X, order, cell, count)


_ROW_NAMES = ("X", "order", "cell")


def route(folder: Folder, number: int, probes: int) -> Piece:
    """Nearest cells of the rows of a part, and their coordinates."""
    known, X = cells_in(folder), folder.read("part", number, "X", mapped=True)
    out = np.empty((len(X), min(probes, len(known.centers))), dtype=np.int32)
    points = np.empty((len(X), known.centers.shape[1]), dtype=np.float32)
    for at in range(0, len(X), _ROWS):
        some = slice(at, at + _ROWS)
        points[some] = known.projected(X[some])
        out[some] = known.nearest(points[some], probes)
    return {}, {"near": out, "points": points}


def find(folder: Folder, owner: int, offsets: list[int], n_neighbors: int) -> Piece:
    """Candidates in the cells of an owner, for the rows of all parts that ask for them."""
    known, of_cell = cells_in(folder), folder.read("split", 0, "part")
    search = owner_search(folder, owner, offsets[owner], folder.read("route", owner, "points"))
    count, number = candidate_number(n_neighbors, known), narrowest(offsets[-1])
    out: dict[str, Array] = {}
    for asking in range(len(offsets) - 1):
        near, points = (folder.read("route", asking, name, mapped=True) for name in _ROUTED)
        X, order = (folder.read("part", asking, name, mapped=True) for name in ("X", "order"))
        rows, found = [], []
        for at in range(0, len(near), _ROWS):
            some = near[at : at + _ROWS].astype(np.int64)
            some[of_cell[some] != owner] = -1
            here = np.flatnonzero((some >= 0).any(axis=1))
            if len(here):
                rows_here = at + here
                answer = search.nearest(X[rows_here], points[rows_here], some[here], count + 1)
                answer = without(answer, order[rows_here])
                most = np.iinfo(number).max
                answer["order"] = np.minimum(answer["order"], most).astype(number)
                answer["number"] = answer["number"].astype(number)
                rows.append(rows_here)
                found.append(answer)
        out[f"row{asking}"] = np.concatenate([np.empty(0, dtype=np.intp), *rows])
        for name in found[0] if found else ():
            out[f"{name}{asking}"] = np.concatenate([answer[name] for answer in found])
    return {}, out


_ROUTED = ("near", "points")


def owner_search(
    folder: Folder, owner: int, start: int, points: NDArray[np.float32] | None = None
) -> OwnerSearch:
    """Open the search through the cells of an owner, given the coordinates of its rows if known."""
    X, order, cell = (folder.read("part", owner, name) for name in _ROW_NAMES)
    return OwnerSearch(cells_in(folder), X, order, cell, start, points)


def lists(folder: Folder, number: int, offsets: list[int], n_neighbors: int) -> Piece:
    """Neighbours of the rows of a part: of candidates of all owners the nearest."""
    known, n_parts = cells_in(folder), len(offsets) - 1
    count, n = candidate_number(n_neighbors, known), offsets[number + 1] - offsets[number]
    rows = [folder.read("find", owner, f"row{number}") for owner in range(n_parts)]
    names = ("number", "order", "first", "away")
    found = [
        [folder.read("find", owner, f"{name}{number}", mapped=True) for name in names]
        if len(rows[owner]) else None
        for owner in range(n_parts)
    ]  # fmt: skip
    out = _empty_lists(n, n_neighbors)
    for at in range(0, n, _ROWS):
        here = slice(at, min(at + _ROWS, n))
        parts = []
        for asked, answers in zip(rows, found):
            some = slice(*np.searchsorted(asked, (here.start, here.stop)))
            if some.start < some.stop and answers is not None:
                blank = _empty_lists(here.stop - here.start, answers[0].shape[1])
                for name, values in zip(names, answers):
                    blank[name][asked[some] - at] = values[some]
                parts.append(blank)
        for name, values in merged(parts, count, n_neighbors).items():
            out[name][here, : values.shape[1]] = values
    short = np.flatnonzero(np.isinf(out["away"]).any(axis=1))
    if len(short):  # cells too small: look everywhere
        _look_everywhere(folder, number, offsets, short, out)
    return {}, _narrow(out, offsets[-1])


def _empty_lists(n: int, width: int) -> dict[str, Array]:
    return {
        "number": np.full((n, width), -1, dtype=np.int64),
        "order": np.full((n, width), np.iinfo(np.int64).max),
        "first": np.full((n, width), np.inf, dtype=np.float32),
        "away": np.full((n, width), np.inf),
    }


def _narrow(out: dict[str, Array], n_rows: int) -> dict[str, Array]:
    names = {"number": narrowest(n_rows), "order": narrowest(n_rows), "away": np.float64}
    return {name: out[name].astype(dtype) for name, dtype in names.items()}


def _look_everywhere(
    folder: Folder, number: int, offsets: list[int], short: Ints, out: dict[str, Array]
) -> None:
    X, order = (folder.read("part", number, name, mapped=True)[short] for name in ("X", "order"))
    known = cells_in(folder)
    points = known.projected(X)
    everywhere = np.tile(np.arange(len(known.centers), dtype=np.int64), (len(short), 1))
    width = out["away"].shape[1]
    found = [
        without(
            owner_search(folder, owner, offsets[owner]).nearest(X, points, everywhere, width + 1),
            order,
        )
        for owner in range(len(offsets) - 1)
    ]
    for name, values in merged(found, len(offsets) * (width + 1), width).items():
        out[name][short] = values


def given(folder: Folder, number: int, offsets: list[int], n_neighbors: int) -> Piece:
    """Neighbours that the user brought, of the rows of a part."""
    orders = [folder.read("part", p, "order") for p in range(len(offsets) - 1)]
    place = np.empty(offsets[-1], dtype=np.int64)
    place[np.concatenate(orders)] = np.arange(offsets[-1])
    rows = orders[number]
    indices, away = (folder.read("given", 0, name, mapped=True)[rows] for name in _GIVEN)
    found = {"number": place[indices], "order": indices.astype(np.int64), "away": away}
    found["first"] = np.zeros(away.shape, dtype=np.float32)
    alone = without(found, rows)
    out = {name: alone[name] for name in ("number", "order", "away")}
    by = np.lexsort((out["order"], out["away"]), axis=1)[:, :n_neighbors]
    out = {name: np.take_along_axis(values, by, axis=1) for name, values in out.items()}
    return {}, _narrow(out, offsets[-1])


_GIVEN = ("indices", "distances")


def told(folder: Folder, number: int, offsets: list[int]) -> Piece:
    """Sort by part what a part lists of rows of others."""
    numbers = folder.read("lists", number, "number", mapped=True)
    owner = np.searchsorted(offsets, numbers, side="right") - 1
    row, place = np.nonzero(owner != number)
    sort = np.argsort(owner[row, place], kind="stable")
    row, place = row[sort], place[sort]
    ends = np.searchsorted(owner[row, place], np.arange(len(offsets)))
    orders, away = (folder.read("lists", number, name, mapped=True) for name in ("order", "away"))
    return {}, {
        "row": folder.read("part", number, "order")[row],
        "number": offsets[number] + row,
        "other": orders[row, place].astype(np.int64),
        "place": place,
        "away": away[row, place],
        "ends": ends,
    }


def _heard(folder: Folder, number: int, n_parts: int) -> dict[str, Array]:
    """Return what others list of the rows of a part."""
    names, found = ("row", "number", "other", "place", "away"), []
    for other in range(n_parts):
        ends = folder.read("told", other, "ends")
        some = slice(ends[number], ends[number + 1])
        found.append([folder.read("told", other, name, mapped=True)[some] for name in names])
    return dict(zip(names, (np.concatenate(column) for column in zip(*found))))


def seen(folder: Folder, number: int, n_parts: int, n_neighbors: int) -> Piece:
    """Pairs that a part sees, and its forest of them."""
    heard = _heard(folder, number, n_parts)
    listed = Listed(*(heard[name] for name in ("row", "other", "place", "away")))
    orders, away = (folder.read("lists", number, name) for name in ("order", "away"))
    order = folder.read("part", number, "order")
    found = seen_pairs(order, orders.astype(np.int64), away, listed, n_neighbors)
    repeats = ((orders < order[:, None]) & (away == 0)).any(axis=1)
    arrays = {name: getattr(found, name) for name in _SEEN}
    rest = {f"rest_{name}": values for name, values in found.rest.items()}
    return {"groups": int(found.group.max(initial=-1)) + 1}, {**arrays, **rest, "repeats": repeats}


_SEEN = ("low", "high", "length", "keep", "certain", "group")
_REST = ("pair", "one", "other")


def _seen(folder: Folder, number: int) -> Seen:
    rest = {name: folder.read("seen", number, f"rest_{name}") for name in _REST}
    arrays: Any = {name: folder.read("seen", number, name) for name in _SEEN}
    return Seen(**arrays, rest=rest)


def rest(folder: Folder, _number: int, groups: list[int]) -> Piece:
    """Solve what the forests of all parts leave over."""
    rests, out = [], {}
    for number in range(len(groups)):
        at, one, other = (folder.read("seen", number, f"rest_{name}") for name in _REST)
        low, high, length = (
            folder.read("seen", number, name, mapped=True)[at] for name in ("low", "high", "length")
        )
        rests.append({"low": low, "high": high, "length": length, "one": one, "other": other})
    pairs, parts, count = forest_of_rests(rests, groups)
    sizes = np.zeros(count, dtype=np.int64)
    for number, of_groups in enumerate(parts):
        out[f"part{number}"] = of_groups
        if count > 1:
            sizes += np.bincount(of_groups[folder.read("seen", number, "group")], minlength=count)
    return {"components": count}, {"pairs": pairs, "sizes": sizes, **out}


def _component(folder: Folder, number: int) -> Ints:
    of_groups = folder.read("rest", 0, f"part{number}")
    return of_groups[folder.read("seen", number, "group")]


def apart(folder: Folder, number: int, start: int) -> Piece:
    """Rows of a part that are looked at to join separate pieces of the graph."""
    component, sizes = _component(folder, number), folder.read("rest", 0, "sizes")
    X, order = (folder.read("part", number, name, mapped=True) for name in ("X", "order"))
    asked = rows_to_join(sizes, component, X.shape[1])
    some = np.flatnonzero(asked & ~folder.read("seen", number, "repeats"))
    names = {"X": X[some], "order": order[some], "number": start + some, "part": component[some]}
    return {}, names


def near(folder: Folder, number: int, start: int, n_parts: int) -> Piece:
    """Find the rows of a part, in the largest piece of the graph, nearest to rows apart."""
    asked = np.concatenate([folder.read("apart", p, "X") for p in range(n_parts)])
    component, sizes = _component(folder, number), folder.read("rest", 0, "sizes")
    largest = (component == sizes.argmax()) & ~folder.read("seen", number, "repeats")
    X, order = (folder.read("part", number, name) for name in ("X", "order"))
    some = np.flatnonzero(largest)
    at, away = nearest_of_largest(asked, X[some], order[some])
    if not len(some):
        none = np.full(len(asked), np.iinfo(np.int64).max)
        return {}, {"away": away, "order": none, "number": none, "X": asked}
    at = some[at]
    return {}, {"away": away, "order": order[at], "number": start + at, "X": X[at]}


def join(folder: Folder, _number: int, n_parts: int) -> Piece:
    """Edges between separate pieces of the graph."""
    names = ("X", "order", "number", "part")
    rows = [
        np.concatenate([folder.read("apart", p, name) for p in range(n_parts)]) for name in names
    ]
    found = [
        [folder.read("near", p, name) for name in ("away", "order", "number", "X")]
        for p in range(n_parts)
    ]
    away, order, number = (np.stack([part[at] for part in found], axis=1) for at in range(3))
    best = np.lexsort((order, away), axis=1)[:, 0]
    each = np.arange(len(best))
    largest = np.full(len(best), int(folder.read("rest", 0, "sizes").argmax()))
    coordinates = np.stack([part[3] for part in found], axis=1)[each, best]
    more = (coordinates, order[each, best], number[each, best], largest)
    X, order, number, part = (np.concatenate(pair) for pair in zip(rows, more))
    first = np.unique(order, return_index=True)[1]
    low, high, length = joining_pairs(X[first], order[first], part[first])
    place = np.searchsorted(order[first], [low, high])
    ends = number[first][place]
    return {}, {"low": ends[0], "high": ends[1], "length": length}


def edges(folder: Folder, number: int, offsets: list[int], joined: bool) -> Piece:
    """Edges of the pruned graph at the rows of a part, by the numbers of both ends."""
    found, pairs = _seen(folder, number), folder.read("rest", 0, "pairs")
    keep = np.flatnonzero(kept_pairs(found, pairs))
    order, heard = folder.read("part", number, "order"), _heard(folder, number, len(offsets) - 1)
    names = [order, folder.read("lists", number, "order").ravel(), heard["row"]]
    numbers = [
        offsets[number] + np.arange(len(order)),
        folder.read("lists", number, "number").ravel(),
        heard["number"],
    ]
    name, first = np.unique(np.concatenate(names), return_index=True)
    place = np.concatenate(numbers)[first].astype(np.int64)
    ends = [place[np.searchsorted(name, end[keep])] for end in (found.low, found.high)]
    one, other, length = ends[0], ends[1], found.length[keep]
    if joined:
        more = [folder.read("join", 0, name) for name in ("low", "high", "length")]
        inside = [(e >= offsets[number]) & (e < offsets[number + 1]) for e in more[:2]]
        here = inside[0] | inside[1]
        one, other, length = (
            np.concatenate([a, b[here]]) for a, b in zip((one, other, length), more)
        )
    own = (one >= offsets[number]) & (one < offsets[number + 1])
    one, other = np.where(own, one, other), np.where(own, other, one)
    return {"edges": len(one)}, {"one": one, "other": other, "length": length}


def belonging(folder: Folder, _number: int, n_parts: int) -> Piece:
    """Judge how well all rows lie among the others."""
    gaps, near = [], []
    for part in range(n_parts):
        away = folder.read("lists", part, "away", mapped=True)
        first = (away > 0).argmax(axis=1)
        gaps.append(away[np.arange(len(away)), first])
        near.append(folder.read("lists", part, "number", mapped=True)[:, :AROUND])
    found = Belonging.of_samples(np.concatenate(gaps), np.concatenate(near))
    arrays = {"gaps": found.gaps.values, "values": found.values.values}
    return {"typical": found.typical, "limit": found.limit}, arrays
