"""What it changes to scale numbers with a long tail by rank, beside all by range.

    MANIFOLDKNN_DATA=... python benchmarks/tails.py                     every set, some minutes
    MANIFOLDKNN_DATA=... python benchmarks/tails.py spambase yeast      these sets

Error in percent of unlabelled rows by the default classifier on features of `TableEncoder`, mean of
seeds 0 to 4. b6: six random labels in every class (of smaller classes all but one). r6: one in
every class, the others at random from all rows, six times as many as classes. Of large sets 10,000
rows are taken. Goes to ``results/tails.csv``, and ``results/tails.md`` is made of it.
"""

from __future__ import annotations

import csv
import sys
import warnings
from pathlib import Path
from unittest.mock import patch

import numpy as np
from draws import draw, load, picked
from machine import commit
from report import markdown_table

from manifoldknn import ManifoldKNNClassifier, TableEncoder

RESULTS = Path(__file__).with_name("results")
SETS = (
    "spambase", "segmentation", "page_blocks", "yeast", "nursery", "banknote", "satlog",
    "pendigits", "multifeature", "usps", "mnist_simclr10k", "covtype", "mnist 10,000",
)  # fmt: skip
COLUMNS = ("set", "labels", "seed", "ranked", "columns", "by_range", "by_rank", "commit")
SEEDS, MOST = 5, 10_000


def labels(y, kind, seed):
    """Return the rows that get a label."""
    if kind == "r6":
        return draw(y, kind, seed)
    return picked(y, np.minimum(6, np.bincount(y) - 1), np.random.default_rng(seed))


def error(X, y, rows):
    given = np.full(len(y), -1)
    given[rows] = y[rows]
    rest = np.setdiff1d(np.arange(len(y)), rows)
    found = ManifoldKNNClassifier().fit(X, given).transduction_
    return 100 * float((found[rest] != y[rest]).mean())


def measured(name):
    """Yield a line per kind of draw and seed; nothing is fitted where no tail is long."""
    X, y = load(name)
    y = np.unique(y, return_inverse=True)[1]
    if len(X) > MOST:
        some = np.random.default_rng(0).permutation(len(X))[:MOST]
        X, y = X[some], y[some]
    encoder = TableEncoder()
    by_rank = encoder.fit_transform(X)
    n_ranked = sum(bool(plan.knots) for plan in encoder.step_.plans)
    with patch("manifoldknn.tables.profile._LONG", np.inf):
        by_range = TableEncoder().fit_transform(X)
    for kind in ("b6", "r6"):
        for seed in range(SEEDS if n_ranked else 0):
            rows = labels(y, kind, seed)
            errors = (round(error(made, y, rows), 3) for made in (by_range, by_rank))
            yield name, kind, seed, n_ranked, X.shape[1], *errors
    if not n_ranked:
        yield name, "", "", 0, X.shape[1], "", ""


def page(lines):
    """Return the Markdown page."""
    cells = []
    for name in dict.fromkeys(line["set"] for line in lines):
        of_set = [line for line in lines if line["set"] == name]
        row = [name, f"{of_set[0]['ranked']} of {of_set[0]['columns']}"]
        for kind in ("b6", "r6"):
            of_kind = [line for line in of_set if line["labels"] == kind]
            both = ([float(line[way]) for line in of_kind] for way in ("by_range", "by_rank"))
            row.append(" → ".join(f"{np.mean(one):.1f}" for one in both) if of_kind else "same")
        cells.append(row)
    codes = sorted({line["commit"] for line in lines})
    head = ["# Numbers with a long tail, by rank", "", *__doc__.splitlines()[5:9], ""]
    table = markdown_table(["set", "columns by rank", "b6: range → rank", "r6"], cells)
    return "\n".join([*head, f"Measured at {', '.join(codes)}.", "", table, ""])


if __name__ == "__main__":
    code, lines = commit(), []
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or SETS:
        lines += [dict(zip(COLUMNS, (*line, code))) for line in measured(name)]
        print(f"{name} is measured", flush=True)
    with (RESULTS / "tails.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    (RESULTS / "tails.md").write_text(page(lines), encoding="utf-8")
