"""Few labels, many samples: manifold kNN beside its neighbours, in numbers and in a picture.

Run it with ``python examples/demo.py``. It needs no network, takes under a minute, prints a table
of errors on handwritten digits with three labels per class, and draws the two interlocked classes
on which Euclidean neighbours fail. The picture needs matplotlib (``manifoldknn[plots]``).
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelSpreading
from tqdm import tqdm

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.datasets import make_arch_and_s
from manifoldknn.plots import plot_classes

UNLABELED = -1
LABELS_PER_CLASS = 3
SEEDS = range(10)

# What the method is compared with. Each peer gets scikit-learn's defaults (k=3 for the three
# labels per class) and settings that suit this data better; the table shows the best of them.
# LabelSpreading may iterate until it has converged, which the default of 30 rounds would cut short.
PEERS = {
    "kNN": [KNeighborsClassifier(n_neighbors=k) for k in (3, 1)],
    "weighted kNN": [KNeighborsClassifier(n_neighbors=k, weights="distance") for k in (3, 5)],
    "LabelSpreading, knn": [
        LabelSpreading(kernel="knn", n_neighbors=k, alpha=alpha, max_iter=1000)
        for k, alpha in ((7, 0.2), (7, 0.8), (5, 0.8))
    ],
    "LabelSpreading, rbf": [
        LabelSpreading(kernel="rbf", gamma=gamma, alpha=alpha, max_iter=1000)
        for gamma, alpha in ((20, 0.2), (5, 0.8), (5, 0.95))
    ],
}
SHOWN = ("n_neighbors", "gamma", "alpha")  # the settings named in the table, where they matter


class Row(NamedTuple):
    """One line of the table; errors are in per cent."""

    method: str
    setting: str
    error: float
    spread: float
    seconds: float


def draw_labels(y, seed):
    """Choose the labelled rows: three of each class."""
    rng = np.random.default_rng(seed)
    rows = [
        rng.choice(np.flatnonzero(y == c), LABELS_PER_CLASS, replace=False) for c in np.unique(y)
    ]
    return np.concatenate(rows)


def classify(estimator, X, y, labeled):
    """Return a class for every row, from the labels of the labelled rows only."""
    if isinstance(estimator, KNeighborsClassifier):
        return estimator.fit(X[labeled], y[labeled]).predict(X)
    partly = np.full_like(y, UNLABELED)
    partly[labeled] = y[labeled]
    return estimator.fit(X, partly).transduction_


def count_errors(predicted, y, labeled):
    """Count wrong rows among the unlabelled ones, and the unlabelled ones."""
    unlabeled = np.delete(np.arange(len(y)), labeled)
    return np.count_nonzero(predicted[unlabeled] != y[unlabeled]), len(unlabeled)


def measure(method, estimator, setting, X, y, progress):
    """Run one estimator on all draws of labels."""
    errors, seconds = [], []
    for seed in SEEDS:
        labeled = draw_labels(y, seed)
        start = time.perf_counter()
        predicted = classify(clone(estimator), X, y, labeled)
        seconds.append(time.perf_counter() - start)
        wrong, of = count_errors(predicted, y, labeled)
        errors.append(100 * wrong / of)
        progress.set_description_str(method, refresh=False)
        progress.update()
    return Row(method, setting, np.mean(errors), np.std(errors, ddof=1), np.mean(seconds))


def describe(estimator):
    """Name the settings of a peer that matter to it."""
    kernel = getattr(estimator, "kernel", None)
    unused = {"rbf": "n_neighbors", "knn": "gamma"}.get(kernel)
    names = [name for name in SHOWN if name != unused and hasattr(estimator, name)]
    return ", ".join(f"{name}={getattr(estimator, name)}" for name in names)


def compare_on_digits():
    """Measure all methods; of each peer keep the setting with the lowest error."""
    X, y = load_digits(return_X_y=True)
    X = X / 16  # pixel values 0 to 16, brought to [0, 1]
    n_runs = len(SEEDS) * (1 + sum(map(len, PEERS.values())))
    # Only on a terminal, and once the work has taken two seconds.
    progress = tqdm(total=n_runs, unit="run", disable=None, delay=2, leave=False)
    rows = []
    for method, candidates in PEERS.items():
        tried = [measure(method, e, describe(e), X, y, progress) for e in candidates]
        rows.append(min(tried, key=lambda row: row.error))
    rows.append(measure("manifoldknn", ManifoldKNNClassifier(), "defaults", X, y, progress))
    progress.close()
    return rows


def print_table(rows):
    head = ("method", "setting", "error (%)", "seconds")
    body = [
        (r.method, r.setting, f"{r.error:.1f} ± {r.spread:.1f}", f"{r.seconds:.2f}") for r in rows
    ]
    widths = [max(len(line[i]) for line in [head, *body]) for i in range(len(head))]
    for line in [head, tuple("-" * w for w in widths), *body]:
        left = [text.ljust(w) for text, w in zip(line[:2], widths[:2])]
        right = [text.rjust(w) for text, w in zip(line[2:], widths[2:])]
        print("  ".join([*left, *right]))


def draw_toy_set(path):
    """Draw what one Euclidean neighbour and what manifold kNN make of the toy set."""
    X, y, labeled = make_arch_and_s(random_state=0)
    names = np.array(["arch", "mirrored S"])
    panels = {
        "k nearest neighbours (k=1)": KNeighborsClassifier(n_neighbors=1),
        "manifold kNN": ManifoldKNNClassifier(),
    }
    figure = Figure(figsize=(9, 5.6), layout="compressed")
    for ax, (title, estimator) in zip(figure.subplots(1, 2, sharey=True), panels.items()):
        predicted = classify(estimator, X, y, labeled)
        wrong, of = count_errors(predicted, y, labeled)
        title = f"{title}\n{wrong} of {of} unlabelled samples wrong"
        plot_classes(X, names[predicted], labeled, ax=ax, title=title)
        ax.set(xticks=[], yticks=[])
        ax.get_legend().remove()
    # One legend for both panels, below them, where it covers no sample.
    figure.legend(
        *ax.get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        title="Colour and shape: the class assigned",
    )
    save(figure, path)


def save(figure, path):
    """Write the picture under a temporary name, then rename: no reader ever sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        kind = path.suffix[1:] or "png"
        figure.savefig(unfinished, format=kind, dpi=150, bbox_inches="tight", pad_inches=0.15)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = Path("build/demo/arch_and_s.png")
    parser.add_argument("--out", type=Path, default=default, help="picture (default: %(default)s)")
    args = parser.parse_args(argv)

    print(
        "Handwritten digits: 1797 images of 64 pixels, 3 labels per class.\n"
        f"Mean error on the unlabelled images over {len(SEEDS)} draws of labels, ± standard\n"
        "deviation, and mean seconds to fit and classify all images.\n"
    )
    print_table(compare_on_digits())
    print(
        "\nOf each peer the best of a few settings is shown, picked by its true error;\n"
        "manifoldknn runs with its defaults."
    )
    draw_toy_set(args.out)
    print(f"\nPicture of two interlocked classes: {args.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
