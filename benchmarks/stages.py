"""Where the time of a fit goes: seconds of its stages, and of two steps inside the graph's."""

from __future__ import annotations

import functools
import time
from contextlib import contextmanager

# Column in the tables → functions that make up the stage.
STAGES = {
    "neighbours_s": ("device.steps.Steps.open_index", "device.steps.Steps.lists"),
    "graph_s": ("device.steps.Steps.graph",),
    "spanning_s": ("graph.kernels.in_spanning_forest",),
    "joining_s": ("graph.edges.joined_parts",),
    "walk_s": ("device.steps.Steps.walk",),
    "hidden_s": ("device.steps.Steps.hidden",),
}


@contextmanager
def timed_stages(candidates=None):
    """Time the stages of fits inside the block.

    Parameters
    ----------
    candidates : int, optional
        Neighbours whose graph the spanning tree is taken from, instead of the usual number.

    Yields
    ------
    dict
        Column → seconds so far; 0 for a stage that was not needed.
    """
    from manifoldknn.graph import constrained as graph

    seconds, usual = dict.fromkeys(STAGES, 0.0), []
    for column, names in STAGES.items():
        for name in names:
            owner, attribute = _find(name)
            function = getattr(owner, attribute)
            usual.append((owner, attribute, function))
            setattr(owner, attribute, _timed(function, seconds, column))
    if candidates is not None:
        usual.append((graph, "CANDIDATES", graph.CANDIDATES))
        graph.CANDIDATES = candidates
    try:
        yield seconds
    finally:
        for owner, attribute, value in usual:
            setattr(owner, attribute, value)


def _find(name):
    """Return what holds a function of the package, and the function's name in it."""
    from importlib import import_module

    room, module, *inside, attribute = name.split(".")
    owner = import_module(f"manifoldknn.{room}.{module}")
    return functools.reduce(getattr, inside, owner), attribute


def _timed(function, seconds, column):
    @functools.wraps(function)
    def timed(*args, **kwargs):
        start = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            seconds[column] += time.perf_counter() - start

    return timed
