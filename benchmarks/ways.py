"""Why each way of computing the walk exists: each forced on the same problems.

    MANIFOLDKNN_DATA=... python benchmarks/ways.py [problem ...]

What is measured is the walk of a fit and those of its folds, in which labels are hidden. Ways are
those of `manifoldknn.walk.choose.Way`. Iterating is measured again without one of its parts: no
elimination at all, an elimination for each walk instead of one for all, no parts of the graph
solved one after the other, bounds on errors instead of hidden rows that settle. Each measurement is
in a process of its own, one after the other, on all cores; memory is what comes on top of the
graph. ``results/ways.md`` is what comes out, in about half an hour; problems may be named.
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
from samples import hide_labels, made
from scipy import sparse
from sklearn.datasets import load_digits

from manifoldknn.base.heap import return_freed_memory

RESULTS = Path(__file__).with_name("results")
WAYS = ("dense", "factorise", "iterate", "iterate with groups")
WITHOUT = ("no elimination", "an elimination each", "no parts", "bounds on errors")
PROBLEMS = {
    "every pair": "The digits of scikit-learn, 1,797 rows, with an edge between every two. There "
    "is nothing sparse to gain from: Cholesky factorisation, in place, is what is left.",
    "map": "50,000 places in a square, in ten classes. A plane graph has a small factor, and a "
    "walk that crosses it takes very many steps of an iteration, unless groups of rows help.",
    "tenth labelled": "10,000 rows of MNIST, a tenth of them labelled. Walks are short: an "
    "iteration ends before a factor or groups of rows are made.",
    "mnist": "30,000 rows of MNIST, 100 labels. The factor is large, and walks are long: groups "
    "of rows carry news far in one step.",
    "far classes": "50,000 rows on thirty surfaces far from each other, in ten classes. The "
    "factor is small, so that one for each walk is soon made.",
    "covertype": "All of Covertype, 581,012 rows, 700 labels. Columns are few beside rows, and "
    "some rows lie far from all others, which makes iterations long.",
    "million": "A million rows on thirty surfaces far from each other, in ten classes. Densities "
    "of far classes are 1e-10 and less of the near ones.",
}
SPARSE = ("factorise", "iterate", "iterate with groups")
MEASURED = {
    "every pair": WAYS,
    "map": WAYS,
    "covertype": (*SPARSE, "no parts"),
    "million": (*SPARSE, "no elimination", "no parts"),
}  # on others, all
END = "What this says"  # is written by hand
LIMIT, LARGE_LIMIT = 45, 150  # seconds, the graph included
MOST_DENSE = 5000  # rows


def problem(name):
    """Return rows and labels, -1 where there is none; ten per class but where it says otherwise."""
    rng = np.random.default_rng(0)
    if name == "map":
        X = rng.random((50_000, 2))
        y = (5 * X[:, 0]).astype(int) + 5 * (X[:, 1] > 0.5)
    elif name in ("far classes", "million"):
        X, y = made(50_000 if name == "far classes" else 1_000_000)
    elif name == "covertype":
        X, y = load("covtype")
    elif name == "every pair":
        X, y = load_digits(return_X_y=True)
    else:
        X, y = load("mnist")
        rows = rng.permutation(len(y))[: 30_000 if name == "mnist" else 10_000]
        X, y = X[rows], y[rows]
    if name == "tenth labelled":
        labels = hide_labels(y, share=0.1)
    else:
        rows = picked(y, [100 if name == "covertype" else 10] * (y.max() + 1), rng)
        labels = np.full(len(y), -1)
        labels[rows] = y[rows]
    return X.astype(np.float32), labels


def prepared(name):
    """Search and make the graph, and return what a walk needs."""
    from manifoldknn.graph.constrained import candidate_count, graph_recipe
    from manifoldknn.search.engines import open_index
    from manifoldknn.walk.choose import chosen_alpha, chosen_way
    from manifoldknn.walk.normalized import NormalizedGraph

    X, y = problem(name)
    edges = "full" if name == "every pair" else "pruned"
    pairs = {"graph": edges, "graph_neighbors": 10, "metric": "euclidean"}
    index = open_index(X, "auto", metric="euclidean", n_jobs=None, seed=0)
    lists = index.among_samples(candidate_count(edges, 10, len(X)))
    recipe = graph_recipe(X, lists, sigma="auto", tree_depth=2, theta=0.1, **pairs)
    graph = recipe.constrained(y)
    alpha = chosen_alpha("auto", "classes", int((y >= 0).sum()), len(y))
    way = chosen_way(NormalizedGraph(graph), alpha, n_columns=y.max() + 2)
    return recipe, graph, y, alpha, way


def stored(graph, dense):
    """Return the same graph, dense or sparse as a way wants it."""
    from manifoldknn.graph.weights import ConstrainedGraph

    nobody = np.full(graph.n_samples, -1)
    if dense == (not graph.is_sparse):
        return graph
    if dense:
        with np.errstate(divide="ignore"):
            return ConstrainedGraph(np.log(graph.to_matrix().toarray()), nobody)
    i, j = np.nonzero(np.isfinite(graph.log_weights))
    shape = graph.log_weights.shape
    weights = sparse.csr_array((graph.log_weights[i, j], (i, j)), shape=shape)
    return ConstrainedGraph(weights, nobody)


class Stored:
    """A recipe whose graphs are stored as a way wants them."""

    def __init__(self, recipe, dense):
        self.recipe, self.dense = recipe, dense

    def constrained(self, codes):
        """Return the graph of some labels."""
        return stored(self.recipe.constrained(codes), self.dense)

    def without_links_of(self, rows):
        """Return the recipe without links by hand of some rows."""
        return Stored(self.recipe.without_links_of(rows), self.dense)

    def among(self, rows):
        """Return the recipe of pairs among some rows."""
        return Stored(self.recipe.among(rows), self.dense)

    def touched(self, codes):
        """Return the rows that labels touch."""
        return self.recipe.touched(codes)


def walked(name, what):
    """Walk from all labels, and from all but those of each fold, in a forced way."""
    from manifoldknn.vote import hidden, shared_graph
    from manifoldknn.vote.densities import class_densities
    from manifoldknn.walk import choose, reduction
    from manifoldknn.walk.aggregates import aggregates
    from manifoldknn.walk.choose import Way
    from manifoldknn.walk.iteration import LONG_WALK
    from manifoldknn.walk.levels import solve_by_levels
    from manifoldknn.walk.normalized import NormalizedGraph

    recipe, graph, y, alpha, chosen = prepared(name)
    if what == "dense" and len(y) > MOST_DENSE:
        sys.exit(f"{2 * 8e-9 * len(y) ** 2:.1f} GB, not tried")  # A and its factor
    recipe = Stored(recipe, what == "dense")
    graph, groups = stored(graph, what == "dense"), hidden.hidden_groups(y)
    labeled, n_classes = np.flatnonzero(y >= 0), y.max() + 1

    def settled(*args, **options):
        return class_densities(*args, **options | {"settle": what != "bounds on errors"})

    def work():
        way = Way(what if what in WAYS[:2] else "iterate")
        if what == "iterate with groups" or (what in WITHOUT and alpha >= LONG_WALK):
            way = Way("iterate", aggregates(NormalizedGraph(graph).log_s))
        with ExitStack() as patches:

            def patch(module, old, new):
                patches.enter_context(mock.patch.object(module, old, new))

            patch(hidden, "class_densities", settled)
            if what in ("no elimination", "an elimination each"):
                patch(shared_graph, "_FEW", 0.0)
            if what == "no elimination":
                patch(choose, "reduced_graph", lambda graph, *_: graph)
            if what == "no parts":
                patch(reduction, "solve_by_parts", solve_by_levels)
            shared = shared_graph.SharedGraph(recipe, graph, y, alpha, way)

            def from_all(n_jobs):
                return class_densities(
                    shared.ready(graph, n_jobs=n_jobs), labeled, y[labeled], n_classes, alpha,
                    tol=1e-3, max_iter=10_000,
                )  # fmt: skip

            found = hidden.walks_at_once(
                y, groups, n_classes, shared, tol=1e-2, max_iter=10_000, also=from_all
            )
        return {"iterations": sum(each.n_iter for each in found)}

    named = f"{chosen.name} with groups" if chosen.levels else chosen.name
    return measured(work) | {"chosen": named}


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


def in_a_process(name, what):
    """Return numbers, or why there are none."""
    limit = LARGE_LIMIT if name in ("covertype", "million") else LIMIT
    try:
        done = subprocess.run(
            [sys.executable, __file__, name, what], capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return f"not within {limit} s"
    if done.returncode:
        return done.stderr.strip().splitlines()[-1][:70] if done.stderr else "killed"
    return json.loads(done.stdout.splitlines()[-1])


def table(name):
    """Return a table of one problem: every way beside the chosen one, which stands in bold."""
    whats = MEASURED.get(name, (*WAYS, *WITHOUT))
    cells, found = [], {what: in_a_process(name, what) for what in whats}
    chosen = next(row["chosen"] for row in found.values() if not isinstance(row, str))
    for what, row in found.items():
        if isinstance(row, str):
            cells.append([what, row, "", "", ""])
        else:
            told = f"**{what}**" if what == chosen else what
            times = row["seconds"] / found[chosen]["seconds"]
            numbers = f"{row['seconds']:.2f}", f"{times:.1f}", f"{row['more_mb']:.0f}"
            cells.append([told, *numbers, str(row["iterations"])])
        print(name, cells[-1], flush=True)
    return markdown_table(["way", "seconds", "times the chosen", "MB", "iterations"], cells)


def main(names):
    """Measure some problems, and leave what the page says of the others, and in the end."""
    page = RESULTS / "ways.md"
    _, *parts = page.read_text(encoding="utf-8").split("\n## ")
    sections = {part.splitlines()[0].lower(): part.split("\n", 1)[1].strip() for part in parts}
    end = sections.pop(END.lower(), "")
    for name in names:
        sections[name] = f"{PROBLEMS[name]}\n\n{table(name)}\n\nMeasured at {commit()}."
        texts = ["# Ways of the walk", "\n".join(__doc__.splitlines()[4:10])]
        known = [each for each in PROBLEMS if each in sections]
        texts += [f"## {each.capitalize()}\n\n{sections[each]}" for each in known]
        page.write_text("\n\n".join([*texts, f"## {END}", end]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[2] in (*WAYS, *WITHOUT):
        print(json.dumps(walked(*sys.argv[1:])))
    else:
        main(sys.argv[1:] or list(PROBLEMS))
