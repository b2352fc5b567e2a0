"""The cluster beside one machine: equal answers, recall, time, memory, and workers that are killed.

``python benchmarks/cluster.py same|own|parts|hundred|million|ten|faults``: each adds its numbers,
with the commit, to ``results/cluster.json``. Real processes on this machine; `DATA` as for the
tests. `same` takes sets: banknote, mnist, synthetic; mnist-10000 are the first rows of one.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import manifoldknn.distributed.estimator as room
from distributed import Client, LocalCluster
from manifoldknn import ManifoldKNNClassifier
from manifoldknn.distributed import DistributedManifoldKNN

HERE = Path(__file__).parent
DATA = Path(os.environ.get("MANIFOLDKNN_DATA", "data"))


def mnist(n=None):
    with np.load(DATA / "mnist.npz") as file:
        X, y = file["X"].astype(np.float32) / 255, file["y"].astype(int)
    return (X, y) if n is None else (X[:n], y[:n])


def synthetic(n, d=32, n_classes=10, seed=0):
    """Make classes that are curved sheets of five dimensions with noise."""
    rng = np.random.default_rng(seed)
    X, y = np.empty((n, d), dtype=np.float32), rng.integers(0, n_classes, n)
    maps = [
        (rng.normal(size=(5, d)), rng.normal(size=(5, d)), rng.normal(size=d))
        for _ in range(n_classes)
    ]
    for start in range(0, n, 1 << 18):
        some = slice(start, start + (1 << 18))
        t = rng.normal(size=(len(y[some]), 5))
        for c, (a, b, shift) in enumerate(maps):
            here = y[some] == c
            X[some][here] = np.sin(t[here] @ a) + 0.5 * (t[here] @ b) + shift
        X[some] += 0.1 * rng.normal(size=X[some].shape)
    return X, y


def drawn(y, per_class, seed=0):
    rng, out = np.random.default_rng(seed), np.full(len(y), -1)
    for c in np.unique(y):
        rows = rng.choice(np.flatnonzero(y == c), per_class, replace=False)
        out[rows] = c
    return out


def cluster(n_workers, **how):
    how = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "memory_limit": 0} | how
    return LocalCluster(n_workers=n_workers, **how)


def keep(name, **numbers):
    path = HERE / "results" / "cluster.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True
    ).stdout.strip()
    known[name] = {"commit": commit} | numbers
    path.write_text(json.dumps(known, indent=1) + "\n")
    print(name, json.dumps(numbers), flush=True)


def edges_differ(model, one):
    folder, offsets = model.folder_, model.model_["offsets"]
    n_parts = len(offsets) - 1
    order = np.concatenate([folder.read("part", p, "order") for p in range(n_parts)])
    keys = []
    n = len(order)
    for p in range(n_parts):
        a, b = (order[folder.read("edges", p, end)] for end in ("one", "other"))
        keys.append(np.minimum(a, b) * n + np.maximum(a, b))
    low, high, _ = one.fitted_.edges
    expected = np.asarray(low, dtype=np.int64) * n + high
    return len(np.setxor1d(np.unique(np.concatenate(keys)), expected))


def same(names):
    """Given the lists of one machine."""
    room._ROWS_PER_WORKER = 500  # so that both workers walk
    for name in names:
        if name == "banknote":
            with np.load(DATA / "banknote.npz") as file:
                X, y = file["X"], file["y"].astype(int)
        else:
            kind, _, size = name.partition("-")  # as in mnist-10000
            rows = int(size) if size else None
            X, y = mnist(rows) if kind == "mnist" else synthetic(rows or 300_000)
        labels = drawn(y, 10)
        begun = time.perf_counter()
        one = ManifoldKNNClassifier(random_state=0).fit(X, labels)
        alone = time.perf_counter() - begun
        lists = one.fitted_.lists
        with cluster(2) as machines, Client(machines) as client:
            begun = time.perf_counter()
            model = DistributedManifoldKNN(
                client, n_parts=4, neighbors=(lists.indices, lists.distances)
            ).fit(X, labels)
            took = time.perf_counter() - begun
        p, q = model.label_distributions_.compute(scheduler="sync"), one.label_distributions_
        found = model.transduction_.compute(scheduler="sync")
        seconds, waited = model.walk_seconds_
        keep(
            f"same-{name}", edges_differ=edges_differ(model, one),
            labels_equal=float((found == one.transduction_).mean()),
            largest_difference=float(np.abs(p - q).max()), seconds_one_machine=round(alone, 2),
            seconds=round(took, 2), walk_seconds=round(seconds, 2),
            walk_waited=round(waited / seconds, 3), n_iter=[model.n_iter_, one.n_iter_],
            sharpness=[model.sharpness_, one.sharpness_], walk_tasks=model.n_walk_tasks_,
            bytes_per_number=round(model.halo_bytes_ / max(1, model.halo_numbers_), 3),
            stages={k: round(v, 2) for k, v in model.stage_seconds_.items()},
        )  # fmt: skip


def own():
    """Own search on MNIST."""
    X, y = mnist()
    labels = drawn(y, 10)
    begun = time.perf_counter()
    one = ManifoldKNNClassifier(random_state=0, n_jobs=2).fit(X, labels)
    alone = time.perf_counter() - begun
    with cluster(2) as machines, Client(machines) as client:
        begun = time.perf_counter()
        model = DistributedManifoldKNN(client, random_state=0).fit(X, labels)
        took = time.perf_counter() - begun
    found = model.transduction_.compute(scheduler="sync")
    keep(
        "own-mnist", recall=model.recall_, error=float((found != y).mean()),
        error_one_machine=float((one.transduction_ != y).mean()), seconds=round(took, 2),
        seconds_one_machine=round(alone, 2), probes=model.model_["probes"],
        walk_waited=round(model.walk_seconds_[1] / model.walk_seconds_[0], 3),
        stages={k: round(v, 2) for k, v in model.stage_seconds_.items()},
    )  # fmt: skip


def lists_of(model):
    folder, offsets = model.folder_, model.model_["offsets"]
    order = np.concatenate([folder.read("part", p, "order") for p in range(len(offsets) - 1)])
    lists = np.concatenate([folder.read("lists", p, "order") for p in range(len(offsets) - 1)])
    out = np.empty_like(lists)
    out[order] = lists
    return out


def parts():
    """Count lists that differ for other parts, workers and chunks; 784 columns."""
    import dask.array as da

    X, y = mnist(20_000)
    labels = drawn(y, 10)
    first = None
    room._ROWS_PER_WORKER = 1000  # so that all workers walk
    results = []
    for n_workers in (1, 2, 4):
        with cluster(n_workers) as machines, Client(machines) as client:
            for n_parts, chunk in ((1, 20_000), (2, 7000), (8, 3333), (16, 1999)):
                rows = da.from_array(X, chunks=(chunk, 300))
                model = DistributedManifoldKNN(client, n_parts=n_parts, random_state=0)
                model.fit(rows, labels)
                lists, found = lists_of(model), model.transduction_.compute(scheduler="sync")
                first = first or (lists, found)
                results.append(
                    {"workers": n_workers, "parts": n_parts, "chunk": chunk,
                     "lists_differ": int((lists != first[0]).any(axis=1).sum()),
                     "labels_equal": float((found == first[1]).mean()),
                     "walkers": model.n_walk_tasks_}
                )  # fmt: skip
                print(results[-1], flush=True)
    keep("parts", runs=results)


def _peaks(client):
    return client.run(lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)


def many(name, n, d, limit, n_parts):
    """Many rows from Parquet on two workers with a limit on their memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory() as place:
        X, y = synthetic(n, d)
        labels = drawn(y, 10)
        step = 100_000
        for number, start in enumerate(range(0, n, step)):
            some = slice(start, start + step)
            columns = {f"x{j}": X[some, j] for j in range(d)} | {"y": labels[some]}
            pq.write_table(pa.table(columns), f"{place}/part-{number:04d}.parquet")
        np.save(f"{place}/truth.npy", y)
        del X, labels, y
        told = [name, place, limit, str(n_parts)]
        subprocess.run([sys.executable, __file__, "fitted", *told], check=True)


def fitted_in_little(name, place, limit, n_parts):
    with cluster(2, memory_limit=limit) as machines, Client(machines) as client:
        pids = sorted(client.run(os.getpid).values())
        begun = time.perf_counter()
        model = DistributedManifoldKNN(client, n_parts=n_parts)
        model.fit(f"{place}/part-*.parquet", "y")
        took = time.perf_counter() - begun
        peaks = list(_peaks(client).values())
        restarted = sorted(client.run(os.getpid).values()) != pids
    client_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    truth = np.load(f"{place}/truth.npy")
    error = float((model.transduction_.compute(scheduler="sync") != truth).mean())
    keep(
        name, seconds=round(took, 1), worker_peak_gb=[round(p, 2) for p in peaks],
        client_peak_gb=round(client_peak, 2), restarted=restarted, limit=limit,
        recall=model.recall_, error=error, n_iter=model.n_iter_,
        walk_waited=round(model.walk_seconds_[1] / model.walk_seconds_[0], 3),
        stages={k: round(v, 1) for k, v in model.stage_seconds_.items()},
    )  # fmt: skip


def faults(n=60_000):
    """Kill a worker in every stage that matters."""
    X, y = synthetic(n, 16)
    labels = drawn(y, 10)
    results = []

    def run(kill):
        with (
            cluster(3) as machines,
            Client(machines) as client,
            tempfile.TemporaryDirectory() as place,
        ):
            folder, done = Path(place) / "c", threading.Event()

            def killer():
                for stage in kill:
                    while not done.is_set():
                        if _begun(folder, stage):
                            pid = next(iter(client.run(os.getpid).values()))
                            os.kill(pid, signal.SIGKILL)
                            break
                        time.sleep(0.005)

            thread = threading.Thread(target=killer)
            thread.start()
            begun = time.perf_counter()
            model = DistributedManifoldKNN(client, folder, n_parts=6).fit(X, labels)
            took = time.perf_counter() - begun
            done.set()
            thread.join()
            return model.transduction_.compute(scheduler="sync"), took

    expected, undisturbed = run(())
    for kill in (("find",), ("seen",), ("walk",), ("write",), ("find", "walk")):
        found, took = run(kill)
        results.append(
            {"killed_in": kill, "labels_equal": float((found == expected).mean()),
             "times": round(took / undisturbed, 2)}
        )  # fmt: skip
        print(results[-1], flush=True)
    keep("faults", undisturbed=round(undisturbed, 1), runs=results)


_BEFORE = {"find": "route", "seen": "told", "walk": "edges", "write": "walk"}


def _begun(folder, stage):
    """Tell whether all pieces of the stage before are there."""
    if not folder.exists():
        return False
    split = folder / "split-00000.json"
    if not split.exists():
        return False
    n_parts = json.loads(split.read_text())["parts"]
    ready = len(list(folder.glob(f"{_BEFORE[stage]}-*.json"))) == n_parts
    if ready and stage == "walk":
        time.sleep(1.0)  # into it
    return ready


if __name__ == "__main__":
    what, *more = sys.argv[1:]
    if what == "hundred":
        many("hundred-thousand", 100_000, 32, "1.5GB", 4)
    elif what == "million":
        many("million", 1_000_000, 32, "1.5GB", 12)
    elif what == "ten":
        many("ten-million", 10_000_000, 16, "6GB", 40)
    elif what == "fitted":
        fitted_in_little(*more[:3], int(more[3]))
    elif what == "same":
        same(more or ["banknote", "mnist", "synthetic"])
    else:
        {"own": own, "parts": parts, "faults": faults}[what]()
