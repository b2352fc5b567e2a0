"""The cases: what is measured, against whom, and what is wanted of it.

A case takes a `Bench` and returns rows (one per measurement or per method) and targets.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

import numpy as np
from targets import Target, exponent, ratio

GRAPH_LEARNING = ("gl-poisson", "gl-laplace")
ALL = ("ours", "sklearn", "sklearn-long", *GRAPH_LEARNING)
MNIST = {"divide_by": 255, "per_class": 10}
EXPONENT_TIME, EXPONENT_MEMORY = 1.2, 1.05
SHARE_OF_TREE = 10  # percent of a fit of a million rows


@dataclass
class Result:
    """Rows and targets of a case.

    Attributes
    ----------
    rows : list of dict
        The table.
    targets : list of Target
        The checks.
    """

    rows: list
    targets: list


def mnist(bench):
    """MNIST, 10 labels per class, against the peers; import and load included."""
    data = bench.subset("mnist.npz", 10_000 if bench.quick else 70_000)
    rows = {method: bench.measure(method, data=data, **MNIST) for method in bench.wanted(*ALL)}
    ours = rows.get("ours", {})
    for row in rows.values():
        row["ratio"] = ratio(row.get("seconds"), ours.get("seconds"))
    graph_learning = [rows.get(method, {}).get("seconds") for method in GRAPH_LEARNING]
    fastest = min((seconds for seconds in graph_learning if seconds is not None), default=None)
    sklearn = rows.get("sklearn", {}).get("seconds")
    targets = [
        Target("time / GraphLearning's faster one", ratio(ours.get("seconds"), fastest), 1 / 4),
        Target("time / scikit-learn's", ratio(ours.get("seconds"), sklearn), 1 / 8),
        Target("error", ours.get("error_pct"), 4.4, "%"),
        Target("peak memory", ours.get("peak_mb"), 1500, "MB"),
        _no_compiler(ours),
    ]
    return Result(list(rows.values()), targets)


def covtype(bench):
    """Covertype, 581,012 rows, 100 labels per class; no peer is asked to do this."""
    row = bench.measure("ours", data=bench.file("covtype.npz"), per_class=100)
    targets = [
        Target("time", row.get("seconds"), 55, "s"),
        Target("peak memory", row.get("peak_mb"), 4000, "MB"),
        Target("error", row.get("error_pct"), None, "%"),
        _no_compiler(row),
    ]
    return Result([row], targets)


def growth(bench):
    """MNIST subsamples, 10 labels per class: how time and memory grow with n.

    Ours is the fastest of three processes per size (of one if sizes are small), so that a busy
    moment does not bend the exponent; the net columns are without the process of the first row,
    which only imports the package.
    """
    sizes = (2000, 4000, 8000) if bench.quick else (5000, 10_000, 20_000, 40_000, 70_000)
    scale = min(1.0, bench.rows("mnist.npz") / max(sizes))  # a smaller file: smaller sizes
    repeats = 1 if bench.quick else 3
    base = _fastest(bench.measure("ours", "import only") for _ in range(repeats))
    rows, ours = [{**base, "method": f"{base['method']}, import only", "n": 0}], []
    for size in (int(size * scale) for size in sizes):
        data, what = bench.subset("mnist.npz", size), f"{size:,} rows"
        ours.append(
            _fastest(bench.measure("ours", what, data=data, **MNIST) for _ in range(repeats))
        )
        ours[-1]["n"] = size
        rows.append(ours[-1])
        if size <= 20_000:  # beyond, the peers would take longer than all the rest
            rows += [
                {**bench.measure(method, what, data=data, **MNIST), "n": size}
                for method in bench.wanted("sklearn", "gl-poisson")
            ]
    for row in ours:
        row["net_seconds"] = _difference(row, base, "seconds")
        row["net_mb"] = _difference(row, base, "peak_mb")

    def fitted(column):
        return exponent([row["n"] for row in ours], [row.get(column) for row in ours])

    targets = [
        Target("exponent of time in n", fitted("seconds"), EXPONENT_TIME),
        Target("exponent of peak memory in n", fitted("peak_mb"), EXPONENT_MEMORY),
        Target("exponent of time in n, net of import", fitted("net_seconds"), None),
        Target("exponent of peak memory in n, net of import", fitted("net_mb"), None),
    ]
    return Result(rows, targets)


def labels(bench):
    """Pendigits with many labels: seconds of a fit, fastest of three in one process."""
    data = bench.file("pendigits.npz")
    shares, rows, fit = (0.125, 0.25, 0.5), [], {}
    for share in shares:
        for method in bench.wanted("ours", "knn"):
            what = f"{100 * share:g} % labelled"
            row = bench.measure(method, what, data=data, share=share, repeats=3)
            row["share_pct"] = 100 * share
            fit[method, share] = row.get("fit_s")
            rows.append(row)
            row["ratio"] = ratio(row.get("fit_s"), fit.get(("ours", share)))
    ours, knn = ([fit.get((method, share)) for share in shares] for method in ("ours", "knn"))
    targets = [
        Target("fit, 50 % labelled", ours[2], 3, "s"),
        Target("fit / KNeighborsClassifier's, 50 % labelled", ratio(ours[2], knn[2]), 8),
        Target("time of 25 % / 12.5 % labelled", ratio(ours[1], ours[0]), 2),
        Target("time of 50 % / 25 % labelled", ratio(ours[2], ours[1]), 2),
    ]
    return Result(rows, targets)


def many(bench):
    """MNIST with 100 labels and with 10 % of its rows labelled; Covertype with 1, 10 and 50 %."""
    rows = [bench.measure("ours", "mnist, 100 labels", data=bench.file("mnist.npz"), **MNIST)]
    for name, share, divide_by in (
        ("mnist", 0.1, 255),
        ("covtype", 0.01, None),
        ("covtype", 0.1, None),
        ("covtype", 0.5, None),
    ):
        what, data = f"{name}, {100 * share:g} % labelled", bench.file(f"{name}.npz")
        row = bench.measure("ours", what, data=data, share=share, divide_by=divide_by)
        rows.append({**row, "setting": name, "share_pct": 100 * share})
    rows[0]["setting"] = "mnist"
    more = ratio(rows[1].get("seconds"), rows[0].get("seconds"))
    targets = [Target("mnist: time with 10 % labelled / with 100 labels", more, 1.5)]
    targets += [
        Target(f"covtype: time, {row['share_pct']:g} % labelled", row.get("seconds"), wanted, "s")
        for row, wanted in zip(rows[2:], (None, None, 55))
    ]
    return Result(rows, targets)


def seeds(bench):
    """MNIST subsample: the same labels from every run, for any n_jobs."""
    data, rows = bench.subset("mnist.npz", 4000 if bench.quick else 20_000), []
    for n_jobs in (None, None, 1, 2):
        options = {"random_state": 0, "n_jobs": n_jobs}
        row = bench.measure("ours", f"n_jobs={n_jobs}", data=data, options=options, **MNIST)
        setting = f"random_state=0, n_jobs={n_jobs}"
        rows.append({**row, "setting": setting, "answer": row.get("digest")})
    answers = {row["answer"] for row in rows}
    different = None if None in answers else len(answers)
    return Result(rows, [Target("different answers in four runs", different, 1)])


def importing(bench):
    """Import in a fresh process, median of five, and whether it loads a compiler."""
    rows = [bench.measure("ours", "import only") for _ in range(5)]
    times = [row["import_s"] for row in rows if "import_s" in row]
    seconds = median(times) if len(times) == len(rows) else None
    targets = [Target("import", seconds, 1.5, "s", strict=True), _no_compiler(*rows)]
    return Result(rows, targets)


def accuracy(bench):
    """MNIST: what tolerance, precision and approximate neighbours change.

    On 20,000 rows labels are held against those from exact neighbours, X in double precision and
    tol=1e-9, for which the walk is computed in double precision too; on all rows, where exact
    neighbours would take minutes, against those for tol=1e-9.
    """
    exact = {"neighbors": "exact"}
    some = {
        "defaults": {},
        "exact neighbours": exact,
        "exact neighbours, tol=0.1": {**exact, "tol": 0.1},
        "exact neighbours, tol=1e-6": {**exact, "tol": 1e-6},
        "exact neighbours, X in double precision": exact,
        "exact neighbours, X in double precision, tol=1e-9": {**exact, "tol": 1e-9},
    }
    every = {f"tol={tol:g}": {"tol": tol} for tol in (0.1, 0.01, 1e-3, 1e-4, 1e-6, 1e-9)}
    rows = _compared(bench, bench.subset("mnist.npz", 4000 if bench.quick else 20_000), some)
    change = _difference(rows[0], rows[1], "error_pct")
    targets = [
        Target("labels changed by tol (walk)", rows[1].get("differs_pct"), 0.1, "%"),
        Target(
            "error changed by approximate neighbours",
            None if change is None else abs(change),
            0.3,
            "points",
        ),
    ]
    rows += _compared(bench, bench.subset("mnist.npz", 8000 if bench.quick else 70_000), every)
    return Result(rows, targets)


def _compared(bench, data, settings):
    """Measure all settings, and hold their labels against those of the last."""
    rows, found = [], []
    for number, (setting, options) in enumerate(settings.items()):
        file = bench.scratch / f"labels-{number}.npy"
        double = True if "double" in setting else None
        row = bench.measure(
            "ours", setting, data=data, options=options, double=double, labels_to=file, **MNIST
        )
        rows.append({**row, "setting": setting})
        found.append(np.load(file) if row["status"] == "ok" else None)
    for row, answer in zip(rows, found):
        if answer is not None and found[-1] is not None:
            row["differs_pct"] = 100 * float(np.mean(answer != found[-1]))
    return rows


def candidates(bench):
    """From how many neighbours the spanning tree of the pruned graph is taken.

    MNIST with 10, Covertype with 100 labels per class.
    """
    rows, errors = [], {}
    for name, per_class, divide_by in (("mnist", 10, 255), ("covtype", 100, None)):
        data = bench.subset(f"{name}.npz", 4000) if bench.quick else bench.file(f"{name}.npz")
        for count in (10, 15, 20, 30):
            row = bench.measure(
                "ours",
                f"{name}, {count} candidates",
                data=data,
                divide_by=divide_by,
                per_class=per_class,
                candidates=count,
            )
            rows.append({**row, "setting": name, "candidates": count})
            errors[name, count] = row.get("error_pct")
    targets = []
    for (name, count), error in errors.items():
        more = None if None in (error, errors[name, 30]) else error - errors[name, 30]
        if count < 30:
            what = f"{name}: error with {count} candidates, above that with 30"
            targets.append(Target(what, more, None, "points"))
    return Result(rows, targets)


def million(bench):
    """Where the time goes: a million made-up rows of 32 columns, 10 labels per class."""
    n_rows = 20_000 if bench.quick else 1_000_000
    rows = []
    for count in (30, 15):
        row = bench.measure(
            "ours", f"{count} candidates", data=bench.made(n_rows), candidates=count
        )
        rows.append({**row, "candidates": count})
    share = ratio(
        rows[0].get("spanning_s", 0.0) + rows[0].get("joining_s", 0.0), rows[0].get("fit_s")
    )
    share = None if share is None else 100 * share
    targets = [
        Target("spanning tree and joining, share of the fit", share, SHARE_OF_TREE, "%"),
        Target("time", rows[0].get("seconds"), 100, "s"),
        Target("peak memory", rows[0].get("peak_mb"), None, "MB"),
    ]
    return Result(rows, targets)


CASES = {
    "mnist": mnist,
    "covtype": covtype,
    "growth": growth,
    "labels": labels,
    "many": many,
    "seeds": seeds,
    "import": importing,
    "accuracy": accuracy,
    "candidates": candidates,
    "million": million,
}
QUICK = ("mnist", "growth", "labels", "seeds", "import")


def _no_compiler(*rows):
    loaded = [row.get("compilers") for row in rows]
    value = None if None in loaded else float(max(map(len, loaded)))
    return Target("modules loaded that compile at run time", value, 0)


def _fastest(rows):
    return min(rows, key=lambda row: row.get("seconds", float("inf")))


def _difference(row, other, column):
    if row.get(column) is None or other.get(column) is None:
        return None
    return row[column] - other[column]
