import json
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

import manifoldknn.device.memory as memory
from manifoldknn import ManifoldKNNClassifier, estimate_memory

PEAK = """
import json, sys, numpy as np
from scipy import sparse
from manifoldknn import ManifoldKNNClassifier
n, d, n_labeled, dtype, form, settings = json.loads(sys.argv[1])
rng = np.random.default_rng(0)
truth = rng.integers(0, 5, n)
if form == "sparse":
    X = sparse.random_array((n, d), density=0.02, format="csr", rng=rng, dtype=dtype)
else:
    X = np.empty((n, d), dtype=dtype)
    surface = rng.normal(size=(6, d))
    centres = (100 if form == "parts" else 3) * np.eye(5, d)
    for start in range(0, n, 1000):
        kinds = truth[start : start + 1000]
        rows = rng.normal(size=(len(kinds), 6)) @ surface + centres[kinds]
        X[start : start + 1000] = rows + 0.1 * rng.normal(size=rows.shape)
y = np.full(n, -1)
y[:n_labeled] = truth[:n_labeled]
ManifoldKNNClassifier(**settings).fit(X, y)
lines = open("/proc/self/status").read().splitlines()
print(next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")))
"""


def peak_of_a_fit(*case):
    run = subprocess.run(
        [sys.executable, "-c", PEAK, json.dumps(case)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    return int(run.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
@pytest.mark.parametrize(
    ("n", "d", "n_labeled", "dtype", "form", "settings"),
    [
        (30_000, 20, 20, "float32", "dense", {}),
        (15_000, 20, 100, "float64", "dense", {}),
        (8000, 1200, 20, "float64", "dense", {}),
        (8000, 1200, 20, "float32", "dense", {"metric": "cosine"}),
        (6000, 1200, 20, "float64", "dense", {"neighbors": "exact"}),
        (12_000, 50, 20, "float32", "dense", {"neighbors": "exact"}),
        (3000, 1200, 20, "float32", "dense", {"metric": "cosine", "neighbors": "exact"}),
        (8000, 1200, 20, "float32", "parts", {}),
        (6000, 5000, 20, "float64", "sparse", {}),
        (6000, 5000, 20, "float32", "sparse", {"metric": "cosine"}),
        (12_000, 20, 6000, "float32", "dense", {}),
        (12_000, 20, 500, "float32", "dense", {"vote": "neighbors"}),
        (15_000, 200, 20, "float32", "dense", {"graph": "union"}),
        (2000, 20, 20, "float64", "dense", {"graph": "full"}),
        pytest.param(8000, 1200, 20, "float32", "dense", {}, marks=pytest.mark.slow),
        pytest.param(30_000, 20, 15_000, "float32", "dense", {}, marks=pytest.mark.slow),
        pytest.param(20_000, 3000, 20, "float32", "parts", {}, marks=pytest.mark.slow),
    ],
)
def test_the_estimate_covers_the_peak_without_crying_wolf(n, d, n_labeled, dtype, form, settings):
    peak = peak_of_a_fit(n, d, n_labeled, dtype, form, settings)
    itemsize = np.dtype(dtype).itemsize
    if form == "sparse":
        d, itemsize, settings = d // 50, itemsize + 4, {**settings, "neighbors": "exact"}
    estimate = estimate_memory(n, d, n_labeled, n_classes=5, itemsize=itemsize, **settings)
    assert peak <= estimate
    assert estimate <= 3.5 * peak  # of so small ones, mostly what does not depend on their size


def test_searches_and_metrics_take_what_they_copy():
    """Inverted cosine holds rows of length 1, exact search centred rows in both precisions."""
    n, d, values = 100_000, 2000, 2e8
    plain = estimate_memory(n, d, 20)
    assert estimate_memory(n, d, 20, neighbors="inverted") == plain
    assert estimate_memory(n, d, 20, metric="cosine") == pytest.approx(plain + 4 * values)
    known = estimate_memory(n, d, 20, neighbors=None)
    assert estimate_memory(n, d, 20, neighbors="exact") >= known + 8 * values
    few = np.zeros((n, 5), dtype=int), np.zeros((n, 5))
    assert estimate_memory(n, d, 20, neighbors=few) == known
    wide = np.zeros((n, 500), dtype=int), np.zeros((n, 500))
    listed = sparse.csr_array(
        (np.ones(500 * n), np.zeros(500 * n, dtype=int), np.arange(n + 1) * 500)
    )
    both = [estimate_memory(n, d, 20, neighbors=brought) for brought in (wide, listed)]
    assert both[0] == both[1] > known


def test_growth():
    """Linear in rows; the full graph is quadratic; labels matter where each has a column."""
    small, large = (estimate_memory(n, 100, 50) - memory._BASE for n in (10**6, 10**7))
    assert large == pytest.approx(10 * small)
    dense = estimate_memory(20_000, 10, 50, graph="full")
    assert dense > 4 * 8 * 20_000**2
    few, half = (estimate_memory(10**6, 10, labels, n_jobs=1) for labels in (2, 500_000))
    assert few == half
    more = estimate_memory(10**6, 10, 2, n_classes=50, n_jobs=1)
    assert few + 48 * 10**6 * 20 < more < few + 48 * 10**6 * 200
    paper = [estimate_memory(10**6, 10, labels, vote="neighbors") for labels in (1000, 2000)]
    assert paper[1] - paper[0] == pytest.approx(1000 * 10**6 * memory._PER_WEIGHT)
    assert paper[0] > 10**6 * 1000 * 8 + few  # a weight for every row and label


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
        ({"n_jobs": 1}, "predict the others, or pass X as float32. \\(The"),
    ],
)
def test_a_fit_that_will_not_fit_is_refused_with_advice(monkeypatch, options, advice):
    X, y = blobs()
    monkeypatch.setattr(memory, "available_memory", lambda: 10**6)
    monkeypatch.setattr(memory, "thread_count", lambda n_jobs: n_jobs or 2)
    monkeypatch.setattr("manifoldknn.device.steps.open_index", lambda *_, **__: pytest.fail("late"))
    clf = ManifoldKNNClassifier(**options)
    with pytest.raises(MemoryError, match=rf"needs about .* GB and 0\.0 GB are free: .*{advice}"):
        clf.fit(X, y)
    assert not hasattr(clf, "classes_")


def test_no_advice_that_would_not_help(monkeypatch):
    X, y = blobs()
    monkeypatch.setattr(memory, "available_memory", lambda: 10**6)
    monkeypatch.setattr(memory, "thread_count", lambda _: 1)
    with pytest.raises(MemoryError, match=r"predict the others\. \(The"):
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


def test_the_environment_may_say_what_is_free(monkeypatch):
    X, y = blobs()
    monkeypatch.setenv("MANIFOLDKNN_MEMORY_GB", "0.001")
    assert memory.available_memory() == 10**6
    with pytest.raises(MemoryError, match=r"0\.0 GB are free.*MANIFOLDKNN_MEMORY_GB sets how many"):
        ManifoldKNNClassifier().fit(X, y)
    monkeypatch.setenv("MANIFOLDKNN_MEMORY_GB", " 1e3 ")
    assert memory.available_memory() == 10**12
    ManifoldKNNClassifier().fit(X, y)


@pytest.mark.parametrize("told", ["much", "-1", "0", "nan", "inf", "8 GB"])
def test_the_environment_must_say_a_number(monkeypatch, told):
    monkeypatch.setenv("MANIFOLDKNN_MEMORY_GB", told)
    with pytest.raises(ValueError, match=f"^MANIFOLDKNN_MEMORY_GB='{told}' must be a positive"):
        memory.available_memory()


def test_the_tighter_of_machine_and_groups_counts(monkeypatch):
    monkeypatch.delenv("MANIFOLDKNN_MEMORY_GB", raising=False)
    monkeypatch.setattr(memory, "room_in_groups", lambda: 12345)
    assert memory.available_memory() == 12345


def test_metric_and_neighbors_reach_the_estimate(monkeypatch):
    X, y = blobs()
    seen = {}
    monkeypatch.setattr(
        memory, "estimate_memory", lambda *_, **settings: seen.update(settings) or 0
    )
    ManifoldKNNClassifier(metric="cosine", neighbors="exact").fit(X, y)
    assert (seen["metric"], seen["neighbors"]) == ("cosine", "exact")


def test_a_limit_on_addresses_counts(monkeypatch):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert memory.address_room() is None
    memory.check_address_space()
    monkeypatch.setattr(resource, "getrlimit", lambda _: (10**15, 10**15))
    assert 10**14 < memory.address_room() < 10**15
    memory.check_address_space()
    monkeypatch.setattr(resource, "getrlimit", lambda _: (10**8, 10**8))
    assert memory.address_room() == 0 == memory.available_memory()
    with pytest.raises(MemoryError, match=r"ulimit -v 1500000"):
        memory.check_address_space()
    X = np.zeros((100, 3))
    with pytest.raises(MemoryError, match=r"or raise the limit on address space \(ulimit -v\)"):
        memory.check_memory(X, 10)
    monkeypatch.setenv(memory.OVERRIDE, "4")
    memory.check_address_space()
    memory.check_memory(X, 10)


def test_available_memory_is_plausible():
    free = memory.available_memory()
    assert free is None or 10**7 < free < 10**14
