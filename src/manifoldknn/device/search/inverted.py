"""Approximate neighbours for millions of rows on a device: cells around k-means centres.

Rows are sorted into cells. The rows of one cell are answered together: all cells that
are among the few nearest of any of them are put side by side, and one dense product
compares every row of the cell with everything there. A row so looks into more cells than
it would by itself, and the device has large products to do. How many cells are near
enough is measured, not guessed: on a sample of rows, the search is widened until it finds
the share of true neighbours that was asked for.
"""

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from manifoldknn.base import Ints
from manifoldknn.base.tensors import tile_rows, with_tiles
from manifoldknn.device.precision import matrix_precision
from manifoldknn.device.resident_rows import DeviceRows, smallest, sorted_pairs
from manifoldknn.device.search.neighbors import exact_neighbors

logger = logging.getLogger(__name__)

_CELLS_PER_ROOT = 4.0
_ROWS_PER_CELL = 64  # of the sample that centres are learnt from
_ROUNDS = 8
_UNIT = float(1 << 30)
_TILE_BYTES = 1 << 31
RECALL = 0.97  # of the 30 nearest, as on the CPU
_CHECKED_ROWS = 256
_CHECKED_NEIGHBORS = 30
_COMPANY = 64  # rows of a checked row's cell that are searched beside it
_HOMES = 3  # nearest cells whose links a new row follows
_SPARE = 8  # candidates measured beyond those wanted
_POSITIONS = 1 << 26  # of candidates, held at a time
_SCORES = 1 << 28  # of a product, held at a time
_LINK_BYTES = 1 << 31
_LINKS_AT_ONCE = 1 << 28  # looked through for those that are there


def cell_centers(products: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return 4√n centres of rows within ±1 (but for rounding), and their squared lengths.

    Each is the mean of the sampled rows nearest to it, nearly: Lloyd's iteration. Means are sums of
    whole numbers: rows are counted in units of 2^-30, and integers add up to the same whatever the
    order that a device adds them in.
    """
    n, device = len(products), products.device
    n_cells = max(1, int(_CELLS_PER_ROOT * n**0.5))
    n_cells = min(n_cells, n)
    drawn = rng.permutation(np.unique(rng.integers(n, size=n_cells * _ROWS_PER_CELL)))
    if len(drawn) < n_cells:  # few rows, of which some were drawn several times
        drawn = rng.permutation(n)
    sample = products[torch.as_tensor(drawn, device=device)]
    centers = sample[:n_cells].clone()
    fixed = (sample.double() * _UNIT).round().long() if device.type != "mps" else None
    for _ in range(_ROUNDS):
        norms = centers.square().sum(dim=1)
        nearest = nearest_centers(sample, centers, norms, 1)[:, 0]
        centers = _means(sample, fixed, nearest, centers)
    return centers, centers.square().sum(dim=1)


def _means(sample: Any, fixed: Any, nearest: Any, centers: Any) -> Any:
    """Return the mean of every cell's rows, or its centre where it has none."""
    counts = torch.bincount(nearest, minlength=len(centers))[:, None]
    if fixed is None:  # a device without doubles
        sums = torch.zeros_like(centers).index_add_(0, nearest, sample)
    else:
        whole = torch.zeros(centers.shape, dtype=torch.int64, device=centers.device)
        sums = whole.index_add_(0, nearest, fixed).double() / _UNIT
    return torch.where(counts > 0, (sums / counts.clamp(min=1)).to(centers.dtype), centers)


def nearest_centers(products: Any, centers: Any, norms: Any, count: int) -> Any:
    """Return the numbers of the `count` nearest centres of every row, the nearest first."""
    out = torch.empty((len(products), count), dtype=torch.int64, device=products.device)

    def fill(part: slice) -> None:
        scores = torch.addmm(norms, products[part], centers.T, alpha=-2)
        if count == 1:
            out[part] = scores.argmin(dim=1, keepdim=True)
        else:
            out[part] = torch.topk(scores, count, dim=1, largest=False, sorted=True)[1]

    step = tile_rows(products.device, 6 * len(centers) + 16 * count, _TILE_BYTES)
    with_tiles(fill, len(products), step, products.device)
    return out


class InvertedCells:
    """Approximate neighbours with a measured recall.

    4√n cells: O(n^1.5·d) for each of the cells looked into. Another copy of the rows in
    single precision, sorted by cell.
    """

    def __init__(self, rows: DeviceRows, *, seed: int) -> None:
        self.rows = rows
        rng = np.random.default_rng(seed)
        with matrix_precision("highest"):
            self._centers, self._center_norms = cell_centers(rows.products, rng)
            cells = self._cells_near(rows.products, 1)[:, 0]
        cells, self._order = torch.sort(cells, stable=True)
        self.n_cells = len(self._centers)
        bounds = torch.searchsorted(cells, torch.arange(self.n_cells + 1, device=cells.device))
        self._bounds = bounds.cpu().numpy()
        self._products = rows.products[self._order]
        self._norms = rows.norms[self._order]
        self._tune(rng)

    def _tune(self, rng: np.random.Generator) -> None:
        """Widen the search until a sample of rows finds enough of its neighbours."""
        n, rows = len(self.rows), self.rows
        places = np.sort(rng.choice(n, min(_CHECKED_ROWS, n), replace=False))
        self._checked = self._order[torch.as_tensor(places, device=rows.device)].to(rows.wide)
        asked = rows.exact[self._checked]
        self._truth = exact_neighbors(rows, asked, min(_CHECKED_NEIGHBORS, n - 1) + 1)[0]
        company = np.unique(np.concatenate([self._company(place) for place in places]))
        beside = self._products[torch.as_tensor(company, device=rows.device)]
        tries = [p for e in range(30) for p in (2**e, 3 * 2**e // 2) if p < self.n_cells]
        for n_probes in [*dict.fromkeys(tries), self.n_cells]:
            self.n_probes = n_probes  # cells that every row looks into, at least
            self._link(beside)
            found = self.search(asked, self._truth.shape[1], n_homes=1, everywhere=False)[0]
            self.recall = share_found(self._truth, found)  # of the true 30 nearest
            if self.recall >= RECALL:
                break
        self._link(self._products)
        logger.info(
            "inverted cells: %d of %d, recall %.3f", self.n_probes, self.n_cells, self.recall
        )

    def _cells_near(self, products: Any, count: int) -> Any:
        return nearest_centers(products, self._centers, self._center_norms, count)

    def _link(self, products: Any) -> None:
        """Let every cell know those that some of its rows look into.

        Its centre looks too: there may be no row.
        """
        n_cells, device = self.n_cells, products.device
        linked = torch.zeros(n_cells * n_cells, dtype=torch.bool, device=device)

        def mark_rows(part: slice) -> None:
            near = self._cells_near(products[part], self.n_probes)
            linked[near[:, :1] * n_cells + near] = True

        def mark_centers(part: slice) -> None:
            near = self._cells_near(self._centers[part], self.n_probes)
            own = torch.arange(part.start, part.stop, device=device)
            near[:, -1] = own
            linked[own[:, None] * n_cells + near] = True

        step = tile_rows(device, 6 * n_cells + 64 * self.n_probes, _LINK_BYTES)
        with matrix_precision("highest"):
            with_tiles(mark_centers, n_cells, step, device)
            with_tiles(mark_rows, len(products), step, device)
        pieces = linked.split(max(n_cells, _LINKS_AT_ONCE))
        starts = range(0, n_cells * n_cells, max(n_cells, _LINKS_AT_ONCE))
        found = [torch.nonzero(p).flatten().cpu().numpy() + at for p, at in zip(pieces, starts)]
        pairs = np.concatenate(found)
        self._linked = pairs % n_cells
        self._links = np.searchsorted(pairs, np.arange(n_cells + 1) * n_cells)

    def _company(self, place: int) -> Ints:
        """Return places, in the order by cells, of some rows of one row's cell, and its own."""
        cell = np.searchsorted(self._bounds, place, side="right") - 1
        start, end = self._bounds[cell], self._bounds[cell + 1]
        step = max(1, (end - start) // _COMPANY)
        return np.append(np.arange(start, end, step), place)

    def among_samples(self, count: int) -> tuple[Any, Any]:
        """Return the nearest *other* samples of every sample, as far as they were found."""
        near, away = self.search(self.rows.exact, count, itself=True)
        if count >= self._truth.shape[1] - 1:  # measure again, now that whole cells were searched
            both = torch.cat([self._checked[:, None], near[self._checked].long()], dim=1)
            self.recall = share_found(self._truth, both[:, : self._truth.shape[1]])
            logger.info("recall %.3f", self.recall)
        return near, away

    def search(
        self, Q: Any, count: int, *, itself: bool = False, n_homes: int = _HOMES,
        everywhere: bool = True,
    ) -> tuple[Any, Any]:  # fmt: skip
        """Return the nearest samples of rows like ``rows.exact``, as far as they were found.

        `itself`: Q are the samples, which are not their own neighbours and have one home; new rows
        follow the links of their `n_homes` nearest cells. `everywhere`: look at all samples where
        the cells have too few.
        """
        rows, whole = self.rows, itself
        width = min(count + whole + _SPARE, len(rows))
        with matrix_precision("highest"):
            if whole:
                candidates = self._candidates(rows.products, self._order, self._bounds, width)
            else:
                candidates = self._for_new(rows.prepared(Q)[0], width, n_homes)
        candidates = candidates.to(rows.wide)
        near = torch.empty((len(Q), count), dtype=candidates.dtype, device=rows.wide)
        away = torch.empty((len(Q), count), dtype=torch.float64, device=rows.wide)

        def settle(part: slice) -> None:
            lengths = rows.measured(Q[part], candidates[part])
            if whole:
                own = torch.arange(part.start, part.stop, device=rows.wide)
                lengths.masked_fill_(candidates[part] == own[:, None], torch.inf)
            near[part], away[part] = sorted_pairs(candidates[part], lengths, count)

        with_tiles(settle, len(Q), tile_rows(rows.wide, 80 * width, 1 << 30), rows.wide)
        short = torch.nonzero(torch.isinf(away[:, -1])).flatten()
        if everywhere and len(short):
            exact = exact_neighbors(rows, Q[short], count, itself=short if whole else None)
            near[short], away[short] = exact[0].to(near.dtype), exact[1]
        return near, away

    def _for_new(self, products: Any, width: int, n_homes: int) -> Any:
        """Return candidates of rows that may lie between cells, at home in several."""
        n_homes = min(n_homes, self.n_cells)
        cells = torch.arange(self.n_cells + 1, device=products.device)
        found = []
        for homes in self._cells_near(products, n_homes).T.contiguous():
            homes, order = torch.sort(homes, stable=True)
            bounds = torch.searchsorted(homes, cells).cpu().numpy()
            found.append(self._candidates(products, order, bounds, width))
        both = torch.sort(torch.cat(found, dim=1), dim=1)[0]
        both[:, 1:].masked_fill_(both[:, 1:] == both[:, :-1], -1)  # found in several homes
        return both

    def _candidates(self, products: Any, order: Any, bounds: Ints, width: int) -> Any:
        """Return the `width` nearest by products, in no order; -1 where there are fewer.

        Rows ``order[bounds[c]:bounds[c + 1]]`` are at home in cell c.
        """
        device = products.device
        out = torch.full((len(products), width), -1, dtype=torch.int32, device=device)
        for cell, places in self._unions(np.flatnonzero(np.diff(bounds))):
            asked = order[bounds[cell] : bounds[cell + 1]]
            found = min(width, len(places))
            others, norms = self._products[places].T, self._norms[places]
            numbers = self._order[places].to(torch.int32)

            def select(
                part: slice, asked: Any = asked, found: int = found, others: Any = others,
                norms: Any = norms, numbers: Any = numbers,
            ) -> None:  # fmt: skip
                rows = asked[part]
                scores = torch.addmm(norms, products[rows], others, alpha=-2)
                out[rows, :found] = numbers[smallest(scores, found)[1]]

            step = max(1, _SCORES // max(1, len(places)))
            with_tiles(select, len(asked), step, device, least=1)
        return out

    def _unions(self, cells: Ints) -> Iterator[tuple[int, Any]]:
        """Yield cells and the places of all rows in the cells they are linked with."""
        linked = _ranges(self._links[cells], self._links[cells + 1])
        ends = np.append(0, np.cumsum(self._links[cells + 1] - self._links[cells]))
        sizes, starts = np.diff(self._bounds)[self._linked[linked]], self._linked[linked]
        starts = self._bounds[starts]
        total = np.append(0, np.cumsum(sizes))[ends]
        first = 0
        while first < len(cells):
            last = int(np.searchsorted(total, total[first] + _POSITIONS, side="right")) - 1
            last = max(last, first + 1)
            part = slice(ends[first], ends[last])
            length, start = (
                torch.as_tensor(values[part], device=self.rows.device) for values in (sizes, starts)
            )
            count = int(total[last] - total[first])
            places = torch.arange(count, device=self.rows.device)
            before = torch.cumsum(length, 0) - length
            places += torch.repeat_interleave(start - before, length, output_size=count)
            for group in range(first, last):
                begin, end = total[group] - total[first], total[group + 1] - total[first]
                yield int(cells[group]), places[int(begin) : int(end)]
            first = last


def _ranges(starts: Ints, ends: Ints) -> Ints:
    """Return the numbers of several ranges, one range after another."""
    lengths = ends - starts
    before = np.cumsum(lengths) - lengths
    return np.arange(lengths.sum()) + np.repeat(starts - before, lengths)


def share_found(truth: Any, found: Any) -> float:
    """Return the share of true neighbours that were found; a row names a sample at most once."""
    hits = (truth[:, :, None] == found[:, None, :].to(truth.dtype)).any(dim=2)
    return float(hits.double().mean())
