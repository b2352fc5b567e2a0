"""The steps of the method on a device of PyTorch."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np

from manifoldknn.base import Bools, Floats, Ints
from manifoldknn.base.samples import check_new_samples, check_samples
from manifoldknn.base.tensors import (
    as_numpy,
    doubles,
    free_bytes,
    is_out_of_memory,
    is_tensor,
    moved,
    release,
    to_host,
)
from manifoldknn.device.checked_samples import check_new_tensor, check_tensor
from manifoldknn.device.extend import KnownSimilarities, device_similarities
from manifoldknn.device.graph.constrained import TorchGraph, TorchRecipe, torch_graph
from manifoldknn.device.memory import available_memory
from manifoldknn.device.resident_rows import check_searchable
from manifoldknn.device.search.index import TorchIndex, device_name, exact_pays
from manifoldknn.device.steps import BuiltGraph, Steps, usable_steps
from manifoldknn.device.walk.columns import (
    Kept,
    hidden_on_device,
    walk_by_class_on_device,
    walk_by_label_on_device,
)
from manifoldknn.search.engines import GivenIndex, check_neighbors, lists_brought
from manifoldknn.search.neighbors import NeighborIndex, Neighbors
from manifoldknn.search.user_searches import SearcherIndex, is_searcher
from manifoldknn.vote.similarities import Similarities
from manifoldknn.vote.walks import Walked
from manifoldknn.walk.choose import MANY_ROWS
from manifoldknn.walk.iteration import LONG_WALK

logger = logging.getLogger(__name__)

# Bytes on the device, at the peak of search or graph.
_PER_CANDIDATE = 80
_FOR_PRODUCTS = 4  # per value of X: rows in single precision, and the same sorted by cell
_BASE = 5e8

_T = TypeVar("_T")


@dataclass
class TorchBuilt(BuiltGraph):
    """The same on the device as well, as long as somebody holds it."""

    there: TorchRecipe
    graph_there: TorchGraph
    kept: Kept = field(default_factory=Kept)  # what the walk leaves for those with hidden labels


class TorchSteps(Steps):
    """The steps by PyTorch; what is done by NumPy instead, and why, is logged.

    On a device without double precision ("mps"), what needs it is done by PyTorch on the CPU.
    Remembers on the device what the step before handed over as NumPy arrays, and looks whether it
    is handed these very arrays.
    """

    def __init__(self, device: Any) -> None:
        self.device = device
        self._found: tuple[Neighbors, Any, Any, Any] | None = None
        self._known: KnownSimilarities | None = None
        self._opened: Any = lambda: None  # reference to the index that has X on the device

    def __reduce__(self) -> tuple[Any, ...]:
        return usable_steps, (device_name(self.device),)

    def samples(self, estimator: Any, X: Any, y: Any) -> Any:
        """Return the user's samples: a tensor that is on a device stays one."""
        if self._stays(X):
            return check_tensor(estimator, X.to(self.device), y)
        return check_samples(estimator, as_numpy(X), y)

    def _stays(self, X: Any) -> bool:
        """Tell whether X is a tensor to leave on a device: one that has double precision."""
        return is_tensor(X) and X.device.type != "cpu" and doubles(self.device).type != "cpu"

    def check(
        self, X: Any, neighbors: Any, n_labeled: int, *, metric: Any, graph_neighbors: int,
        **settings: Any,
    ) -> None:  # fmt: skip
        """Raise an error if something is not offered here, or will not fit into memory."""
        name = device_name(self.device)
        check_searchable(X, metric, name)
        if settings["graph"] == "full":
            raise ValueError(
                f"graph='full' is not available on device={name!r}: use graph='pruned' or "
                "'union', or device='cpu'."
            )
        if neighbors is not None:
            check_neighbors(neighbors, X, metric=metric, graph_neighbors=graph_neighbors)
        n, d = X.shape
        candidates = max(graph_neighbors, 30)
        n_classes = settings["n_classes"]
        kept = n_labeled if settings["vote"] == "neighbors" else n_classes
        sent = X if isinstance(neighbors, str) else self._sent(X)
        sizes = X.dtype.itemsize, 4
        values = [n * d * _per_value(sent, neighbors, metric, size) for size in sizes]
        here = _BASE + values[0] + n * candidates * _PER_CANDIDATE
        there = n * (candidates * 12 + kept * 16 + n_classes * 24 + 300)
        single = ", or pass X as float32" if values[1] < values[0] else ""
        for needed, free, where, advice in (
            (here, self._free_bytes(), name, single),
            (there, available_memory(), "the host", ""),
        ):
            if free is not None and needed > free:
                raise MemoryError(
                    f"Fitting {n} rows needs about {needed / 1e9:.1f} GB on {where} and "
                    f"{free / 1e9:.1f} GB are free: fit a subset of the rows and predict the "
                    f"others{advice}."
                )

    def _free_bytes(self) -> int | None:
        return free_bytes(self.device) if self.device.type == "cuda" else None

    def open_index(
        self, X: Any, neighbors: Any, *, metric: Any, n_jobs: int | None, seed: int
    ) -> NeighborIndex:
        """Return a neighbour search over X, on the device unless the user brought one."""
        del n_jobs
        opened = partial(TorchIndex, X, metric=metric, device=self.device, seed=seed)
        if isinstance(neighbors, str):
            index = opened(engine=neighbors)
            self._opened = weakref.ref(index)
            return index
        X = as_numpy(X)
        if is_searcher(neighbors):
            return SearcherIndex(X, neighbors, metric=metric)
        return GivenIndex(X, *lists_brought(neighbors), metric=metric, otherwise=opened)

    def searches_exactly(self, X: Any, metric: Any, shape: tuple[int, int]) -> bool:
        """Tell whether ``neighbors="auto"`` is exact for samples like X in some number."""
        del X, metric
        return exact_pays(shape[0], *shape)

    def lists(self, index: NeighborIndex, n_neighbors: int) -> Neighbors:
        """Return the neighbours of every sample."""
        first = getattr(index, "first", index)
        if not isinstance(first, TorchIndex) or first.device_rows is None:
            logger.info("neighbours are taken from the CPU (they are not searched on the device)")
            return super().lists(index, n_neighbors)
        near, away = first.device_lists(n_neighbors)
        numbers: Any = np.int32 if index.n_samples < 2**31 else np.int64
        found = Neighbors(to_host(near, numbers), to_host(away))
        self._found = found, near, away, first.device_rows.exact
        return found

    def graph(self, X: Any, neighbors: Neighbors, codes: Ints, **settings: Any) -> BuiltGraph:
        """Return the constrained graph; the device selects pairs faster than it is sent them."""
        settings |= {"edges": None}
        found, self._found = self._found, None
        place = doubles(self.device)
        if place != self.device:
            logger.info("graph and walk on %s (%s has no double precision)", place, self.device)
        if found is None or found[0] is not neighbors:
            parts = (neighbors.indices, neighbors.distances, self._sent(X))
            found = (neighbors, *(moved(part, place) for part in parts))
        there, graph = torch_graph(*found[1:3], codes, X=found[3], **settings)
        nearest = neighbors.indices[:, : settings["graph_neighbors"]]
        return TorchBuilt(there.to_numpy(X, nearest), graph.to_numpy(), there, graph)

    def _sent(self, X: Any) -> Any:
        """Return samples as they are on the device already, if they are."""
        index = self._opened()
        if index is None or index.device_rows is None or index.X is not X:
            return X
        return index.device_rows.exact

    def walk(
        self, built: BuiltGraph, codes: Ints, n_classes: int, alpha: float, *,
        by_class: bool, n_jobs: int | None, reach: float, start: Floats | None,
        groups: list[Ints], **accuracy: Any,
    ) -> Walked:  # fmt: skip
        """Walk from all labelled samples; groups of them are hidden later, all as one."""
        walked = None
        if isinstance(built, TorchBuilt):
            self._tell(built, alpha)
            go = partial(
                walk_by_label_on_device, built.graph_there, np.flatnonzero(codes >= 0), alpha
            )
            if by_class:
                go = partial(
                    walk_by_class_on_device, built.graph_there, n_classes, alpha, reach=reach,
                    start=start, kept=built.kept,
                )  # fmt: skip
            walked = self._tried(partial(go, **accuracy))
        return walked or super().walk(
            built, codes, n_classes, alpha, by_class=by_class, n_jobs=n_jobs, reach=reach,
            start=start, groups=groups, **accuracy,
        )  # fmt: skip

    def hidden(
        self, built: BuiltGraph, codes: Ints, groups: list[Ints],
        n_classes: int, alpha: float, walked: Walked, *, n_jobs: int | None, **accuracy: Any,
    ) -> list[Floats]:  # fmt: skip
        """Return log f of rows while their labels are hidden, group by group."""
        logs = None
        if isinstance(built, TorchBuilt):
            go = partial(hidden_on_device, built.there, codes, groups, n_classes, alpha)
            logs = self._tried(partial(go, reach=walked.reach, kept=built.kept, **accuracy))
        return logs or super().hidden(
            built, codes, groups, n_classes, alpha, walked, n_jobs=n_jobs, **accuracy
        )

    def _tell(self, built: TorchBuilt, alpha: float) -> None:
        """Say which way the walk is computed, and why, as `manifoldknn.walk.choose` does."""
        reason = "walks are long, so groups of rows are looked for"
        if alpha < LONG_WALK:
            reason = "walks are short"
        elif built.graph_there.n_samples <= MANY_ROWS:
            reason = "rows are few"
        where = built.graph_there.device
        logger.info("way of the walk: iterate on %s (a device always iterates; %s)", where, reason)

    def _tried(self, work: Callable[[], _T]) -> _T | None:
        """Return what the device makes of it, None where it has no room for that."""
        try:
            return work()
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
        logger.info("out of memory on %s: going on with the CPU", self.device)
        release(self.device)
        return None

    def new_rows(self, estimator: Any, X: Any, template: Any) -> Any:
        """Return new rows: a tensor that is on a device stays one."""
        if self._stays(X):
            return check_new_tensor(estimator, X.to(self.device), template)
        plain = type(X) is np.ndarray and X.dtype == template.dtype and X.ndim == 2 and len(X) > 0
        named = hasattr(estimator, "feature_names_in_")
        if plain and not named and X.shape[1] == estimator.n_features_in_:
            return X  # looked through on the device, which is far quicker
        return super().new_rows(estimator, X, template)

    def votes(self, model: Any, X: Any) -> Iterator[tuple[slice, Floats, Floats, Bools]]:
        """Yield chunks of new rows: reconstructed on the device, and voted for."""
        index = model.fitted_.index
        first = getattr(index.first, "opened", index.first)
        on_device = not index.n_late and isinstance(first, TorchIndex)
        rows = first.device_rows if on_device else None
        known = None if rows is None else self._similarities(model.fitted_.walk.similarities, rows)
        if known is None:
            why = "no room on the device" if on_device else "the device does not have all samples"
            logger.info("new rows are answered on the CPU (%s)", why)
            # `new_rows` left it to the device to look them through.
            yield from super().votes(model, check_new_samples(model, as_numpy(X), index.template))
            return
        n_neighbors = min(model.graph_neighbors, index.n_samples)
        for part, found, combination in device_similarities(X, first, known, n_neighbors):
            belonging = model.fitted_.belonging.of_new(*combination)
            yield part, *model.fitted_.votes(found, X[part], belonging), found.unreached

    def _similarities(self, source: Similarities, rows: Any) -> KnownSimilarities | None:
        """Return similarities of samples on the device; None where they find no room."""
        if self._known is None or self._known.source is not source:
            self._known = None  # those of another walk make room
            self._known = self._tried(partial(KnownSimilarities, source, rows))
        return self._known


def _per_value(X: Any, neighbors: Any, metric: Any, itemsize: int) -> int:
    """Return the bytes on the device per value of X, were it one of so many bytes itself."""
    there = 0 if is_tensor(X) and X.device.type != "cpu" else itemsize
    if not isinstance(neighbors, str):  # no search is opened
        return there
    inverted = neighbors == "inverted" or (
        neighbors == "auto" and not exact_pays(X.shape[0], *X.shape)
    )
    products = _FOR_PRODUCTS * (1 + inverted)
    # By cosine, rows of length 1 are kept in double precision; X is there while they are made.
    return max(there + 8, 8 + products) if metric == "cosine" else there + products
