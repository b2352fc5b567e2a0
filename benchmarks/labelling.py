"""What suggestions and the search for wrong labels are worth, on digits and MNIST.

    python benchmarks/labelling.py suggest digits
    python benchmarks/labelling.py errors mnist --per-class 20 --seconds 240
    python benchmarks/labelling.py report

Neighbours and edges are found once; every further set of labels costs one walk over
them. What was measured goes to ``results/labelling.csv`` seed by seed, and a later call
goes on where an earlier one ended. ``report`` makes ``results/labelling.md`` of it.

Digits come with scikit-learn; MNIST (with ``--rows``, so many drawn with seed 0) is read
from ``mnist.npz`` in the folder that MANIFOLDKNN_DATA names. Seeds 0 to 9: labels are
drawn with ``default_rng(seed)``, per class in order.
"""

import argparse
import csv
import os
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from machine import commit
from sklearn.datasets import load_digits

from manifoldknn import ManifoldKNNClassifier, find_label_errors, suggest

RESULTS = Path(__file__).parent / "results"
COLUMNS = ("measure", "data", "rows", "labels", "seed", "strategy", "round", "value", "commit")
STRATEGIES = ("random", "least confidence", "suggest")
ROUNDS, PER_ROUND, SEEDS = 5, 10, 10
WRONG = 0.1


def data(name, n_rows):
    """Return X in [0, 1] and the true classes."""
    if name == "digits":
        X, truth = load_digits(return_X_y=True)
        return (X / 16).astype(np.float32), truth
    with np.load(Path(os.environ["MANIFOLDKNN_DATA"]) / "mnist.npz") as file:
        X, truth = file["X"], file["y"]
    rows = np.sort(np.random.default_rng(0).choice(len(X), n_rows or len(X), replace=False))
    return (X[rows] / np.float32(255)).astype(np.float32), truth[rows]


def drawn_labels(truth, per_class, rng):
    """Draw labels, the same number per class; all of them if that is 0."""
    y = np.full(len(truth), -1)
    for c in range(10):
        rows = np.flatnonzero(truth == c)
        y[rng.choice(rows, min(per_class, len(rows)), replace=False) if per_class else rows] = c
    return y


class Relabelled:
    """A classifier whose neighbours and edges stay when labels change."""

    def __init__(self, X, y):
        self.clf = ManifoldKNNClassifier().fit(X, y)
        self._y = y.copy()

    def with_labels(self, y):
        """Return the classifier with these labels and no others: one walk."""
        changed = np.flatnonzero(self._y != y)
        self.clf.set_labels(changed, y[changed])
        self._y = y.copy()
        return self.clf


def next_rows(strategy, clf, y, rng):
    """Return the rows that a strategy would have labelled next."""
    if strategy == "suggest":
        return suggest(clf, PER_ROUND).rows
    unlabeled = np.flatnonzero(y < 0)
    if strategy == "random":
        return rng.choice(unlabeled, PER_ROUND, replace=False)
    confidence = clf.label_distributions_[unlabeled].max(axis=1)
    return unlabeled[np.argsort(confidence, kind="stable")[:PER_ROUND]]


def measure_suggestions(model, truth, y, seed):
    """Yield strategy, round and error for one draw of the first labels."""
    first = model.with_labels(y)
    error = (first.transduction_ != truth).mean()
    begin = {name: next_rows(name, first, y, np.random.default_rng(seed)) for name in STRATEGIES}
    for strategy in STRATEGIES:
        yield strategy, 0, error
        rng, labels, rows = np.random.default_rng((seed, 1)), y.copy(), begin[strategy]
        for step in range(1, ROUNDS + 1):
            labels[rows] = truth[rows]
            clf = model.with_labels(labels)
            yield strategy, step, (clf.transduction_ != truth).mean()
            if step < ROUNDS:
                rows = next_rows(strategy, clf, labels, rng)


def measure_errors(model, _truth, y, seed):
    """Yield the precision among the first n found, n wrong labels having been put in."""
    rng, y = np.random.default_rng((seed, 1)), y.copy()
    labeled = np.flatnonzero(y >= 0)
    n = int(WRONG * len(labeled))
    wrong = rng.choice(labeled, n, replace=False)
    y[wrong] = (y[wrong] + rng.integers(1, 10, n)) % 10
    found = find_label_errors(model.with_labels(y)).rows
    yield "find_label_errors", n, np.isin(found[:n], wrong).sum() / n


def known():
    """Return what was measured so far."""
    path = RESULTS / "labelling.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def keep(rows):
    """Add rows to what was measured."""
    everything = known() + rows
    order = ("measure", "data", "rows", "labels", "seed")
    number = {"rows", "labels", "seed"}
    everything.sort(key=lambda row: [int(row[c]) if c in number else row[c] for c in order])
    path = RESULTS / "labelling.csv"
    with path.with_suffix(".new").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(everything)
    path.with_suffix(".new").replace(path)


def run(options):
    """Measure seeds that are not there yet, until time is up."""
    start = time.perf_counter()
    X, truth = data(options.data, options.rows)
    n_labels = int((drawn_labels(truth, options.per_class, np.random.default_rng(0)) >= 0).sum())
    case = {"measure": options.what, "data": options.data, "rows": len(X), "labels": n_labels}
    done = {row["seed"] for row in known() if all(row[name] == str(case[name]) for name in case)}
    left = [seed for seed in range(options.seeds) if str(seed) not in done]
    if not left:
        return
    measured = commit()
    measure = measure_suggestions if options.what == "suggest" else measure_errors
    model = None
    for seed in left:
        if time.perf_counter() - start > options.seconds:
            print(f"time is up before seed {seed}: call again", flush=True)
            return
        y = drawn_labels(truth, options.per_class, np.random.default_rng(seed))
        model = model or Relabelled(X, y)
        found = [
            case
            | {"seed": seed, "strategy": name, "round": step, "value": f"{value:.5f}"}
            | {"commit": measured}
            for name, step, value in measure(model, truth, y, seed)
        ]
        keep(found)
        print(f"{case} seed {seed}: {time.perf_counter() - start:.0f} s", flush=True)


def report():
    """Write the tables."""
    values = defaultdict(dict)
    for row in known():
        key = row["measure"], row["data"], int(row["rows"]), int(row["labels"])
        values[key][row["strategy"], int(row["round"]), int(row["seed"])] = float(row["value"])
    lines = [
        "# Which labels next, and which are wrong",
        "",
        f"Error in percent after each of {ROUNDS} rounds of {PER_ROUND} labels, mean over seeds;",
        "`python benchmarks/labelling.py suggest digits` (or `mnist`) and `... errors mnist`",
        "measure seeds that are missing, and `... report` writes this.",
        "",
        f"Measured at {', '.join(sorted({row['commit'] for row in known()}))}.",
    ]
    for (_, name, n, labels), found in sorted(values.items()):
        if ("suggest", 0, 0) not in found:
            continue
        seeds = sorted({seed for _, _, seed in found})
        lines += ["", f"## {name}, {n:,} rows, {labels} labels at first, {len(seeds)} seeds", ""]
        lines += ["| round | 0 | 1 | 2 | 3 | 4 | 5 | mean of 1 to 5 |", "|" + "---|" * 8]
        for strategy in STRATEGIES:
            table = np.array(
                [[100 * found[strategy, r, s] for r in range(ROUNDS + 1)] for s in seeds]
            )
            cells = [*table.mean(axis=0), table[:, 1:].mean()]
            lines.append(f"| {strategy} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |")
    lines += ["", "## Wrong labels found", ""]
    lines += [
        f"A tenth of the labels ({WRONG:.0%}) is replaced by wrong ones; precision among the first",
        "n rows of `find_label_errors`, n the number replaced.",
        "",
        "| data | rows | labels | wrong | seeds | precision | least |",
        "|" + "---|" * 7,
    ]
    for (measure, name, n, labels), found in sorted(values.items()):
        if measure == "errors":
            each, wrong = list(found.values()), next(iter(found))[1]
            lines.append(
                f"| {name} | {n:,} | {labels:,} | {wrong:,} | {len(each)} | {np.mean(each):.3f} | "
                f"{np.min(each):.3f} |"
            )
    (RESULTS / "labelling.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["suggest", "errors", "report"])
    parser.add_argument("data", choices=["digits", "mnist"], nargs="?", default="digits")
    parser.add_argument("--rows", type=int, help="rows of MNIST; all by default")
    parser.add_argument("--per-class", type=int, default=3, help="labels per class; 0: all rows")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--seconds", type=float, default=np.inf, help="begin no seed after this")
    options = parser.parse_args()
    if options.what != "report":
        run(options)
    report()


if __name__ == "__main__":
    main()
