"""What rows that `suggest` names without any label are worth, beside as many random ones.

    MANIFOLDKNN_DATA=... python benchmarks/coldstart.py digits usps     these sets; all by default

Of C classes, 3C rows get their true labels, chosen by `suggest` from nothing or at random; error is
that of the other rows by the default classifier. Seeds 0 to 4 shuffle the rows, and choose. What
was measured goes to ``results/coldstart.csv``, and ``results/coldstart.md`` is made of it.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
from draws import load
from machine import commit
from report import markdown_table

from manifoldknn import ManifoldKNNClassifier, suggest

RESULTS = Path(__file__).with_name("results")
SETS = ("digits", "usps", "pendigits", "satlog", "multifeature", "mnist 10,000")
COLUMNS = ("set", "seed", "random", "suggested", "rows_for_all_classes", "classes", "commit")
SEEDS = 5


def error(X, truth, rows):
    """Return the error in percent of other rows with labels for these."""
    y = np.full(len(truth), -1)
    y[rows] = truth[rows]
    wrong = ManifoldKNNClassifier().fit(X, y).transduction_ != truth
    return 100 * wrong.sum() / (len(truth) - len(rows))


def measured(name, seed):
    """Return errors, and how many suggested rows it takes to see every class (0: over 4C)."""
    X, truth = load(name)
    order = np.random.default_rng(seed).permutation(len(truth))
    X, truth, n_classes = X[order], truth[order], truth.max() + 1
    found = suggest(X, 4 * n_classes, random_state=seed).rows
    seen = [len(set(truth[found[:k]].tolist())) == n_classes for k in range(len(found) + 1)]
    few, drawn = 3 * n_classes, np.random.default_rng(seed).permutation(len(truth))
    errors = [f"{error(X, truth, rows[:few]):.2f}" for rows in (drawn, found)]
    return (name, seed, *errors, seen.index(True) if any(seen) else 0, n_classes, commit())


def known():
    """Return what was measured so far, by set and seed."""
    path = RESULTS / "coldstart.csv"
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {(row["set"], int(row["seed"])): row for row in csv.DictReader(file)}


def keep(row):
    everything = known() | {row[:2]: dict(zip(COLUMNS, row))}
    with (RESULTS / "coldstart.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(everything[key] for key in sorted(everything))


def report():
    """Write the table."""
    found, table, ratios = known(), [], []
    for name in SETS:
        rows = [row for (of, _), row in found.items() if of == name]
        if rows:
            both = [np.mean([float(row[way]) for row in rows]) for way in ("random", "suggested")]
            ratios.append(both[1] / both[0])
            n_classes = int(rows[0]["classes"])
            seen = ", ".join(row["rows_for_all_classes"] for row in rows)
            cells = (
                name,
                str(n_classes),
                str(len(rows)),
                *(f"{x:.2f}" for x in (*both, ratios[-1])),
                seen,
            )
            table.append(cells)
    names = "set", "C", "seeds", "3C random rows", "3C suggested", "ratio", "rows until all classes"
    commits = sorted({row["commit"] for row in found.values()})
    lines = [
        "# From no label at all",
        "",
        "Error in percent with labels for 3C rows, mean over seeds; the last column has a number",
        "for each seed. Written by `python benchmarks/coldstart.py`, measured on commit "
        f"{', '.join(commits)}.",
        "",
        markdown_table(names, table),
        "",
        f"Geometric mean of the ratios: {np.exp(np.mean(np.log(ratios))):.2f}.",
    ]
    (RESULTS / "coldstart.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for chosen in sys.argv[1:] or SETS:
        for number in range(SEEDS):
            if (chosen, number) not in known():
                keep(measured(chosen, number))
                print(chosen, number, flush=True)
    report()
