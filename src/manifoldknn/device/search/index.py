"""The neighbour search of a model that was fitted on a device.

PyTorch is imported when it is needed: a model may be read where there is none.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np

from manifoldknn.base import Array, Ints
from manifoldknn.base.tensors import as_numpy, chosen_device, is_tensor, to_host
from manifoldknn.search.neighbors import NeighborIndex, Neighbors

if TYPE_CHECKING:
    from manifoldknn.device.resident_rows import DeviceRows
    from manifoldknn.device.search.inverted import InvertedCells

logger = logging.getLogger(__name__)

# Up to this much an H200 takes about a second; a pair costs its products and its place in
# the selection, which is worth about 500 more.
_EXACT_WORK = 3e13
_PER_PAIR = 500
_FEW_PRODUCTS = 1e11  # for new rows: looking at every sample takes milliseconds


def exact_pays(n_queries: int, n_samples: int, n_features: int, *, few: bool = False) -> bool:
    """Tell whether comparing everything takes no more than about a second on an H200.

    If `few`, a few milliseconds: quicker than an approximate search, not only quick.

    >>> from manifoldknn.device.search.index import exact_pays
    >>> exact_pays(70_000, 70_000, 784), exact_pays(1_000_000, 1_000_000, 128)
    (True, False)
    """
    work = float(n_queries) * n_samples * (n_features + _PER_PAIR)
    return work <= (_FEW_PRODUCTS if few else _EXACT_WORK)


def device_name(device: Any) -> str:
    """Return a device as the parameter of the classifier names it."""
    return {"cpu": "torch:cpu", "mps": "mps"}.get(device.type, str(device))


class TorchIndex(NeighborIndex):
    """Neighbours of rows, an array or a tensor, that are kept on a device.

    What it returns are NumPy arrays, as every index does; the ``device_...`` methods
    leave them where they are. Written down, it is its samples: the device is opened again
    when the first question comes, or the CPU is asked if there is none. The engine "auto" is
    "exact" up to some 200,000 rows of 128 columns, then "inverted".
    """

    def __init__(
        self, X: Any, *, metric: Any, device: Any, engine: str = "auto", seed: int = 0
    ) -> None:
        self.metric, self.engine, self.seed = metric, engine, seed
        self._place, self._samples = device_name(device), X
        self._host: Array | None = None if is_tensor(X) else X
        self._open(device)

    def _open(self, device: Any) -> None:
        from manifoldknn.device.resident_rows import DeviceRows
        from manifoldknn.device.search.inverted import InvertedCells

        self._device_rows: DeviceRows | None = DeviceRows(self._samples, self.metric, device)
        exact = exact_pays(self.n_samples, *self._samples.shape)
        name = ("exact" if exact else "inverted") if self.engine == "auto" else self.engine
        logger.info("neighbour search: %s on %s", name, device)
        self._cells: InvertedCells | None = None
        if name == "inverted":
            self._cells = InvertedCells(self._device_rows, seed=self.seed)
        self._instead: NeighborIndex | None = None

    def __getstate__(self) -> dict[str, Any]:
        kept = ("metric", "engine", "seed", "_place")
        return {name: self.__dict__[name] for name in kept} | {"_host": self.X}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state | {"_samples": state["_host"], "_device_rows": None, "_cells": None}
        self._instead = None

    def _ready(self) -> bool:
        """Open what was written down; tell whether the device can be asked."""
        if self._device_rows is None and self._instead is None:
            try:
                self._open(chosen_device(self._place, self._samples))
            except (ImportError, ValueError):
                from manifoldknn.search.engines import open_index

                # The user was told when the model was read: `usable_steps`.
                logger.info("there is no %s: neighbours are searched on the CPU", self._place)
                self._instead = open_index(
                    self.X, self.engine, metric=self.metric, n_jobs=None, seed=self.seed
                )
        return self._device_rows is not None

    @property
    def X(self) -> Array:
        """The samples, on the CPU: copied there when first asked for."""
        if self._host is None:
            self._host = to_host(self._samples)
        return self._host

    @property
    def n_samples(self) -> int:
        return int(self._samples.shape[0])

    @property
    def template(self) -> Array:
        """No samples, of the dtype that new rows must have."""
        if self._host is not None:
            return self._host[:0]
        return as_numpy(self._samples[:0])

    @property
    def is_exact(self) -> bool:  # type: ignore[override]
        """Whether every pair counts."""
        return self._ready() and self._cells is None

    @property
    def device_rows(self) -> DeviceRows | None:
        """The samples on the device; None where that is not there."""
        return self._device_rows if self._ready() else None

    def rows(self, chosen: Ints) -> Any:
        if self._host is not None:
            return self._host[chosen]
        import torch

        return to_host(self._samples[torch.as_tensor(chosen, device=self._samples.device)])

    def device_lists(self, n_neighbors: int) -> tuple[Any, Any]:
        """Return the nearest *other* samples of every sample, at most all of them, as tensors.

        Nearest first, equal distances by index.
        """
        import torch

        from manifoldknn.device.search.neighbors import exact_neighbors

        self._ready()
        rows = self._device_rows
        assert rows is not None
        if self._cells is not None:
            return self._cells.among_samples(n_neighbors)
        everyone = torch.arange(len(rows), device=rows.wide)
        return exact_neighbors(rows, rows.exact, n_neighbors, itself=everyone)

    def device_query(self, Q: Any, n_neighbors: int) -> tuple[Any, Any]:
        """Return the nearest samples of new rows like ``device_rows.exact``, as tensors."""
        from manifoldknn.device.search.neighbors import exact_neighbors

        rows = self._device_rows
        assert rows is not None
        quick = exact_pays(len(Q), len(rows), rows.n_features, few=True)
        if self._cells is None or quick:
            return exact_neighbors(rows, Q, n_neighbors)
        near, away = self._cells.search(Q, n_neighbors)
        return near.long(), away

    def among_samples(self, n_neighbors: int) -> Neighbors:
        if not self._ready():
            assert self._instead is not None
            return self._instead.among_samples(n_neighbors)
        near, away = self.device_lists(n_neighbors)
        return Neighbors(to_host(near, np.intp), to_host(away))

    def query(self, Q: Any, n_neighbors: int) -> Neighbors:
        if not self._ready():
            assert self._instead is not None
            return self._instead.query(Q, n_neighbors)
        assert self._device_rows is not None
        near, away = self.device_query(self._device_rows.new(Q), n_neighbors)
        return Neighbors(to_host(near, np.intp), to_host(away))
