"""Measure learning from a stream: error and time beside fitting again, and predict beside kNN.

    python benchmarks/online.py                  every part
    python benchmarks/online.py error speed      some of them
    python benchmarks/online.py --quick          one seed, fewer rows

Parts: error (online against refitting, as in the paper), speed (seconds per row of both),
dense (the paper's own method: all pairs, plain inverse), labels (what a label costs), predict
(satlog) and mnist (throughput and latency beside KNeighborsClassifier). The data sets are
looked for in the folder that MANIFOLDKNN_DATA names. Tables go to results/online.md.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import sys
import time
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from machine import commit, machine, versions
from samples import load
from scipy import sparse
from sklearn.neighbors import KNeighborsClassifier

from manifoldknn import ManifoldKNNClassifier, constrained_graph, tired_random_walk
from manifoldknn.model.geometry import reopened

RESULTS = Path(__file__).with_name("results")
SETS = {"satlog": "satimage", "pendigits": "pendigits", "banknote": "banknote"}
LABELS_PER_CLASS = 10
ONLINE = 1000
STEP = 100  # rows between two refits whose error is taken
REFITS_TIMED = 5


def data(name):
    """Return a set scaled to [0, 1], repeated rows removed."""
    folder = os.environ.get("MANIFOLDKNN_DATA")
    if not folder:
        sys.exit("Set MANIFOLDKNN_DATA to the folder of the data sets.")
    X, y = load(Path(folder) / f"{SETS.get(name, name)}.npz")
    first = np.sort(np.unique(X, axis=0, return_index=True)[1])
    return X[first].astype(np.float64), y[first]


def split(y, seed, n_online=ONLINE):
    """Rows of a fit with ten labels per class, its y, and the online rows that follow.

    One random order per seed: the online set is its end, so that sizes share their fits.
    """
    rng = np.random.default_rng(seed)
    labeled = np.concatenate(
        [rng.choice(np.flatnonzero(y == c), LABELS_PER_CLASS, replace=False) for c in np.unique(y)]
    )
    rest = rng.permutation(np.setdiff1d(np.arange(len(y)), labeled))
    known = np.concatenate([labeled, rest[:-n_online]])
    partly = np.concatenate([y[labeled], np.full(len(known) - len(labeled), -1)])
    return known, partly, rest[-n_online:]


def seconds(work, *arguments):
    """Time one call."""
    start = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - start


def median_seconds(times, work, *arguments):
    return float(np.median([seconds(work, *arguments) for _ in range(times)]))


def error(options):
    """Error in percent of rows that came one by one, and of refitting with each hundred."""
    rows = []
    sizes = range(STEP, ONLINE + 1, STEP)
    for name in options.only or SETS:
        X, y = data(name)
        online, refit = {m: [] for m in sizes}, {m: [] for m in sizes}
        for seed in range(1 if options.quick else 5):
            known, partly, stream = split(y, seed, ONLINE)
            order = np.concatenate([known, stream])
            labels = np.concatenate([partly, np.full(ONLINE, -1)])
            models = {}  # by the number of rows left out
            for left in range(0, ONLINE + 1, STEP):
                part = order[: len(order) - left]
                models[left] = ManifoldKNNClassifier().fit(X[part], labels[: len(part)])
            # Was each of the newest hundred wrong?
            last = {
                left: clf.transduction_[-STEP:] != y[order[: len(order) - left][-STEP:]]
                for left, clf in models.items()
            }
            for m in sizes:
                clf = copy(models[m])  # grows without changing the one it was copied from
                for row in order[-m:]:
                    clf.partial_fit(X[row : row + 1], refresh=False)
                online[m].append(np.mean(clf.transduction_[-m:] != y[order[-m:]]))
                refit[m].append(np.mean([last[left] for left in range(0, m, STEP)]))
        for m in sizes:
            mine, theirs = 100 * np.mean(online[m]), 100 * np.mean(refit[m])
            rows.append(
                {"set": name, "online rows": m, "online, %": mine, "refit, %": theirs,
                 "difference": mine - theirs}
            )  # fmt: skip
    return rows


def per_row(X, known, partly, stream, chunk, refresh):
    """Mean seconds per row of taking a stream in."""
    clf = ManifoldKNNClassifier().fit(X[known], partly)
    start = time.perf_counter()
    for first in range(0, len(stream), chunk):
        clf.partial_fit(X[stream[first : first + chunk]], refresh=refresh)
    return (time.perf_counter() - start) / len(stream)


def beside_refitting(X, y, seconds_of_refit, name):
    """Rows of a table: a stream of 100 and of 1000 rows, against a fit on all of them per row.

    The call with all rows is the fastest of three, what comes one by one is timed once.
    """
    rows = []
    for n_online in (100, ONLINE):
        known, partly, stream = split(y, 0, n_online)
        one = per_row(X, known, partly, stream, 1, False)
        together = min(per_row(X, known, partly, stream, n_online, False) for _ in range(3))
        row = {
            "set": name,
            "rows": len(known),
            "online rows": n_online,
            "one by one": 1e3 * one,
            "in one call": 1e3 * together,
            "refit": 1e3 * seconds_of_refit,
            "refit / one by one": seconds_of_refit / one,
            "refit / in one call": seconds_of_refit / together,
        }
        rows.append(row)
    return rows


def everything(y):
    """All rows in the order of the stream, with the labels of the fit."""
    known, partly, stream = split(y, 0)
    return np.concatenate([known, stream]), np.concatenate([partly, np.full(ONLINE, -1)])


def speed(options):
    """Milliseconds per row of the stream, against our own fit on all rows seen."""
    rows = []
    for name in SETS:
        X, y = data(name)
        order, partly = everything(y)
        times = 2 if options.quick else REFITS_TIMED
        refit = median_seconds(times, ManifoldKNNClassifier().fit, X[order], partly)
        for row in beside_refitting(X, y, refit, name):
            known, partly, stream = split(y, 0, row["online rows"])
            automatic = 1e3 * per_row(X, known, partly, stream, 1, "auto")
            rows.append(row | {"one by one, refresh=auto": automatic})
    return rows


def plain_fit(X, partly):
    """Classify by the paper's method as it stands: all pairs, one plain inverse, one vote."""
    W = constrained_graph(X, partly, graph="full")
    P = tired_random_walk(W)
    labeled = np.flatnonzero(partly >= 0)
    weights = (P[:, labeled] + P[labeled].T) / 2
    heaviest = np.argsort(-weights, axis=1)[:, :5]
    votes = np.zeros((len(X), partly.max() + 1))
    place = (np.arange(len(X))[:, None], partly[labeled][heaviest])
    np.add.at(votes, place, np.take_along_axis(weights, heaviest, axis=1))
    return votes.argmax(axis=1)


def dense(options):
    """Milliseconds per row of the stream, against the paper's method on all rows seen.

    That is the graph of all pairs, a plain inverse and a vote.
    """
    rows = []
    for name in SETS:
        X, y = data(name)
        if options.quick:
            X, y = X[:2000], y[:2000]
        order, partly = everything(y)
        times = 1 if len(order) > 5000 else REFITS_TIMED
        refit = median_seconds(times, plain_fit, X[order], partly)
        rows += beside_refitting(X, y, refit, name)
    return rows


def labels(options):
    """Time a label: on a row of the model, on a new row, and by fitting again."""
    rows = []
    for name in SETS:
        X, y = data(name)
        known, partly, stream = split(y, 0)
        times = {"set_labels, known row": [], "partial_fit, labelled row": [], "fit": []}
        for row in stream[: 2 if options.quick else 5]:
            clf = ManifoldKNNClassifier().fit(X[known], partly)
            last = len(known) - 1
            times["set_labels, known row"].append(seconds(clf.set_labels, [last], y[known[last]]))
            times["partial_fit, labelled row"].append(
                seconds(clf.partial_fit, X[row : row + 1], y[row : row + 1])
            )
            both = np.append(known, row)
            labels_of_both = np.append(partly, y[row])
            times["fit"].append(seconds(ManifoldKNNClassifier().fit, X[both], labels_of_both))
        rows.append({"set": name, **{f"{k}, ms": 1e3 * np.median(v) for k, v in times.items()}})
    return rows


def latency(model, Q, count=300):
    """Median milliseconds of a single row."""
    return 1e3 * np.median([seconds(model.predict, q[None]) for q in Q[:count]])


def against_knn(name, X, y, new, clf, engine):
    """One line of the table: a batch and a single row, of ours and of kNN."""
    clf.predict(new[:64])
    knn = KNeighborsClassifier(n_neighbors=10, algorithm="brute", n_jobs=-1).fit(X, y)
    knn.predict(new[:64])
    times = 5 if len(X) < 20_000 else 1
    ours, theirs = (median_seconds(times, model.predict, new) for model in (clf, knn))
    return {
        "set": name, "engine": engine, "rows": len(X), "queries": len(new), "ours, s": ours,
        "kNN, s": theirs, "ours / kNN": ours / theirs, "one row, ours, ms": latency(clf, new),
        "one row, kNN, ms": latency(knn, new),
    }  # fmt: skip


def predict(_):
    """Predict on satlog, the last 2000 rows from the first 4435, 10 labels per class."""
    X, y = data("satlog")
    n = 4435
    return [against_knn("satlog", X[:n], y[:n], X[n:], fitted(X[:n], y[:n]), "exact")]


def mnist(options):
    """Predict on MNIST, 10,000 rows from 60,000: exact, and on inverted lists.

    On inverted lists kNN gets its ten neighbours from the same index and votes with them.
    """
    X, y = data("mnist")
    X = X.astype(np.float32)
    n, m = (5000, 1000) if options.quick else (60_000, 10_000)
    X, y, new = X[:n], y[:n], X[n : n + m]
    clf = fitted(X, y, neighbors="inverted")
    clf.predict(new[:64])
    ours = median_seconds(3, clf.predict, new)
    index = clf.fitted_.index.first
    knn = KNeighborsClassifier(n_neighbors=10, metric="precomputed", n_jobs=-1)
    knn.fit(sparse.csr_array(sparse.eye_array(n)), y)

    def same_index():
        found = index.query(new, 10)
        pointers = np.arange(0, found.indices.size + 1, 10)
        shape = (len(new), n)
        graph = sparse.csr_array((found.distances.ravel(), found.indices.ravel(), pointers), shape)
        return knn.predict(graph)

    theirs = median_seconds(3, same_index)
    line = {
        "set": "mnist", "engine": "inverted", "rows": n, "queries": m, "ours, s": ours,
        "kNN, s": theirs, "ours / kNN": ours / theirs, "one row, ours, ms": latency(clf, new),
    }  # fmt: skip
    # The walk does not depend on who searches for new rows: the exact index takes over.
    clf.set_params(neighbors="exact")
    clf.fitted_ = replace(clf.fitted_, index=reopened(clf, X))
    return [line, against_knn("mnist", X, y, new, clf, "exact")]


def fitted(X, y, **parameters):
    rng = np.random.default_rng(0)
    partly = np.full(len(y), -1)
    for c in np.unique(y):
        rows = rng.choice(np.flatnonzero(y == c), LABELS_PER_CLASS, replace=False)
        partly[rows] = c
    return ManifoldKNNClassifier(**parameters).fit(X, partly)


PARTS = {part.__name__: part for part in (error, speed, dense, labels, predict, mnist)}


def table(rows):
    """Return rows as Markdown."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    lines = ["| " + " | ".join(keys) + " |", "| " + " | ".join("---" for _ in keys) + " |"]
    for row in rows:
        cells = [row.get(key, "") for key in keys]
        shown = [f"{c:,.3g}" if isinstance(c, float) and abs(c) < 1000 else c for c in cells]
        shown = [f"{c:,.0f}" if isinstance(c, float | int) else str(c) for c in shown]
        lines.append("| " + " | ".join(shown) + " |")
    return "\n".join(lines)


def write(path, text):
    """Write a file whole or not at all."""
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="part")
    parser.add_argument("--only", nargs="*", choices=SETS, help="sets whose error is measured")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "online.json"
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    here = {**machine(), "commit": commit()}  # before a file of results changes the tree
    for name in options.parts or PARTS:
        rows = PARTS[name](options)
        if options.only and name == "error":  # the other sets stay as they were
            before = kept.get(name, {"rows": []})["rows"]
            rows = [row for row in before if row["set"] not in options.only] + rows
        print(f"{name}: {PARTS[name].__doc__.splitlines()[0]}\n\n{table(rows)}\n", flush=True)
        when = datetime.now(UTC).strftime("%Y-%m-%d")
        kept[name] = {"rows": rows, "when": when, "machine": here, "versions": versions()}
        write(path, json.dumps(kept, indent=1, default=float) + "\n")
    pages = ["# Learning from a stream\n\nWritten by `python benchmarks/online.py`."]
    for name in [part for part in PARTS if part in kept]:
        entry = kept[name]
        where = ", ".join(str(v) for v in entry["machine"].values())
        pages.append(
            f"## {name}\n\n{inspect.cleandoc(PARTS[name].__doc__)}\n\n{table(entry['rows'])}\n\n"
            f"Measured on {entry['when']}: {where}."
        )
    write(options.out / "online.md", "\n\n".join(pages) + "\n")


if __name__ == "__main__":
    main()
