"""Labels drawn as people draw them: errors, calibration, more labels, and the estimate's interval.

    MANIFOLDKNN_DATA=... python benchmarks/draws.py                 everything, some 15 minutes
    MANIFOLDKNN_DATA=... python benchmarks/draws.py errors small    parts of it

b1, b3, b10: that many labels per class. r3, r10: one per class and the rest at random from all
rows, 3C or 10C in all, so that classes get unequal numbers. x12: one class gets 12, the others 3.
Seeds 0 to 4. Features are scaled to [0, 1], repeated rows of segmentation and banknote removed.
Every part goes to ``results/draws-*.csv``, and ``results/draws.md`` is made of them.
"""

from __future__ import annotations

import argparse
import csv
import os
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from machine import commit
from report import markdown_table
from sklearn import datasets
from sklearn.metrics import roc_auc_score

from manifoldknn import ManifoldKNNClassifier

RESULTS = Path(__file__).with_name("results")
FILES = {"multifeature": "mfeat", "satlog": "satimage", "mnist 10,000": "mnist"}
SETS = ("usps", "segmentation", "banknote", "pendigits", "multifeature", "satlog", "mnist 10,000")
TABLES = ("nursery", "spambase", "yeast")
PARTNERED = (
    "nursery", "spambase", "page_blocks", "yeast", "segmentation", "satlog", "usps", "pendigits",
)  # fmt: skip
PROTOCOLS = ("b1", "b3", "b10", "r3", "r10", "x12")
SMALL = {
    "breast cancer": datasets.load_breast_cancer,
    "iris": datasets.load_iris,
    "digits": datasets.load_digits,
    "wine": datasets.load_wine,
}
SEEDS, BINS = 5, 15


def load(name):
    """Return X in [0, 1] and the classes."""
    if name in SMALL:
        return scaled(*SMALL[name](return_X_y=True))
    with np.load(Path(os.environ["MANIFOLDKNN_DATA"]) / f"{FILES.get(name, name)}.npz") as file:
        X, y = file["X"], file["y"]
    if name.startswith("mnist"):
        if " " in name:
            rows = np.random.default_rng(0).permutation(len(X))[:10_000]
            X, y = X[rows], y[rows]
        return X.astype(np.float32) / 255, y
    if name in ("segmentation", "banknote"):
        kept = np.sort(np.unique(X, axis=0, return_index=True)[1])
        X, y = X[kept], y[kept]
    return scaled(X.astype(np.float64), y)


def scaled(X, y):
    width = np.ptp(X, axis=0)
    return (X - X.min(axis=0)) / np.where(width > 0, width, 1.0), y


def draw(y, protocol, seed):
    """Return the rows that get a label."""
    rng, kind, m = np.random.default_rng(seed), protocol[0], int(protocol[1:])
    classes = range(y.max() + 1)
    if kind == "r":
        one = np.array([rng.choice(np.flatnonzero(y == c)) for c in classes])
        others = np.setdiff1d(np.arange(len(y)), one)
        return np.concatenate([one, rng.choice(others, (m - 1) * len(one), replace=False)])
    favoured = seed % len(classes) if kind == "x" else None
    counts = [m if kind == "b" or c == favoured else 3 for c in classes]
    return picked(y, counts, rng)


def picked(y, counts, rng):
    rows = [rng.choice(np.flatnonzero(y == c), m, replace=False) for c, m in enumerate(counts)]
    return np.concatenate(rows)


class Problem:
    """A set whose neighbours are searched once, for any labels."""

    def __init__(self, name):
        self.name, (self.X, self.y) = name, load(name)
        lists = self.fitted(draw(self.y, "b1", 0), "auto").fitted_.lists
        here, nothing = np.arange(len(self.y))[:, None], np.zeros((len(self.y), 1))
        self.near = np.hstack([here, lists.indices]), np.hstack([nothing, lists.distances])

    def fitted(self, rows, neighbors=None, **params):
        """Return a model with labels for these rows alone."""
        y = np.full(len(self.y), -1)
        y[rows] = self.y[rows]
        neighbors = self.near if neighbors is None else neighbors
        return ManifoldKNNClassifier(neighbors=neighbors, **params).fit(self.X, y)

    def measured(self, rows, **params):
        """Return error and calibration error of the unlabelled rows in percent, and the model."""
        clf = self.fitted(rows, **params)
        rest = np.setdiff1d(np.arange(len(self.y)), rows)
        right = clf.transduction_[rest] == self.y[rest]
        confidence = clf.label_distributions_[rest].max(axis=1)
        return 100 * (1 - right.mean()), calibration_error(confidence, right), clf


def calibration_error(confidence, right):
    """Return the expected calibration error in percent: 15 bins of the same width."""
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, confidence, BINS) - np.bincount(bins, right, BINS)
    return 100 * float(np.abs(gaps).sum()) / len(right)


def errors():
    """Error and calibration error of both votes, by set and protocol."""
    for name in (*SETS, *TABLES, "mnist"):
        problem = Problem(name)
        protocols = ("r10",) if name in TABLES else PROTOCOLS
        for protocol in protocols:
            for vote in ("classes", "neighbors"):
                if name == "mnist" and (vote == "neighbors" or protocol == "x12"):
                    continue
                for seed in range(SEEDS):
                    rows = draw(problem.y, protocol, seed)
                    error, calibration, _ = problem.measured(rows, vote=vote)
                    yield name, protocol, vote, seed, round(error, 4), round(calibration, 4)


def small():
    """Accuracy where one class has more labels: scikit-learn's small sets, 10 draws."""
    for name, counts in (
        ("breast cancer", (10, 3)),
        ("breast cancer", (3, 3)),
        ("iris", (3, 10, 3)),
        ("iris", (3, 3, 3)),
    ):
        problem = Problem(name)
        for seed in range(10):
            rows = picked(problem.y, counts, np.random.default_rng(seed))
            error = problem.measured(rows)[0]
            yield name, "/".join(map(str, counts)), seed, round(100 - error, 4)


def lopsided():
    """Measure what 20 more labels of one class take away, in points: every class, 10 draws."""
    for name in ("digits", "wine", "breast cancer"):
        problem = Problem(name)
        y = problem.y
        for seed in range(10):
            few, rng = draw(y, "b3", seed), np.random.default_rng(100 + seed)
            for c in range(y.max() + 1):
                more = rng.choice(np.setdiff1d(np.flatnonzero(y == c), few), 20, replace=False)
                many = np.concatenate([few, more])
                rest = np.setdiff1d(np.arange(len(y)), many)
                found = [problem.fitted(rows).transduction_[rest] for rows in (few, many)]
                before, after = (100 * float(np.mean(one == y[rest])) for one in found)
                yield name, c, seed, round(before - after, 4)


def nested():
    """Error as random labels are added: 3C, 5C, 8C and 12C of one order, 5 draws."""
    for name in ("usps", "segmentation", "pendigits", "satlog", "multifeature"):
        problem = Problem(name)
        n_classes = problem.y.max() + 1
        for seed in range(SEEDS):
            rows = draw(problem.y, "r12", seed)
            for m in (3, 5, 8, 12):
                yield name, m, seed, round(problem.measured(rows[: m * n_classes])[0], 4)


def coverage():
    """How often the interval of the expected accuracy holds the true one, 100 draws."""
    digits = Problem("digits")
    for seed in range(100):
        for protocol in ("r3", "r5", "r10"):
            yield _covered("digits", protocol, digits, seed)
        for protocol in ("r5", "r10"):
            yield _covered("80/15/5 %", protocol, Uneven(seed), seed)


class Uneven(Problem):
    """Three arches that touch, with 80, 15 and 5 % of 2,000 rows."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.y = rng.choice(3, 2000, p=[0.8, 0.15, 0.05])
        turn = rng.uniform(0, np.pi, 2000)
        start, up = np.array([[0, 0], [1, 0.5], [2, 0]])[self.y], np.array([1, -1, 1])[self.y]
        X = start + np.column_stack([np.cos(turn), up * np.sin(turn)])
        self.X, _ = scaled(X + rng.normal(scale=0.18, size=X.shape), self.y)
        self.near = "auto"


def _covered(name, protocol, problem, seed):
    error, _, clf = problem.measured(draw(problem.y, protocol, seed))
    low, high = clf.hidden_labels_.interval()
    numbers = (clf.hidden_labels_.accuracy, low, high, 1 - error / 100)
    return name, protocol, seed, *(round(number, 4) for number in numbers)


def partner():
    """Error and calibration error of densities, of the forest alone, and of both, at r10."""
    for name in PARTNERED:
        problem = Problem(name)
        for seed in range(SEEDS):
            rows = draw(problem.y, "r10", seed)
            rest = np.setdiff1d(np.arange(len(problem.y)), rows)
            alone = problem.measured(rows)
            *both, clf = problem.measured(rows, partner="forest")
            said = clf.partner_.predict_proba(problem.X[rest])
            right = said.argmax(axis=1) == problem.y[rest]
            forest = 100 * (1 - right.mean()), calibration_error(said.max(axis=1), right)
            found = {"densities": alone[:2], "forest": forest, "both": both}
            for who, numbers in found.items():
                weight = clf.partner_weight_ if who == "both" else 0.0
                yield name, who, seed, *(round(float(x), 4) for x in (*numbers, weight))


def strangers():
    """Confidence of classes without labels and of noise, and what doubts do to the others."""
    digits = Problem("digits")
    known = np.flatnonzero(digits.y < 8)
    for protocol in ("b3", "r3", "r10"):
        for seed in range(SEEDS):
            rows = known[draw(digits.y[known], protocol, seed)]
            clf = digits.fitted(rows)
            confidence = clf.label_distributions_.max(axis=1)
            noise = np.random.default_rng(seed).random((500, digits.X.shape[1]))
            groups = {
                "known classes": confidence[np.setdiff1d(known, rows)],
                "classes 8 and 9, without labels": confidence[digits.y >= 8],
                "uniform noise": clf.predict_proba(noise).max(axis=1),
            }
            for name, values in groups.items():
                yield "digits", protocol, seed, name, round(float(values.mean()), 4)
    for name in ("digits", *SETS):
        problem = Problem(name)
        for protocol in ("r3", "r10", "x12"):
            for seed in range(SEEDS):
                rows = draw(problem.y, protocol, seed)
                _, calibration, clf = problem.measured(rows)
                rest = np.setdiff1d(np.arange(len(problem.y)), rows)
                right = clf.transduction_[rest] == problem.y[rest]
                found = roc_auc_score(right, clf.label_distributions_[rest].max(axis=1))
                yield name, protocol, seed, "calibration error", round(calibration, 4)
                yield name, protocol, seed, "area", round(float(found), 4)


PARTS = {
    "errors": (errors, ("data", "protocol", "vote", "seed", "error", "calibration")),
    "small": (small, ("data", "labels", "seed", "accuracy")),
    "lopsided": (lopsided, ("data", "class", "seed", "points_lost")),
    "nested": (nested, ("data", "labels_per_class", "seed", "error")),
    "partner": (partner, ("data", "who", "seed", "error", "calibration", "weight")),
    "strangers": (strangers, ("data", "protocol", "seed", "measure", "value")),
    "coverage": (coverage, ("data", "protocol", "seed", "expected", "low", "high", "true")),
}


def measure(part):
    function, columns = PARTS[part]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # three labels per class are what is measured
        rows = list(function())
    code = commit()  # before a file of results changes the tree
    with (RESULTS / f"draws-{part}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([[*columns, "commit"], *([*row, code] for row in rows)])


def read(part):
    """Return what was measured; nothing where that has not been done yet."""
    if not (RESULTS / f"draws-{part}.csv").exists():
        return []
    with (RESULTS / f"draws-{part}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def means(rows, keys, value):
    found = defaultdict(list)
    for row in rows:
        found[tuple(row[key] for key in keys)].append(float(row[value]))
    return {key: float(np.mean(values)) for key, values in found.items()}


def page():
    """Return the Markdown page of what was measured last."""
    errors_of = read("errors")
    error, off = (
        means(errors_of, ("data", "protocol", "vote"), value) for value in ("error", "calibration")
    )
    lines = ["# Labels drawn as people draw them", "", *__doc__.splitlines()[5:9], ""]
    lines += [f"Measured at {_commits()}.", ""]

    def table(numbers, names, title):
        cells = [
            [p, *(_pair(numbers, name, p) for name in names)]
            for p in PROTOCOLS
            if any((name, p, "classes") in numbers for name in names)
        ]
        return [title, "", markdown_table(["", *names], cells), ""]

    lines += table(error, (*SETS, "mnist"), "Error in percent, classes / neighbours vote:")
    lines += table(off, SETS, "Expected calibration error in percent, classes / neighbours vote:")
    lines += table(off, TABLES, "The same on tables without much structure:")
    lines += ["Accuracy in percent where one class has more labels:", ""]
    found = means(read("small"), ("data", "labels"), "accuracy")
    lines += [markdown_table(["data", "labels", "accuracy"], _rows(found)), ""]
    lines += ["Points of accuracy that 20 more labels of one class take away (mean):", ""]
    found = means(read("lopsided"), ("data",), "points_lost")
    lines += [markdown_table(["data", "points"], _rows(found)), ""]
    lines += ["Error in percent as random labels are added:", ""]
    found = means(read("nested"), ("data", "labels_per_class"), "error")
    names = sorted({name for name, _ in found})
    steps = ("3", "5", "8", "12")
    cells = [[name, *(f"{found[name, m]:.2f}" for m in steps)] for name in names]
    lines += [markdown_table(["data", *(f"{m}C" for m in steps)], cells), ""]
    lines += _partner_lines(read("partner"))
    found = means(read("strangers"), ("data", "protocol", "measure"), "value")
    lines += _stranger_lines(found) if found else []
    lines += ["Draws in which the 95 % interval held the true accuracy:", ""]
    rows = read("coverage")
    for row in rows:
        row["held"] = float(row["low"]) <= float(row["true"]) <= float(row["high"])
        row["width"] = float(row["high"]) - float(row["low"])
    held, width = (means(rows, ("data", "protocol"), value) for value in ("held", "width"))
    cells = [[*key, f"{100 * share:.0f} %", f"{width[key]:.2f}"] for key, share in held.items()]
    lines += [markdown_table(["data", "labels", "held", "mean width"], cells), ""]
    return "\n".join(lines)


def _commits():
    """Return which parts were measured at which commit."""
    parts = defaultdict(list)
    for part in PARTS:
        for code in sorted({row["commit"] for row in read(part)}):
            parts[code].append(part)
    return "; ".join(f"{code} ({', '.join(names)})" for code, names in parts.items())


def _partner_lines(rows):
    """Return the table of what a forest in the vote changes, and the ratio of errors."""
    error, off = (means(rows, ("data", "who"), value) for value in ("error", "calibration"))
    voters = ("densities", "forest", "both")
    cells = [
        [name, *(f"{error[name, who]:.1f} ({off[name, who]:.1f})" for who in voters)]
        for name in PARTNERED
    ]
    ratios = [error[name, "both"] / error[name, "densities"] for name in PARTNERED]
    fewer = 100 * (1 - np.exp(np.mean(np.log(ratios))))
    mean_off = np.mean([off[name, "both"] for name in PARTNERED])
    return [
        "Error in percent at r10 with a forest as partner (calibration error in brackets):",
        "",
        markdown_table(["data", "densities", "forest alone", "both"], cells),
        "",
        f"Both have {fewer:.0f} % fewer errors than densities alone (geometric mean), and a mean "
        f"calibration error of {mean_off:.1f} %.",
        "",
    ]


def _stranger_lines(found):
    """Return how strangers are doubted, and how well confidence tells right answers from wrong."""
    groups = ("known classes", "classes 8 and 9, without labels", "uniform noise")
    cells = [
        [p, *(f"{found['digits', p, group]:.2f}" for group in groups)] for p in ("b3", "r3", "r10")
    ]
    lines = ["Mean confidence on digits, 8 and 9 without labels:", ""]
    lines += [markdown_table(["", *groups], cells), ""]
    for measure, form, words in (
        ("calibration error", ".1f", "Expected calibration error in percent"),
        ("area", ".3f", "Area under the ROC curve of confidence against being right"),
    ):
        names = ("digits", *SETS)
        cells = [
            [p, *(format(found[name, p, measure], form) for name in names)]
            for p in ("r3", "r10", "x12")
        ]
        lines += [f"{words}, doubts included:", "", markdown_table(["", *names], cells), ""]
    return lines


def _pair(numbers, name, protocol):
    found = [numbers.get((name, protocol, vote)) for vote in ("classes", "neighbors")]
    return " / ".join(f"{value:.1f}" for value in found if value is not None)


def _rows(found):
    return [[*key, f"{value:.1f}"] for key, value in found.items()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all by default")
    for part in parser.parse_args().parts or PARTS:
        measure(part)
        print(f"{part} is measured", flush=True)
    (RESULTS / "draws.md").write_text(page(), encoding="utf-8")
