"""How much memory a fit takes, known before it starts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from manifoldknn.threads import thread_count
from manifoldknn.voters import block_width, kept_per_row

__all__ = ["available_memory", "check_memory", "estimate_memory"]

# Bytes per row, from the arrays alive at the peak of each step; see benchmarks/results.
_PER_CANDIDATE = 90  # neighbour lists, undirected edges and their sort, per candidate neighbour
_PER_EDGE = 60  # logarithms and both precisions of S, per entry
_PER_WALK_COLUMN = 110  # solution, residual, logarithms and the solver's vectors
_PER_KEPT = 40  # weights and voters while they are merged
_COMPONENTS = 64
_DENSE_COPIES = 6  # of the full graph: logarithms, S, the factor and temporaries
_BASE = 300e6  # interpreter, libraries and buffers of fixed size


def estimate_memory(
    n_samples: int,
    n_features: int,
    n_labeled: int,
    *,
    n_classes: int = 2,
    n_neighbors: int = 5,
    graph: str = "pruned",
    graph_neighbors: int = 10,
    itemsize: int = 4,
    n_jobs: int | None = None,
) -> int:
    """Return about how many bytes a process needs at most to fit such data.

    Parameters
    ----------
    n_samples, n_features, n_labeled : int
        Rows, columns and labels.
    n_classes : int, default=2
        Number of classes.
    n_neighbors, graph, graph_neighbors, n_jobs
        As in `ManifoldKNNClassifier`.
    itemsize : int, default=4
        Bytes per number of X: 4 for float32, 8 for float64.

    Returns
    -------
    int
        Bytes, X and the interpreter included. O(n·(d + graph_neighbors + n_neighbors))
        plus a block of label columns; O(n²) for ``graph="full"``.

    Examples
    --------
    >>> from manifoldknn import estimate_memory
    >>> round(estimate_memory(70_000, 784, 100, n_jobs=2) / 1e9, 1)
    1.4
    >>> round(estimate_memory(70_000, 784, 100, graph="full") / 1e9)
    236
    """
    n, d = float(n_samples), float(n_features)
    data = n * d * itemsize
    search = n * d * 4 * (itemsize != 4) + 2 * n * min(d, _COMPONENTS) * 4
    candidates = max(graph_neighbors, 30 if graph == "pruned" else 7)
    kept = kept_per_row(max(1, int(n_samples)), n_labeled, n_neighbors)
    answers = n * (n_classes * 24 + kept * _PER_KEPT)
    if graph == "full":
        walk = _DENSE_COPIES * n * n * 8 + n * n_labeled * 24
    else:
        threads = thread_count(n_jobs)
        columns = min(n_labeled, block_width(max(1, int(n_samples)))) * threads
        walk = n * (2 * graph_neighbors * _PER_EDGE + columns * _PER_WALK_COLUMN)
    lists = n * candidates * _PER_CANDIDATE
    # Search, sorting of edges and walk follow each other: the largest counts.
    return int(_BASE + data + search + answers + n * candidates * 16 + max(lists, walk))


def available_memory() -> int | None:
    """Return how many bytes this process may still take, or None if nobody tells.

    Returns
    -------
    int or None
        The smaller of what the system has available and what the process's control
        group has left.
    """
    limits: list[int] = []
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
        limits.extend(int(kilobytes) * 1024 for kilobytes in free)
    except OSError:
        names = getattr(os, "sysconf_names", {})
        if "SC_PHYS_PAGES" in names:
            limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    try:
        group = Path("/sys/fs/cgroup")
        limit = (group / "memory.max").read_text().strip()
        if limit != "max":
            limits.append(int(limit) - int((group / "memory.current").read_text()))
    except (OSError, ValueError):
        pass
    return min(limits) if limits else None


def check_memory(X: Any, n_labeled: int, **settings: Any) -> None:
    """Raise MemoryError, with advice, if a fit will not fit.

    Parameters
    ----------
    X : ndarray or CSR matrix
        The samples, which are in memory already.
    n_labeled : int
        Number of labels.
    **settings
        Further arguments of `estimate_memory`.
    """
    n, d = X.shape
    free = available_memory()
    if free is None:
        return
    itemsize = X.dtype.itemsize
    if not hasattr(X, "ctypes"):  # sparse: rows as long as what they store
        d = max(1, X.nnz // n)
    needed = estimate_memory(n, d, n_labeled, itemsize=itemsize, **settings) - n * d * itemsize
    if needed <= free:
        return
    advice = "fit a subset of the rows and predict the others"
    if settings.get("graph") == "full":
        advice = "use graph='pruned', whose memory grows with the number of rows and not its square"
    else:
        if itemsize != 4:
            advice += ", or pass X as float32"
        if thread_count(settings.get("n_jobs")) > 1:
            advice += ", or set n_jobs=1"
    raise MemoryError(
        f"Fitting {n} rows needs about {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB are free: "
        f"{advice}."
    )
