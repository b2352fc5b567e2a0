import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

import manifoldknn.memory as memory
from manifoldknn import ManifoldKNNClassifier, estimate_memory

PEAK = """
import sys, numpy as np
from manifoldknn import ManifoldKNNClassifier
n, d, per_class, graph, dtype = *map(int, sys.argv[1:4]), sys.argv[4], sys.argv[5]
rng = np.random.default_rng(0)
truth = rng.integers(0, 5, n)
X = np.empty((n, d), dtype=dtype)
for start in range(0, n, 1000):
    part = slice(start, start + 1000)
    X[part] = rng.normal(size=(len(truth[part]), d)) + 3 * np.eye(5, d)[truth[part]]
y = np.full(n, -1)
for c in range(5):
    y[np.flatnonzero(truth == c)[:per_class]] = c
ManifoldKNNClassifier(graph=graph).fit(X, y)
lines = open("/proc/self/status").read().splitlines()
print(next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
@pytest.mark.parametrize(
    ("n", "d", "per_class", "graph", "dtype"),
    [
        (30_000, 20, 4, "pruned", "float32"),
        (30_000, 20, 20, "pruned", "float64"),
        (15_000, 200, 4, "union", "float32"),
        (3000, 20, 4, "full", "float64"),
    ],
)
def test_the_estimate_covers_the_peak_without_crying_wolf(n, d, per_class, graph, dtype):
    arguments = [str(a) for a in (n, d, per_class, graph, dtype)]
    run = subprocess.run(
        [sys.executable, "-c", PEAK, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    peak = int(run.stdout)
    itemsize = np.dtype(dtype).itemsize
    estimate = estimate_memory(n, d, 5 * per_class, n_classes=5, graph=graph, itemsize=itemsize)
    assert peak <= 1.15 * estimate
    assert estimate <= 2.5 * peak


def test_growth():
    """Linear in rows; the full graph is quadratic; labels stop to matter beyond a block."""
    small, large = (estimate_memory(n, 100, 50) - memory._BASE for n in (10**6, 10**7))
    assert large == pytest.approx(10 * small)
    dense = estimate_memory(20_000, 10, 50, graph="full")
    assert dense > 4 * 8 * 20_000**2
    few, many = (estimate_memory(10**6, 10, labels, n_jobs=1) for labels in (1000, 100_000))
    assert few == many


def blobs(n=200):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)) + 3 * np.eye(2, 4)[np.arange(n) % 2]
    y = np.full(n, -1)
    y[:6] = np.arange(6) % 2
    return X, y


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"graph": "full"}, "use graph='pruned'"),
        ({}, "fit a subset of the rows and predict the others.*or set n_jobs=1"),
        ({"n_jobs": 1}, "predict the others, or pass X as float32.$"),
    ],
)
def test_a_fit_that_will_not_fit_is_refused_with_advice(monkeypatch, options, advice):
    X, y = blobs()
    monkeypatch.setattr(memory, "available_memory", lambda: 10**6)
    monkeypatch.setattr(memory, "thread_count", lambda n_jobs: n_jobs or 2)
    monkeypatch.setattr("manifoldknn.steps.open_index", lambda *_, **__: pytest.fail("late"))
    clf = ManifoldKNNClassifier(**options)
    with pytest.raises(MemoryError, match=rf"needs about .* GB and 0\.0 GB are free: .*{advice}"):
        clf.fit(X, y)
    assert not hasattr(clf, "classes_")


def test_no_advice_that_would_not_help(monkeypatch):
    X, y = blobs()
    monkeypatch.setattr(memory, "available_memory", lambda: 10**6)
    monkeypatch.setattr(memory, "thread_count", lambda _: 1)
    with pytest.raises(MemoryError, match=r"predict the others\.$"):
        ManifoldKNNClassifier().fit(X.astype(np.float32), y)


def test_sparse_rows_count_as_what_they_store(monkeypatch):
    wide = sparse.random_array((200, 10**6), density=1e-5, format="csr", rng=0)
    monkeypatch.setattr(memory, "available_memory", lambda: 4 * 10**8)
    memory.check_memory(wide, 6)
    with pytest.raises(MemoryError):
        memory.check_memory(np.broadcast_to(np.float64(0), (200, 10**6)), 6)


def test_nobody_tells(monkeypatch):
    X, _ = blobs()
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    memory.check_memory(X, 6, graph="full")


def test_available_memory_is_plausible():
    free = memory.available_memory()
    assert free is None or 10**7 < free < 10**14
