"""Exact neighbours on a device: tiled matrix products, a running selection, a certificate.

Products in TF32 or single precision name a few more candidates than are wanted; these are
measured in double precision. Rounding bounds how near a sample that was left out can be:
rows for which that is not farther than their last neighbour are searched again, with better
products, in the end with every sample that could count. So the answer is that of
comparing all pairs in double precision, ties by index, whatever the products were.
"""

import logging
from typing import Any

import torch

from manifoldknn.base.tensors import tile_rows, with_tiles
from manifoldknn.device.precision import matrix_precision
from manifoldknn.device.resident_rows import GROUP, DeviceRows, smallest, sorted_pairs

logger = logging.getLogger(__name__)

_TILE_BYTES = 1 << 32
_MOST_COLUMNS = 1 << 20
_SPARE = 16  # candidates beyond those wanted, so that few rows are searched twice
_SINGLE, _DOUBLE = 2.0**-24, 2.0**-53
_TF32 = 2.0**-9  # of a product of two numbers cut to 11 bits each
_TINY = 2.0**-100  # squares and products below it may underflow in single precision
_MOST_DOUBTFUL = 0.2  # share of a tile's rows beyond which better products are cheaper
_MEASURED_PAIRS = 1 << 24


def exact_neighbors(rows: DeviceRows, Q: Any, count: int, *, itself: Any = None) -> tuple[Any, Any]:
    """Return the nearest samples of rows like ``rows.exact``, by distance and then index.

    If Q are samples, `itself` are their numbers: they are not their own neighbours, and `count` is
    at most one less. O(n_queries·n·d) products. A tile of rows follows the free memory and shrinks
    when that runs out.
    """
    near = torch.empty((len(Q), count), dtype=torch.int64, device=rows.wide)
    away = torch.empty((len(Q), count), dtype=torch.float64, device=rows.wide)
    doubtful = torch.empty(len(Q), dtype=torch.bool, device=rows.wide)
    columns = min(len(rows), _MOST_COLUMNS)
    step = tile_rows(rows.device, 4.5 * columns + 60 * rows.n_features, _TILE_BYTES)

    def fill(part: slice) -> None:
        here = None if itself is None else itself[part]
        found = _certified(rows, Q[part], count, here, level["precision"])
        near[part], away[part], doubtful[part] = found
        if level["precision"] == "high" and found[2].sum() > _MOST_DOUBTFUL * len(found[2]):
            level["precision"] = "highest"

    def fill_again(part: slice) -> None:
        chosen = again[part]
        own = None if itself is None else itself[chosen]
        found = _certified(rows, Q[chosen], count, own, "highest")
        near[chosen], away[chosen], doubtful[chosen] = found

    # TF32 exists on CUDA devices only; nobody else multiplies any faster with it.
    level = {"precision": "high" if rows.device.type == "cuda" else "highest"}
    rounded = level["precision"] == "high"
    with_tiles(fill, len(Q), step, rows.device)
    again = torch.nonzero(doubtful).flatten()  # together: they are few
    if rounded and len(again):
        with_tiles(fill_again, len(again), step, rows.device)
        again = torch.nonzero(doubtful).flatten()
    if len(again):
        own = None if itself is None else itself[again]
        near[again], away[again] = _among_all(rows, Q[again], count, own, away[again, -1])
    return near, away


def _certified(
    rows: DeviceRows, Q: Any, count: int, itself: Any, precision: str
) -> tuple[Any, Any, Any]:
    """Return neighbours, distances, and which rows may lack one."""
    n = len(rows)
    width = min(count + _SPARE + (itself is not None), n)
    products, norms = rows.prepared(Q)
    with matrix_precision(precision):
        scores, candidates = _candidates(rows, products, width)
    candidates = candidates.to(rows.wide)
    lengths = rows.measured(Q, candidates)
    if itself is not None:
        lengths.masked_fill_(candidates == itself[:, None], torch.inf)
    near, away = sorted_pairs(candidates, lengths, count)
    if width == n:
        return near, away, torch.zeros(len(Q), dtype=torch.bool, device=rows.wide)
    # Who was left out has a product no smaller than the largest that was kept.
    norms = norms.to(rows.wide, torch.float64)
    left_out = (scores.amax(dim=1).to(rows.wide, torch.float64) + norms).clamp(min=0)
    error = _rounding(rows.n_features, precision) * (norms + (norms * left_out).sqrt())
    error += 4 * _SINGLE * (norms + left_out) + _TINY
    return near, away, left_out - error <= _squared(rows, away[:, -1])


def _rounding(n_features: int, precision: str) -> float:
    """Return how wrong 2xy may be, relative to ‖x‖‖y‖.

    Sums of d products are wrong by far less than 4√d roundings.
    """
    sums = (4 * n_features**0.5 + 8) * _SINGLE
    return 2 * (sums + (_TF32 if precision == "high" else 0.0))


def _squared(rows: DeviceRows, distances: Any) -> Any:
    """Return distances as squared lengths between rows for products."""
    if rows.metric == "cosine":
        return 2 * distances * rows.unit**2
    return (distances * rows.unit).square()


def _candidates(rows: DeviceRows, products: Any, width: int) -> tuple[Any, Any]:
    """Return the `width` samples with the smallest ‖x‖² - 2xq, in no order."""
    values: Any = None
    columns: Any = None
    for start in range(0, len(rows), _MOST_COLUMNS):
        part = slice(start, start + _MOST_COLUMNS)
        scores = torch.addmm(rows.norms[part], products, rows.products[part].T, alpha=-2)
        some, where = smallest(scores, min(width, scores.shape[1]))
        where += start
        if values is not None:
            some, where = torch.cat([values, some], dim=1), torch.cat([columns, where], dim=1)
            some, place = torch.topk(
                some, min(width, some.shape[1]), dim=1, largest=False, sorted=False
            )
            where = where.gather(1, place)
        values, columns = some, where
    return values, columns


def _among_all(rows: DeviceRows, Q: Any, count: int, itself: Any, limits: Any) -> tuple[Any, Any]:
    """Return neighbours among all samples that are not certainly farther than `limits`.

    All of them are measured: duplicates, of which there may be more than candidates.
    """
    near = torch.empty((len(Q), count), dtype=torch.int64, device=rows.wide)
    away = torch.empty((len(Q), count), dtype=torch.float64, device=rows.wide)

    def fill(part: slice) -> None:
        query, sample = _possible(rows, Q[part], limits[part])
        if itself is not None:
            other = sample != itself[part][query]
            query, sample = query[other], sample[other]
        lengths = torch.empty(len(query), dtype=torch.float64, device=rows.wide)
        step = max(1, _MEASURED_PAIRS // rows.n_features)
        for start in range(0, len(query), step):
            pairs = slice(start, start + step)
            lengths[pairs] = rows.measured(Q[part][query[pairs]], sample[pairs, None])[:, 0]
        order = torch.argsort(lengths, stable=True)  # samples are in order already
        order = order[torch.argsort(query[order], stable=True)]
        starts = torch.searchsorted(query, torch.arange(part.stop - part.start, device=rows.wide))
        chosen = order[starts[:, None] + torch.arange(count, device=rows.wide)]
        near[part], away[part] = sample[chosen], lengths[chosen]

    step = tile_rows(rows.wide, 48 * len(rows), _TILE_BYTES)
    with_tiles(fill, len(Q), step, rows.wide, least=1)
    return near, away


def _possible(rows: DeviceRows, Q: Any, limits: Any) -> tuple[Any, Any]:
    """Return pairs of row and sample, in order, that may be as near as `limits`."""
    centered = (Q - rows.center) * rows.unit
    lengths = centered.square().sum(dim=1)
    mask = torch.empty((len(Q), len(rows)), dtype=torch.bool, device=rows.wide)
    reach = _squared(rows, limits)
    step = max(GROUP, _MEASURED_PAIRS // rows.n_features)
    for start in range(0, len(rows), step):
        others = (rows.exact[start : start + step] - rows.center) * rows.unit
        norms = others.square().sum(dim=1)
        scores = torch.addmm(norms, centered, others.T, alpha=-2) + lengths[:, None]
        if rows.metric == "cosine":
            scores += (norms == 0) * rows.unit**2 + (lengths == 0)[:, None] * rows.unit**2
        error = 4 * (4 * rows.n_features**0.5 + 8) * _DOUBLE * (norms + lengths[:, None])
        mask[:, start : start + step] = scores - error - 1e-300 <= reach[:, None] * (1 + 1e-14)
    query, sample = torch.nonzero(mask, as_tuple=True)
    return query, sample
