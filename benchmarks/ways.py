"""Why each way of computing the walk exists: each forced on the same problems.

    MANIFOLDKNN_DATA=... python benchmarks/ways.py

Ways are those of `manifoldknn.walk.choose.Way`: sparse factorisation, conjugate gradients, and
these with groups of rows as a preconditioner. Each measurement is the walk alone (C + 1 columns),
in a process of its own, one after the other. ``results/ways.md`` is what comes out.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from draws import load, picked
from machine import commit
from report import markdown_table

RESULTS = Path(__file__).with_name("results")
WAYS = ("factorise", "iterate", "iterate with groups")
PROBLEMS = {"mnist": 10, "covtype": 100, "pendigits": 10, "usps": 10}
LIMIT = 400  # seconds


def measured(name, way_name):
    """Walk over a set in a forced way; return seconds and megabytes."""
    from manifoldknn import ManifoldKNNClassifier
    from manifoldknn.vote.densities import class_densities
    from manifoldknn.walk.aggregates import aggregates
    from manifoldknn.walk.choose import Way, chosen_alpha, chosen_way
    from manifoldknn.walk.normalized import NormalizedGraph

    X, y = load(name)
    n_classes = y.max() + 1
    rows = picked(y, [PROBLEMS[name]] * n_classes, np.random.default_rng(0))
    labels = np.full(len(y), -1)
    labels[rows] = y[rows]
    # With a given sharpness and a small alpha no fit that leaves a graph is cheaper.
    clf = ManifoldKNNClassifier(alpha=0.5, sharpness=1.0).fit(X.astype(np.float32), labels)
    graph, labeled = clf.fitted_.graph, clf.labeled_indices_
    alpha = chosen_alpha("auto", "classes", len(labeled), len(y))
    chosen = chosen_way(NormalizedGraph(graph), alpha, n_columns=n_classes + 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.perf_counter()
    way = Way(way_name.split()[0])
    if way_name.endswith("groups"):
        way = Way("iterate", aggregates(NormalizedGraph(graph).log_s))
    found = class_densities(
        graph, labeled, y[labeled], n_classes, alpha, way, tol=1e-3, max_iter=10_000, n_jobs=None
    )
    seconds = time.perf_counter() - begin
    name_of = f"{chosen.name} with groups" if chosen.levels else chosen.name
    return {
        "seconds": seconds,
        "iterations": found.n_iter,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        "before_mb": before / 1e3,
        "chosen": name_of,
    }


def main():
    cells = []
    for name in PROBLEMS:
        for way in WAYS:
            command = [sys.executable, __file__, name, way]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
            except subprocess.TimeoutExpired:
                cells.append([name, way, f"over {LIMIT}", "", "", ""])
                continue
            if done.returncode:
                error = done.stderr.strip().splitlines()[-1][:60] if done.stderr else "killed"
                cells.append([name, way, error, "", "", ""])
                continue
            row = json.loads(done.stdout.splitlines()[-1])
            taken = "yes" if row["chosen"] == way else ""
            more = row["peak_mb"] - row["before_mb"]
            cells.append(
                [name, way, f"{row['seconds']:.2f}", f"{row['iterations']}", f"{more:.0f}", taken]
            )
            print(cells[-1], flush=True)
    heading = ["data", "way", "seconds", "iterations", "memory beyond the fit's peak, MB", "chosen"]
    lines = ["# Ways of the walk", "", *__doc__.splitlines()[4:8], "", f"Measured at {commit()}."]
    text = "\n".join([*lines, "", markdown_table(heading, cells), ""])
    (RESULTS / "ways.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(measured(*sys.argv[1:])))
    else:
        main()
