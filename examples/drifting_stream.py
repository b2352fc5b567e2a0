"""A stream that drifts: fit once, learn online, learn online with refreshes.

Run it with ``python examples/drifting_stream.py``. Two arches, one inside the other, turn around
their common centre. Three rows of each are labelled at the start and none ever after. Every
chunk is classified before it is learned; the picture shows how accurate each way was over
time. It needs no network and takes under a minute; the picture needs matplotlib
(``manifoldknn[plots]``).
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from manifoldknn import ManifoldKNNClassifier

FIRST, CHUNK, N_CHUNKS = 300, 40, 150
TURN = 1.5 * np.pi  # over the whole stream
WIDTH = 0.6 * np.pi  # of an arch
RADII = (1.0, 1.6)
NOISE = 0.05
COLORS = ("#0072B2", "#D55E00")
WAYS = {
    "fit once": ("#7A7A7A", ":"),
    "online, never refreshed": ("#E69F00", "--"),
    'online, refresh="auto"': ("#009E73", "-"),
}


def arches(n, turn, rng):
    """Draw rows of both arches: the outer one starts where the inner one is not."""
    y = rng.integers(0, 2, n)
    angle = turn + np.pi * y + WIDTH * rng.random(n)
    X = np.take(RADII, y)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return X + NOISE * rng.normal(size=X.shape), y


def stream(seed):
    """Return the first rows with their labels, and the chunks that follow."""
    rng = np.random.default_rng(seed)
    X, truth = arches(FIRST, 0.0, rng)
    y = np.full(FIRST, -1)
    for c in (0, 1):
        y[np.flatnonzero(truth == c)[:3]] = c
    turns = np.linspace(0, TURN, N_CHUNKS + 1)[1:]
    return X, y, [arches(CHUNK, turn, rng) for turn in turns]


def run(seed):
    """Classify the stream in each way; return accuracies, seconds, refreshes and the last model."""
    X, y, chunks = stream(seed)
    models = {name: ManifoldKNNClassifier().fit(X, y) for name in WAYS}
    accuracy = {name: [] for name in WAYS}
    seconds, refreshed = dict.fromkeys(WAYS, 0.0), []
    for number, (rows, truth) in enumerate(chunks):
        for name, clf in models.items():
            start = time.perf_counter()
            accuracy[name].append(np.mean(clf.predict(rows) == truth))
            if name != "fit once":
                clf.partial_fit(rows, refresh="auto" if "auto" in name else False)
                if "auto" in name and clf.n_walked_ == len(clf.transduction_):
                    refreshed.append(number)
            seconds[name] += time.perf_counter() - start
    return accuracy, seconds, refreshed, models['online, refresh="auto"']


def smooth(values, width=10):
    """Average over the last ten chunks."""
    total = np.cumsum(np.concatenate([[0.0], values]))
    end = np.arange(1, len(values) + 1)
    start = np.maximum(end - width, 0)
    return (total[end] - total[start]) / (end - start)


def draw(seed, means, refreshed):
    """Draw the stream at three moments, and accuracy over time."""
    X, y, chunks = stream(seed)
    figure = Figure(figsize=(9, 6.4), layout="constrained")
    grid = figure.add_gridspec(2, 3, height_ratios=(1, 1.1))
    moments = {"start": 0, "after a third": N_CHUNKS // 3, "end": N_CHUNKS - 10}
    for column, (title, at) in enumerate(moments.items()):
        ax = figure.add_subplot(grid[0, column])
        rows = np.concatenate([c[0] for c in chunks[at : at + 10]])
        truth = np.concatenate([c[1] for c in chunks[at : at + 10]])
        ax.scatter(*X.T, s=4, color="#CFCFCF")
        for c, name in enumerate(("inner arch", "outer arch")):
            ax.scatter(*rows[truth == c].T, s=7, color=COLORS[c], marker="o^"[c], label=name)
            ax.scatter(*X[y == c].T, s=60, color=COLORS[c], marker="o^"[c], edgecolor="#111111")
        ax.set(title=title, xticks=[], yticks=[], aspect="equal")
        ax.set(xlim=(-1.8, 1.8), ylim=(-1.8, 1.8))
    ax = figure.add_subplot(grid[1, :])
    for name, (color, style) in WAYS.items():
        label = f"{name}: {100 * np.mean(means[name]):.1f} % right"
        ax.plot(100 * smooth(means[name]), color=color, linestyle=style, linewidth=2, label=label)
    ax.plot(refreshed, np.full(len(refreshed), 2.0), "|", color="#009E73", markersize=9,
            label="refreshes of the first stream")  # fmt: skip
    ax.set(xlabel=f"chunk of {CHUNK} rows", ylabel="right, % (mean of 10 chunks)", ylim=(0, 103))
    ax.legend(loc="lower left", frameon=False)
    figure.suptitle("Two arches turn; only six rows at the start are labelled (outlined)")
    return figure


def save(figure, path):
    """Write the picture under a temporary name, then rename: no reader ever sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        figure.savefig(unfinished, format=path.suffix[1:] or "png", dpi=150)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = Path("build/demo/drifting_stream.png")
    parser.add_argument("--out", type=Path, default=default, help="picture (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=5, help="streams (default: %(default)s)")
    args = parser.parse_args(argv)
    runs = [run(seed) for seed in range(args.seeds)]
    means = {name: np.mean([r[0][name] for r in runs], axis=0) for name in WAYS}
    print(f"{args.seeds} streams of {N_CHUNKS} chunks of {CHUNK} rows; each chunk is classified")
    print("before it is learned.\n")
    print(f"{'':26}{'right, %':>9}{'last fifth, %':>15}{'ms per row':>12}")
    for name in WAYS:
        last = 100 * means[name][-N_CHUNKS // 5 :].mean()
        cost = 1e3 * np.mean([r[1][name] for r in runs]) / (N_CHUNKS * CHUNK)
        print(f"{name:26}{100 * means[name].mean():9.1f}{last:15.1f}{cost:12.2f}")
    odd = runs[0][3].is_off_manifold([[0.0, 0.0], [3.0, 3.0]])
    print(f"\nOff the manifold: the centre {odd[0]}, a point outside {odd[1]}.")
    save(draw(0, means, runs[0][2]), args.out)
    print(f"Picture: {args.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
