"""Why each way of computing the walk exists: each forced on the same problems.

    MANIFOLDKNN_DATA=... python benchmarks/ways.py

Ways are those of `manifoldknn.walk.choose.Way`, and the best of them without one of its parts:
without elimination, without parts of the graph solved one after the other. The second table is
about hidden labels: without the one elimination that serves all, with bounds on errors instead of
rows that settle. Each measurement is in a process of its own, one after the other, on all cores.
``results/ways.md`` is what comes out.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

import numpy as np
from draws import load, picked
from machine import commit
from report import markdown_table
from samples import made

from manifoldknn.base.heap import return_freed_memory

RESULTS = Path(__file__).with_name("results")
WAYS = (
    "dense", "factorise", "iterate", "iterate with groups", "as chosen, no elimination",
    "as chosen, no parts",
)  # fmt: skip
FOLDS = ("as it is", "an elimination each", "bounds on errors", "both")
PROBLEMS = ("mnist", "usps", "map", "far classes")
HIDDEN = ("mnist", "far classes")
LIMIT = 300  # seconds


def problem(name):
    """Return rows, true classes and labels, ten per class."""
    rng = np.random.default_rng(0)
    if name == "map":  # a hundred thousand places in the plane, in ten classes
        X = rng.random((100_000, 2)).astype(np.float32)
        y = (5 * X[:, 0]).astype(int) + 5 * (X[:, 1] > 0.5)
    elif name == "far classes":
        X, y = made(100_000)
    else:
        X, y = load(name)
    rows = picked(y, [10] * (y.max() + 1), rng)
    labels = np.full(len(y), -1)
    labels[rows] = y[rows]
    return X.astype(np.float32), labels


def prepared(name, **params):
    """Fit once, cheaply, and return what a walk needs."""
    from manifoldknn import ManifoldKNNClassifier
    from manifoldknn.model.fitted import graph_recipe
    from manifoldknn.walk.choose import chosen_alpha, chosen_way
    from manifoldknn.walk.normalized import NormalizedGraph

    X, y = problem(name)
    # With a given sharpness and a small alpha no fit that leaves a graph is cheaper.
    clf = ManifoldKNNClassifier(alpha=0.5, sharpness=1.0, **params).fit(X, y)
    alpha = chosen_alpha("auto", "classes", int((y >= 0).sum()), len(y))
    graph, recipe = clf.fitted_.graph, graph_recipe(clf)
    del clf
    way = chosen_way(NormalizedGraph(graph), alpha, n_columns=y.max() + 2)
    return recipe, graph, y, alpha, way


def walked(name, way_name):
    """Walk from all labels in a forced way."""
    from manifoldknn.vote import shared_graph as sharing
    from manifoldknn.vote.densities import class_densities
    from manifoldknn.walk import choose, reduction
    from manifoldknn.walk.aggregates import aggregates
    from manifoldknn.walk.choose import Way
    from manifoldknn.walk.levels import solve_by_levels
    from manifoldknn.walk.normalized import NormalizedGraph

    _, graph, y, alpha, chosen = prepared(name, graph="full" if way_name == "dense" else "pruned")
    labeled = np.flatnonzero(y >= 0)

    def work():
        way = chosen
        if way_name == "iterate with groups":
            way = Way("iterate", aggregates(NormalizedGraph(graph).log_s))
        elif not way_name.startswith("as chosen"):
            way = Way(way_name)
        with ExitStack() as patches:
            if way_name.endswith("elimination"):
                patch = mock.patch.object(choose, "reduced_graph", lambda graph, *_: graph)
                patches.enter_context(patch)
            if way_name.endswith("parts"):
                patch = mock.patch.object(reduction, "solve_by_parts", solve_by_levels)
                patches.enter_context(patch)
            ready = sharing.ready_graph(graph, labeled, alpha, way, n_jobs=None)
            found = class_densities(
                ready, labeled, y[labeled], y.max() + 1, alpha, tol=1e-3, max_iter=10_000
            )
        return {"iterations": found.n_iter}

    named = f"{chosen.name} with groups" if chosen.levels else chosen.name
    return measured(work) | {"chosen": named}


def hidden(name, what):
    """Hide labels in five groups, without one of the things that make it quick."""
    from manifoldknn.vote import hidden as room
    from manifoldknn.vote import shared_graph as sharing
    from manifoldknn.vote.densities import class_densities

    recipe, graph, y, alpha, way = prepared(name)
    groups = room.hidden_groups(y)

    def bounded(*args, **options):
        return class_densities(*args, **options | {"settle": False})

    def work():
        few = 0.0 if what in ("an elimination each", "both") else sharing._FEW
        densities = bounded if what in ("bounds on errors", "both") else class_densities
        with (
            mock.patch.object(sharing, "_FEW", few),
            mock.patch.object(room, "class_densities", densities),
        ):
            shared = sharing.SharedGraph(graph, recipe.touched(y), alpha, way)
            room.hidden_densities(y, groups, y.max() + 1, shared, tol=1e-2, max_iter=10_000)
        return {}

    return measured(work)


def measured(work):
    """Return what some work says, its seconds, and how many megabytes it took at most."""
    gc.collect()
    return_freed_memory()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = _status("VmRSS")
    begin = time.perf_counter()
    said = work()
    seconds = time.perf_counter() - begin
    return said | {"seconds": seconds, "more_mb": _status("VmHWM") - before}


def _status(key):
    """Return megabytes that the system counts for this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1e3


def in_a_process(kind, name, what):
    """Return a row of numbers, or why there are none."""
    try:
        done = subprocess.run(
            [sys.executable, __file__, kind, name, what], capture_output=True, text=True,
            timeout=LIMIT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"over {LIMIT}"
    if done.returncode:
        return done.stderr.strip().splitlines()[-1][:70] if done.stderr else "killed"
    return json.loads(done.stdout.splitlines()[-1])


def table(kind, names, whats):
    cells = []
    for name in names:
        for what in whats:
            row = in_a_process(kind, name, what)
            if isinstance(row, str):
                cells.append([name, what, row, "", "", ""])
            else:
                taken = "yes" if row.get("chosen") == what else ""
                numbers = (
                    f"{row['seconds']:.2f}",
                    row.get("iterations", ""),
                    f"{row['more_mb']:.0f}",
                )
                cells.append([name, what, *map(str, numbers), taken])
            print(cells[-1], flush=True)
    return markdown_table(["data", "way", "seconds", "iterations", "MB", "chosen"], cells)


def main():
    text = "\n\n".join(
        [
            "# Ways of the walk",
            "\n".join(__doc__.splitlines()[4:10]),
            f"Measured at {commit()}.",
            "## From all labels, C + 1 columns",
            table("walked", PROBLEMS, WAYS),
            "## Hidden labels, five groups",
            table("hidden", HIDDEN, FOLDS),
        ]
    )
    (RESULTS / "ways.md").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) == 4:
        print(json.dumps({"walked": walked, "hidden": hidden}[sys.argv[1]](*sys.argv[2:])))
    else:
        main()
