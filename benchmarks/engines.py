"""Which neighbour search is quicker where: exact, inverted lists, and scikit-learn's own.

    MANIFOLDKNN_DATA=~/data python benchmarks/engines.py

Each measurement is a fresh process that finds the 30 nearest others of every row twice: cold, with
all that is loaded on first use, and warm. Recall is the share of the true 30 found, of 500 rows.
Rows are those of MNIST (784 columns, and its first 200 and 50 principal components), pendigits
(16 columns), and made-up surfaces of 32 and of 3 columns. Writes ``results/engines.md``, where the
engine that ``neighbors="auto"`` takes is marked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from machine import machine, versions
from report import markdown_table, write_text
from samples import load, save_made

RESULTS = Path(__file__).with_name("results")
SIZES = (2_000, 5_000, 10_000, 20_000)
ENGINES = ("exact", "inverted", "scikit-learn")
MOST_PAIRS = 1e11  # rows² · columns: beyond, comparing all pairs takes longer than it is worth
NEIGHBORS, JUDGED = 30, 500


def main():
    folder = os.environ.get("MANIFOLDKNN_DATA")
    if not folder:
        sys.exit("set MANIFOLDKNN_DATA to the folder with mnist.npz and pendigits.npz")
    lines = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, X in data_sets(Path(folder), Path(scratch)):
            rng = np.random.default_rng(0)
            for n in (size for size in SIZES if size <= len(X)):
                file = Path(scratch) / "rows.npy"
                np.save(file, X[np.sort(rng.choice(len(X), n, replace=False))])
                lines.append(line(name, n, X.shape[1], file))
                print(" | ".join(lines[-1]), flush=True)
    where = machine()
    heading = ["rows", "n", "columns", *(f"{e}, cold / warm s (recall)" for e in ENGINES)]
    text = [
        "# Neighbour searches",
        "",
        "Written by `benchmarks/engines.py`, which says what is measured. In bold what",
        '`neighbors="auto"` takes; empty where all pairs are too many.',
        "",
        f"{where['processor']}, {where['cores']} cores, {where['memory']}; "
        + ", ".join(f"{name} {version}" for name, version in versions().items())
        + f"; {time.strftime('%Y-%m-%d')}.",
        "",
        markdown_table(heading, lines),
        "",
    ]
    write_text(RESULTS / "engines.md", "\n".join(text))


def data_sets(folder, scratch):
    """Yield name and rows of every set."""
    X = load(folder / "mnist.npz", 255)[0][: max(SIZES)]
    centered = X - X.mean(axis=0)
    axes = np.linalg.eigh(centered.T @ centered)[1][:, ::-1]
    yield "MNIST", X
    for width in (200, 50):
        yield f"MNIST, {width} components", np.ascontiguousarray(centered @ axes[:, :width])
    yield "pendigits", load(folder / "pendigits.npz")[0]
    for width in (32, 3):
        yield "made-up", load(save_made(max(SIZES), scratch / "made.npz", width))[0]


def line(name, n, width, file):
    """Measure all engines on some rows; return the cells of the table."""
    X = np.load(file, mmap_mode="r")
    cells = [name, f"{n:,}", str(width)]
    taken = one("auto", file)["engine"]
    for engine in ENGINES:
        if engine != "inverted" and float(n) ** 2 * width > MOST_PAIRS:
            cells.append("")
            continue
        found = one(engine, file)
        text = f"{found['cold']:.2f} / {found['warm']:.2f} ({recall(X, found['lists']):.3f})"
        cells.append(f"**{text}**" if engine == taken else text)
    return cells


def recall(X, lists):
    """Return the share of the true neighbours found; one as near as the last true one counts."""
    X = np.asarray(X, dtype=np.float64)
    hits = []
    for row, near in lists.items():
        away = np.square(X - X[int(row)]).sum(axis=1)
        away[int(row)] = np.inf
        limit = np.partition(away, NEIGHBORS - 1)[NEIGHBORS - 1]
        hits.append(np.mean(away[near] <= limit * (1 + 1e-12)))
    return float(np.mean(hits))


def one(engine, file):
    """Search in a fresh process; return what it printed."""
    command = [sys.executable, __file__, engine, str(file)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def search(engine, file):
    """Search twice and print the seconds, and the lists of some rows."""
    from manifoldknn.search.engines import automatic_engine, open_index

    X = np.load(file)
    if engine == "auto":
        return {"engine": automatic_engine(X, "euclidean")}

    def lists():
        if engine == "scikit-learn":
            from sklearn.neighbors import NearestNeighbors

            return NearestNeighbors(n_jobs=-1).fit(X).kneighbors(n_neighbors=NEIGHBORS)[1]
        index = open_index(X, engine, metric="euclidean", n_jobs=None, seed=0)
        return index.among_samples(NEIGHBORS).indices

    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        found = lists()
        seconds.append(time.perf_counter() - start)
    rows = np.linspace(0, len(X) - 1, min(JUDGED, len(X))).astype(int)
    judged = {int(row): found[row].tolist() for row in rows}
    return {"cold": seconds[0], "warm": seconds[1], "lists": judged}


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(search(*sys.argv[1:])))
    else:
        main()
