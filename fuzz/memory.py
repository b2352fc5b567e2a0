"""Estimates of memory beside what fits take, and the command under limits on its address space.

    python fuzz/memory.py --count 20 --seed 0

The first 12 are shapes: `estimate_memory` must be from 1 to 2.5 times the peak of a process that
fits. The next 8 are limits from 0.7 to 2 GB (`ulimit -v`): the command must finish, or end with
exit code 2 and advice. Linux only.
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from run import main

from manifoldknn import estimate_memory

SHAPES = [
    (60_000, 50, 100, {}),
    (40_000, 200, 100, {}),
    (30_000, 784, 100, {}),
    (200_000, 3, 50, {}),
    (150_000, 20, 50, {}),
    (100_000, 64, 1000, {"n_classes": 10}),
    (60_000, 50, 300, {"vote": "neighbors"}),
    (60_000, 50, 100, {"graph": "union"}),
    (60_000, 50, 100, {"metric": "cosine"}),
    (8_000, 100, 50, {"metric": "correlation"}),
    (4_000, 20, 50, {"graph": "full"}),
    (50_000, 100, 100, {"itemsize": 8}),
]
LIMITS = [700, 850, 1000, 1150, 1300, 1500, 1750, 2000]
FIT = """
import resource, sys, warnings
import numpy as np
from manifoldknn import ManifoldKNNClassifier
n, d, n_labeled, seed, settings = *map(int, sys.argv[1:5]), eval(sys.argv[5])
n_classes, itemsize = settings.pop("n_classes", 2), settings.pop("itemsize", 4)
rng = np.random.default_rng(seed)
X = np.empty((n, d), dtype=f"f{itemsize}")
truth = rng.integers(0, n_classes, n)
for start in range(0, n, 1000):
    some = truth[start : start + 1000]
    X[start : start + 1000] = rng.normal(size=(len(some), d)) + some[:, None]
y = np.full(n, -1)
y[:n_labeled] = truth[:n_labeled]
warnings.simplefilter("ignore")
ManifoldKNNClassifier(n_jobs=2, **settings).fit(X, y)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def shape(n, d, n_labeled, settings, seed):
    words = [sys.executable, "-c", FIT, *map(str, (n, d, n_labeled, seed)), repr(settings)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=900)
    if done.returncode:
        return f"BAD {(n, d)} failed: {done.stderr[-200:]}"
    peak = int(done.stdout)
    ratio = estimate_memory(n, d, n_labeled, n_jobs=2, **settings) / peak
    verdict = "shapes" if 1 <= ratio <= 2.5 else "BAD estimate"
    print(f"{n} x {d} {settings}: {ratio:.2f} times the peak of {peak / 1e9:.2f} GB", flush=True)
    return verdict


def limit(megabytes, seed):
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, 3000)
        X = rng.normal(size=(3000, 10)) + 5 * truth[:, None]
        label = np.where(np.arange(3000) % 50 == 0, truth.astype(str), "")
        rows = [",".join([*map("{:.4f}".format, x), c]) for x, c in zip(X, label)]
        head = ",".join([*(f"f{i}" for i in range(10)), "label"])
        table.write_text("\n".join([head, *rows]) + "\n")
        words = [sys.executable, "-m", "manifoldknn", "classify", str(table), "--label", "label",
                 "--out", str(Path(folder) / "out.csv")]  # fmt: skip
        most = megabytes * 1_000_000
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=300, env=os.environ,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)),
        )  # fmt: skip
        finished = done.returncode == 0 and (Path(folder) / "out.csv").exists()
        advised = done.returncode == 2 and "raise" in done.stderr
    print(f"{megabytes} MB: exit code {done.returncode}", flush=True)
    if finished or advised:
        return "limits: finished" if finished else "limits: refused with advice"
    return f"BAD {megabytes} MB: exit code {done.returncode}, {done.stderr[-200:]}"


def attempt(seed):
    """Yield what became of one shape, or one limit."""
    number = seed % (len(SHAPES) + len(LIMITS))
    if number < len(SHAPES):
        yield shape(*SHAPES[number], seed)
    else:
        yield limit(LIMITS[number - len(SHAPES)], seed)


if __name__ == "__main__":
    sys.exit(main(attempt, "shapes and limits", count=len(SHAPES) + len(LIMITS)))
