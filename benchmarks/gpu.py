"""Measure the fit and the prediction on a GPU: time, memory, recall, agreement with the CPU.

    python benchmarks/gpu.py                  every part
    python benchmarks/gpu.py mnist million    some of them
    python benchmarks/gpu.py --device torch:cpu --rows 2000 million    try it without a GPU

Parts: mnist (70,000 x 784, 100 labels, from the GPU's and from the host's memory, beside the
CPU with exact neighbours and, where faiss is installed, as it fits by default), predict (a million
rows on that model), million (1,000,000 x 128) and ten_million (10,000,000 x 64). MNIST is looked
for in the folder that MANIFOLDKNN_DATA names; the others are mixtures of curved manifolds, made
here. A fit on 5,000 rows goes before each, unmeasured, so that libraries are loaded. Tables go to
results/gpu.md, numbers to results/gpu.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch
from machine import commit, machine, versions

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.base.progress import timed_stages
from manifoldknn.base.tensors import chosen_device
from manifoldknn.search.engines import automatic_engine

RESULTS = Path(__file__).with_name("results")
N_CLASSES, PER_CLASS = 10, 10
LATENT, WAVES, NOISE = 4, 6, 0.05
CHECKED = 1000  # rows whose neighbours are searched exactly, for the recall


def curved(n, d, device, seed=0):
    """Rows on ten curved manifolds of four dimensions, and which of them each is on."""
    draw = torch.Generator(device=device).manual_seed(seed)
    options = {"generator": draw, "device": device}
    truth = torch.randint(N_CLASSES, (n,), **options)
    out = torch.randn((WAVES, d), **options) / WAVES**0.5  # all in one subspace, so they meet
    X = torch.empty((n, d), device=device)
    for c in range(N_CLASSES):
        rows = torch.nonzero(truth == c).flatten()
        waves = torch.randn((LATENT, WAVES), **options)
        phase = 2 * torch.pi * torch.rand(WAVES, **options)
        for part in rows.split(1 << 20):
            u = torch.rand((len(part), LATENT), **options)
            X[part] = torch.cos(u @ waves + phase) @ out
            X[part] += NOISE * torch.randn((len(part), d), **options)
    low, high = X.amin(), X.amax()
    return X.sub_(low).div_(high - low), truth.cpu().numpy()


def labeled(truth, seed=0):
    """Ten labels per class, -1 elsewhere."""
    rng, y = np.random.default_rng(seed), np.full(len(truth), -1)
    for c in np.unique(truth):
        y[rng.choice(np.flatnonzero(truth == c), PER_CLASS, replace=False)] = c
    return y


def mnist():
    folder = os.environ.get("MANIFOLDKNN_DATA")
    if not folder:
        sys.exit("Set MANIFOLDKNN_DATA to the folder of mnist.npz, or leave mnist and predict out.")
    with np.load(Path(folder) / "mnist.npz") as file:
        return (file["X"] / np.float32(255)).astype(np.float32), file["y"]


def synchronized(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def fitted(X, y, name, device, **params):
    """Fit, and return the model with its seconds, stages and the GPU's peak memory."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    stages = {}
    synchronized(device)
    start = time.perf_counter()
    with timed_stages(stages):
        clf = ManifoldKNNClassifier(device=name, **params).fit(X, y)
    synchronized(device)
    row = {"seconds": time.perf_counter() - start, **stages}
    if device.type == "cuda":
        row["GPU, GB"] = torch.cuda.max_memory_reserved(device) / 1e9
    return clf, row


def warm(X, y, name, device):
    """Load libraries: a small fit of the same kind."""
    rows = np.union1d(np.flatnonzero(y >= 0), np.arange(min(5000, len(y))))
    part = X[torch.as_tensor(rows, device=X.device)] if torch.is_tensor(X) else X[rows]
    clf, _ = fitted(part, y[rows], name, device)
    clf.predict(part)


def measured_recall(clf, X, seed=1):
    """Share of the true 30 nearest of some rows that the lists of the model hold."""
    n, k = len(X), clf.fitted_.lists.indices.shape[1]
    rows = np.sort(np.random.default_rng(seed).choice(n, min(CHECKED, n), replace=False))
    lists, hits = clf.fitted_.lists.indices[rows], 0
    at = torch.as_tensor(rows, device=X.device)
    for i in range(0, len(rows), 50):
        asked = X[at[i : i + 50]].double()
        best = away = None
        for start in range(0, n, 1 << 20):
            D = torch.cdist(asked, X[start : start + (1 << 20)].double())
            D.masked_fill_(at[i : i + 50, None] == torch.arange(
                start, start + D.shape[1], device=X.device), torch.inf)  # fmt: skip
            value, place = torch.topk(D, min(k, D.shape[1]), largest=False)
            place = place + start
            if best is not None:
                value, place = torch.cat([away, value], 1), torch.cat([best, place], 1)
                value, order = torch.topk(value, k, largest=False)
                place = place.gather(1, order)
            best, away = place, value
        true = best.cpu().numpy()
        hits += sum(len(np.intersect1d(a, b)) for a, b in zip(true, lists[i : i + 50]))
    return hits / (len(rows) * k)


def error(clf, truth, y):
    return 100 * float((clf.transduction_ != truth)[y < 0].mean())


def on_the_cpu(X, y, truth, labels):
    """Fit on the CPU with the same, exact neighbours, and as by default where that differs."""
    engines = {"exact": "exact neighbours"}
    if automatic_engine(X, "euclidean") != "exact":  # the approximate search needs faiss
        engines["auto"] = "default, approximate neighbours"
    rows = []
    for neighbors, what in engines.items():
        cpu, row = fitted(X, y, "cpu", torch.device("cpu"), neighbors=neighbors)
        agree = 100 * float((cpu.transduction_ == labels).mean())
        row |= {"error, %": error(cpu, truth, y), "labels as the GPU, %": agree}
        rows.append({"fit": f"mnist, CPU, {what}", **row})
    return rows


def part_mnist(name, device, options):
    X, truth = mnist()
    X, truth = X[: options.rows], truth[: options.rows]
    y = labeled(truth)
    there = torch.from_numpy(X).to(device)
    warm(there, y, name, device)
    rows, models = [], []
    for what, data in (("mnist, X on the GPU", there), ("mnist, X on the host", X)) * 3:
        clf, row = fitted(data, y, name, device)
        rows.append({"fit": what, **row, "error, %": error(clf, truth, y)})
        models.append(clf)
    same = all((m.transduction_ == models[0].transduction_).all() for m in models)
    rows[0] |= {"recall": measured_recall(models[0], there), "runs the same": same}
    # The fastest of three each.
    best = {}
    for row in rows:
        before = best.get(row["fit"], row)
        best[row["fit"]] = {**rows[0], **min(before, row, key=lambda r: r["seconds"])}
    rows = list(best.values())
    if options.cpu:
        rows += on_the_cpu(X, y, truth, models[0].transduction_)
    if options.labels:
        np.save(options.labels, models[0].transduction_)
    return rows


def part_predict(name, device, options):
    X, truth = mnist()
    X, truth = X[: options.rows], truth[: options.rows]
    y = labeled(truth)
    clf, _ = fitted(X, y, name, device)
    rng = np.random.default_rng(0)
    n = min(1_000_000, 15 * len(X))
    new = X[rng.integers(len(X), size=n)]
    new += np.float32(0.05) * rng.random(new.shape, dtype=np.float32)
    clf.predict(new[:5000])
    rows = []
    for what in ("rows on the host", "rows on the GPU"):
        data = new if what == "rows on the host" else torch.from_numpy(new).to(device)
        start = time.perf_counter()
        answer = clf.predict(data)
        rows.append({"predict": f"{n:,} {what}", "seconds": time.perf_counter() - start})
    again = clf.predict(new)
    rows[0]["runs the same"] = bool((answer == again).all())
    return rows


def part_synthetic(what, n, d, name, device, options):
    X, truth = curved(min(n, options.rows or n), d, device)
    y = labeled(truth)
    warm(X, y, name, device)
    if device.type == "cuda":
        torch.cuda.empty_cache()
    clf, row = fitted(X, y, name, device)
    row = {"fit": what, "rows": len(X), "columns": d, **row, "error, %": error(clf, truth, y)}
    row["recall"] = measured_recall(clf, X)
    if options.twice:
        first = clf.transduction_
        del clf
        clf, _ = fitted(X, y, name, device)
        row["runs the same"] = bool((clf.transduction_ == first).all())
    return [row]


def part_million(name, device, options):
    return part_synthetic("million", 1_000_000, 128, name, device, options)


def part_ten_million(name, device, options):
    return part_synthetic("ten_million", 10_000_000, 64, name, device, options)


PARTS = {
    "mnist": part_mnist,
    "predict": part_predict,
    "million": part_million,
    "ten_million": part_ten_million,
}


def shown(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}" if value < 10 else f"{value:.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def table(rows):
    heads = list(dict.fromkeys(head for row in rows for head in row))
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    lines += [
        "| " + " | ".join(shown(row[h]) if h in row else "" for h in heads) + " |" for row in rows
    ]
    return "\n".join(lines)


def write(results):
    parts = ["# On a GPU", "Written by `python benchmarks/gpu.py`."]
    for name, result in results.items():
        here = ", ".join(f"{key} {value}" for key, value in result["machine"].items())
        parts += [f"## {name}", table(result["rows"]), f"{result['date']}; {here}."]
    parts.append(
        "Seconds of a fit are from the call to its end, in a process that has fitted 5,000 rows "
        "before; of mnist, the fastest of three. GPU memory is what PyTorch had reserved at most. "
        f"Recall: share of the true 30 nearest of {CHECKED:,} rows that the search found."
    )
    (RESULTS / "gpu.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)} [all]")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=None, help="at most so many")
    parser.add_argument("--labels", help="write MNIST's labels to this .npy file")
    parser.add_argument("--no-cpu", dest="cpu", action="store_false")
    parser.add_argument("--once", dest="twice", action="store_false")
    options = parser.parse_args()
    device = chosen_device(options.device, None)
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else "none"
    here = {"GPU": gpu, "torch": torch.__version__, **machine(), **versions(), "commit": commit()}
    here.pop("graphlearning", None)
    file = RESULTS / "gpu.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    for name in options.parts or PARTS:
        rows = PARTS[name](options.device, device, options)
        print(json.dumps({name: rows}, indent=1), flush=True)
        if options.rows is None:
            date = datetime.now(UTC).strftime("%Y-%m-%d")
            results[name] = {"rows": rows, "machine": here, "date": date}
            file.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
            write(results)


if __name__ == "__main__":
    main()
