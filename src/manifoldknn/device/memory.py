"""How much memory a fit takes, known before it starts."""

import math
import os
import sys
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from manifoldknn.base.distances import ANGULAR, EUCLIDEAN, values_per_row
from manifoldknn.base.threads import thread_count
from manifoldknn.search.engines import automatic_engine
from manifoldknn.search.inverted import COMPONENTS, PCA_ROWS
from manifoldknn.search.neighbors import TREE_TRIED_DIMENSIONS
from manifoldknn.search.user_searches import is_searcher
from manifoldknn.vote.sharpness import FOLDS
from manifoldknn.walk.factor_cost import affordable_fill
from manifoldknn.walk.label_columns import block_width

__all__ = ["OVERRIDE", "available_memory", "check_memory", "estimate_memory"]

OVERRIDE = "MANIFOLDKNN_MEMORY_GB"

# Bytes, counted from the arrays alive at the peak of each step; tests/device/test_memory.py holds
# them against the peaks of whole fits.
_PER_CANDIDATE = 90  # neighbour lists, undirected edges and their ranks, per candidate
_PER_EDGE = 60  # logarithms and both precisions of S, per entry
_PER_WALK_COLUMN = 80  # solution, residual, logarithms and the solver's vectors
_PER_WEIGHT = 16  # of a row and a label, where neighbours vote: kept, and a copy
_PER_FACTOR_ENTRY = 24  # of both triangles
_PER_AXIS_SQUARE = 28  # products of columns, a copy of them, eigenvectors in both precisions
_LIST_SPARE = 1.5  # inverted lists grow by doubling
_DENSE_COPIES = 6  # of the full graph: logarithms, S, the factor and temporaries
_BASE = 300e6  # interpreter, libraries (pandas too) and buffers of fixed size
_FOR_LIBRARIES = 80_000_000  # addresses that faiss and its threads take, less `_BASE`
_TO_READ = 200_000_000  # addresses that reading a small table takes
_SEARCH_BLOCKS = 300e6  # of an exact search: distances, their order, and products of sparse rows
_INVERTED_BLOCKS = 100e6  # of an inverted one: rows asked for, candidates and where they are


class _Names(NamedTuple):
    """Where a version of the interface to control groups keeps its numbers."""

    mount: str
    limit: str
    used: str
    dropped_first: str


_SECOND = _Names("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file")
_FIRST = _Names(
    "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
)


def room_in_groups(root: Path = Path("/")) -> int | None:
    """Return how many bytes the control groups of this process have left: containers, batch jobs.

    Linux keeps a tree of groups, each with a limit and with what its processes use. A process may
    take the least that a group on the way from its own to the root has left; None where no group
    sets a limit, or there are none. ``proc`` and ``sys`` lie below `root`.
    """
    left = []
    for line in _lines(root / "proc/self/cgroup"):
        number, controllers, path = line.split(":", 2)
        if number == "0" and not controllers:
            names = _SECOND
        elif "memory" in controllers.split(","):
            names = _FIRST
        else:
            continue
        inner = PurePosixPath(path.lstrip("/"))
        # Inside a container the path may be that of the host, which is not there, or lead out of
        # what is mounted; the root of the tree is then the container's own group.
        for group in [inner, *inner.parents]:
            room = None if ".." in group.parts else _room(root / names.mount / group, names)
            left += [] if room is None else [room]
    return min(left, default=None)


def _room(folder: Path, names: _Names) -> int | None:
    """Return what one group has left, or None if it sets no limit."""
    try:
        limit = (folder / names.limit).read_text().strip()
        if limit == "max":
            return None
        used = int((folder / names.used).read_text())
        # Files that were read and not used for long count as used, but the kernel drops them.
        for name, *value in map(str.split, _lines(folder / "memory.stat")):
            used -= int(value[0]) if name == names.dropped_first else 0
        return max(0, int(limit) - max(0, used))
    except (OSError, ValueError):
        return None


def _lines(path: Path) -> list[str]:
    """Return the lines of a file, none if it is not there."""
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def estimate_memory(
    n_samples: int,
    n_features: int,
    n_labeled: int,
    *,
    n_classes: int = 2,
    vote: str = "classes",
    graph: str = "pruned",
    graph_neighbors: int = 10,
    metric: Any = "euclidean",
    neighbors: Any = "auto",
    itemsize: int = 4,
    n_jobs: int | None = None,
) -> int:
    """Return about how many bytes a process needs at most to fit such data.

    Parameters
    ----------
    n_samples, n_features, n_labeled : int
        Rows, columns and labels. Of a sparse X, numbers stored per row instead of
        columns, with ``neighbors="exact"``.
    n_classes : int, default=2
        Number of classes.
    vote, graph, graph_neighbors, metric, neighbors, n_jobs
        As in `ManifoldKNNClassifier`. None for `neighbors` means that they are known.
    itemsize : int, default=4
        Bytes per number of X: 4 for float32, 8 for float64; 4 more where a sparse X
        says in which column it stands.

    Returns
    -------
    int
        Bytes, X and the interpreter included. O(n·(d + graph_neighbors + n_classes)), with
        ``vote="neighbors"`` O(n·n_labeled) more; O(n²) for ``graph="full"``.

    Examples
    --------
    >>> from manifoldknn import estimate_memory
    >>> round(estimate_memory(70_000, 784, 100, n_jobs=2) / 1e9, 1)
    1.2
    >>> round(estimate_memory(70_000, 784, 100, graph="full") / 1e9)
    236
    """
    n, d = float(n_samples), float(n_features)
    index, searching = _search_bytes(n, d, itemsize, metric, neighbors)
    candidates = max(graph_neighbors, 30 if graph == "pruned" else 7)
    threads = thread_count(n_jobs)
    # Threads have blocks of labels of their own, or walks with some of the labels.
    columns = min(threads, 1 + FOLDS) * n_classes
    if vote == "neighbors":
        columns = threads * min(n_labeled, block_width(max(1, int(n_samples))))
    answers = n * (n_classes * 24 + (n_labeled * _PER_WEIGHT if vote == "neighbors" else 0))
    walk = answers + _walk_bytes(max(1, int(n_samples)), columns, graph, graph_neighbors)
    lists = n * candidates * _PER_CANDIDATE
    # Search, pairing of lists and walk follow each other: the largest counts.
    steps = max(searching + n * candidates * 24, lists, walk)
    return int(_BASE + n * d * itemsize + index + n * candidates * 16 + steps)


def _search_bytes(
    n: float, d: float, itemsize: int, metric: Any, neighbors: Any
) -> tuple[float, float]:
    """Return what a neighbour search holds beside X from then on, and while it is made."""
    values = n * d
    if neighbors is None:
        return 0.0, 0.0
    if not isinstance(neighbors, str) and not is_searcher(neighbors):
        brought = neighbors.nnz if sparse.issparse(neighbors) else np.size(neighbors[0])
        return 0.0, 40.0 * brought
    if neighbors == "auto":
        neighbors = automatic_engine(None, metric, (int(n), int(d)))
    euclidean = isinstance(metric, str) and metric in EUCLIDEAN
    if neighbors == "inverted":
        rows = 0.0 if itemsize == 4 and euclidean else 4 * values
        axes = min(d, n, PCA_ROWS)
        principal = axes * (axes * _PER_AXIS_SQUARE + 4 * d) if d > COMPONENTS else 0.0
        # If leading components tell too little, lists hold all columns.
        return rows + _LIST_SPARE * 4 * values, max(principal, _INVERTED_BLOCKS)
    blocks = min(_SEARCH_BLOCKS, 24 * n * n)
    if not euclidean:
        # The library scales all samples for every block of rows, or casts them to float64.
        if metric in ANGULAR and itemsize in (4, 8):  # directions, searched as Euclidean rows
            return 20 * values, 16 * values + blocks
        copies = 2 * itemsize if metric == "cosine" else 16
        held = 0.0 if itemsize == 8 else 8.0 * values  # in double precision
        return held, copies * values - held + blocks
    turned = 16 * values if d <= TREE_TRIED_DIMENSIONS else 0.0
    return (itemsize + 4) * values, turned + blocks


def _walk_bytes(n: int, columns: int, graph: str, graph_neighbors: int) -> float:
    """Return what the graph and the walk on it take."""
    if graph == "full":
        return float(_DENSE_COPIES * n * n * 8 + n * columns * 24)
    factor = min(affordable_fill(n), n * n / 2) * _PER_FACTOR_ENTRY
    return n * 2 * graph_neighbors * _PER_EDGE + max(n * columns * _PER_WALK_COLUMN, factor)


def available_memory() -> int | None:
    """Return how many bytes this process may still take, or None if nobody tells.

    What the environment variable ``MANIFOLDKNN_MEMORY_GB`` says, in gigabytes of 10⁹ bytes;
    otherwise the smallest of what the system has available, what the process's control groups
    have left, and what a limit on its address space (``ulimit -v``) leaves.
    """
    told = os.environ.get(OVERRIDE, "").strip()
    if told:
        return _gigabytes(told)
    lines = _lines(Path("/proc/meminfo"))
    limits = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    if not lines and "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    limits.extend(room for room in (room_in_groups(), address_room()) if room is not None)
    return min(limits) if limits else None


def address_room() -> int | None:
    """Return how many bytes a limit on the address space leaves; None without one.

    Libraries that are still to be loaded and threads take addresses as well, mostly for nothing:
    more than the interpreter and the libraries of an estimate, which are there already.
    """
    try:
        import resource  # not on Windows

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError, ValueError):
        return None
    if limit == resource.RLIM_INFINITY:
        return None
    return max(0, limit - pages * os.sysconf("SC_PAGE_SIZE") - _FOR_LIBRARIES)


def check_address_space() -> None:
    """Raise MemoryError, with advice, if there is not even room to read a table."""
    room = address_room()
    arrow = sys.modules.get("pyarrow")
    if room is not None and arrow is not None:  # it would take a gigabyte of addresses at once
        arrow.set_memory_pool(arrow.system_memory_pool())
    if room is not None and room < _TO_READ and not os.environ.get(OVERRIDE):
        raise MemoryError(
            "The limit on address space leaves no room to work in: raise it to 1.5 GB or more "
            "(ulimit -v 1500000)."
        )


def _gigabytes(told: str) -> int:
    try:
        number = float(told)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise ValueError(
            f"{OVERRIDE}={told!r} must be a positive number of gigabytes, such as 8 or 1.5."
        )
    return int(number * 1e9)


def check_memory(X: Any, n_labeled: int, **settings: Any) -> None:
    """Raise MemoryError, with advice, if a fit will not fit; X is in memory already.

    Free is what `available_memory` says. Where it is wrong, the environment variable
    ``MANIFOLDKNN_MEMORY_GB`` sets the gigabytes that count as free.
    """
    n, d = X.shape[0], max(1, round(values_per_row(X)))
    free = available_memory()
    if free is None:
        return
    itemsize = number = X.dtype.itemsize
    if sparse.issparse(X):
        itemsize += X.indices.dtype.itemsize
        if isinstance(settings.get("neighbors", "auto"), str):
            settings["neighbors"] = "exact"
    needed = estimate_memory(n, d, n_labeled, itemsize=itemsize, **settings) - n * d * itemsize
    if needed <= free:
        return
    advice = "fit a subset of the rows and predict the others"
    if settings.get("graph") == "full":
        advice = "use graph='pruned', whose memory grows with the number of rows and not its square"
    else:
        if number != 4:
            advice += ", or pass X as float32"
        if thread_count(settings.get("n_jobs")) > 1:
            advice += ", or set n_jobs=1"
    if free == address_room():
        advice += ", or raise the limit on address space (ulimit -v)"
    raise MemoryError(
        f"Fitting {n} rows needs about {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB are free: "
        f"{advice}. (The environment variable {OVERRIDE} sets how many gigabytes count as free.)"
    )
