"""What suggestions and the search for wrong labels are worth, on digits and MNIST.

    python benchmarks/labelling.py suggest digits
    python benchmarks/labelling.py errors mnist 10000

prints a table. Digits come with scikit-learn; MNIST (with a number of rows, drawn
with seed 0) is read from ``mnist.npz`` in the folder that MANIFOLDKNN_DATA names.
Seeds 0 to 9: labels are drawn with ``default_rng(seed)``, per class in order.
"""

import argparse
import os
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from manifoldknn import ManifoldKNNClassifier, find_label_errors, suggest
from manifoldknn.engines import open_index

ROUNDS, PER_ROUND, SEEDS = 5, 10, 10
WRONG = 0.1


def data(name, n_rows):
    if name == "digits":
        X, truth = load_digits(return_X_y=True)
        return (X / 16).astype(np.float32), truth
    with np.load(Path(os.environ["MANIFOLDKNN_DATA"]) / "mnist.npz") as file:
        X, truth = file["X"], file["y"]
    rows = np.sort(np.random.default_rng(0).choice(len(X), n_rows or len(X), replace=False))
    return (X[rows] / 255).astype(np.float32), truth[rows]


def drawn_labels(truth, per_class, rng):
    y = np.full(len(truth), -1)
    for c in range(10):
        rows = np.flatnonzero(truth == c)
        y[rng.choice(rows, min(per_class, len(rows)), replace=False) if per_class else rows] = c
    return y


def next_rows(strategy, clf, y, rng):
    if strategy == "suggest":
        return suggest(clf, PER_ROUND).rows
    unlabeled = np.flatnonzero(y < 0)
    if strategy == "random":
        return rng.choice(unlabeled, PER_ROUND, replace=False)
    confidence = clf.label_distributions_[unlabeled].max(axis=1)
    return unlabeled[np.argsort(confidence, kind="stable")[:PER_ROUND]]


def measure_suggestions(X, truth, neighbors, per_class, seeds):
    print(
        f"error in % after 0 to {ROUNDS} rounds of {PER_ROUND} labels, mean of {len(seeds)} seeds"
    )
    for strategy in ("random", "least confidence", "suggest"):
        errors = np.empty((len(seeds), ROUNDS + 1))
        for place, seed in enumerate(seeds):
            rng = np.random.default_rng(seed)
            y = drawn_labels(truth, per_class, rng)
            for step in range(ROUNDS + 1):
                clf = ManifoldKNNClassifier(neighbors=neighbors).fit(X, y)
                errors[place, step] = (clf.transduction_ != truth).mean()
                rows = next_rows(strategy, clf, y, rng)
                y[rows] = truth[rows]
        steps = " ".join(f"{100 * e:6.2f}" for e in errors.mean(axis=0))
        print(f"{strategy:17s} {steps}   rounds 1-5: {100 * errors[:, 1:].mean():.2f}", flush=True)


def measure_errors(X, truth, neighbors, per_class, seeds):
    print(f"precision among the first n, n the number of wrong labels ({WRONG:.0%} injected)")
    precisions, recalls = [], []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        y = drawn_labels(truth, per_class, rng)
        labeled = np.flatnonzero(y >= 0)
        n = int(WRONG * len(labeled))
        wrong = rng.choice(labeled, n, replace=False)
        y[wrong] = (y[wrong] + rng.integers(1, 10, n)) % 10
        clf = ManifoldKNNClassifier(neighbors=neighbors).fit(X, y)
        found = find_label_errors(clf).rows
        precisions.append(np.isin(found[:n], wrong).sum() / n)
        recalls.append(np.isin(wrong, found).mean())
    print(
        f"{len(labeled)} labels, {n} wrong: precision {np.mean(precisions):.3f} "
        f"(least {np.min(precisions):.3f}); {np.mean(recalls):.3f} of the wrong ones are listed",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["suggest", "errors"])
    parser.add_argument("data", choices=["digits", "mnist"])
    parser.add_argument("rows", nargs="?", type=int, help="rows of MNIST; all by default")
    parser.add_argument("--per-class", type=int, default=3, help="labels per class; 0: all rows")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args()
    X, truth = data(options.data, options.rows)
    found = open_index(X, "auto", metric="euclidean", n_jobs=None, seed=0).among_samples(30)
    measure = measure_suggestions if options.what == "suggest" else measure_errors
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    print(f"{options.data}: {len(X)} rows, {options.per_class or 'all'} labels per class at first")
    measure(X, truth, (found.indices, found.distances), options.per_class, seeds)


if __name__ == "__main__":
    main()
