"""Time the graph and the walk on a GPU, and compare them with the CPU's on the same lists.

    MANIFOLDKNN_DATA=folder python benchmarks/gpu_steps.py mnist grid4:1000000 grid4:10000000

Writes benchmarks/results/gpu_steps.md, or the file that MANIFOLDKNN_OUT names. Neighbours
are not timed: of MNIST they come from plain tiles, of the jittered grids (in 2 or 4
dimensions; "islands" are 50 of them) from the window around each row. Times are those of
the fastest of three runs after the first; beyond 5 million rows, of the first.
"""

import os
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch

from manifoldknn.gpu.graph import torch_graph
from manifoldknn.gpu.walk import torch_label_walk
from manifoldknn.graph import build_graph, selected_edges
from manifoldknn.neighbors import Neighbors
from manifoldknn.voters import label_walk

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
GRAPH = {"graph": "pruned", "graph_neighbors": 10, "metric": "euclidean"}
TREE = {"tree_depth": 2, "theta": 0.1}
WALK = {"n_neighbors": 5, "alpha": 0.99, "tol": 1e-3, "max_iter": 1000}
OUT = Path(__file__).parent / "results" / "gpu_steps.md"
HEAD = (
    "| data | rows | labels | entries | graph (s) | walk (s) | iterations | peak (GB) "
    "| two runs alike | beside the CPU |\n"
    "|---|---|---|---|---|---|---|---|---|---|\n"
)


def mnist():
    with np.load(Path(os.environ["MANIFOLDKNN_DATA"]) / "mnist.npz") as data:
        X, truth = data["X"], data["y"].astype(int)
    X = torch.as_tensor(X, device=DEVICE).float() / 255
    return X, truth, *nearest(X)


def nearest(X, k=30, tile=4096):
    """Find the k nearest others: tiles of products, distances from differences."""
    norms = X.double().square().sum(1).float()
    indices, distances = [], []
    for start in range(0, len(X), tile):
        rows = X[start : start + tile]
        scores = norms - 2.0 * (rows @ X.T)
        scores[torch.arange(len(rows)), torch.arange(start, start + len(rows))] = torch.inf
        near = torch.topk(scores, k + 4, dim=1, largest=False)[1].sort(1)[0]
        away = torch.stack(
            [(rows.double() - X[near[:, j]].double()).square().sum(1) for j in range(k + 4)], 1
        ).sqrt()
        away, order = torch.sort(away, dim=1, stable=True)
        indices.append(torch.gather(near, 1, order)[:, :k].int())
        distances.append(away[:, :k])
    return torch.cat(indices), torch.cat(distances)


def grid(n, dims, islands=1):
    """Make jittered grids, rows in no order, and the 30 nearest in the window around each."""
    side = int((n // islands) ** (1 / dims) + 1e-9)
    each = side**dims
    n = each * islands
    generator = torch.Generator(device=DEVICE).manual_seed(0)
    reach = {2: 4, 4: 1}[dims]
    steps = torch.arange(-reach, reach + 1, device=DEVICE)
    window = torch.cartesian_prod(*[steps] * dims)
    window = window[window.any(1)]
    place = torch.cartesian_prod(*[torch.arange(side, device=DEVICE)] * dims).repeat(islands, 1)
    jitter = torch.rand(n, dims, generator=generator, device=DEVICE)
    island = torch.arange(n, device=DEVICE) // each
    X = place + 0.9 * jitter
    X[:, 0] += 3.0 * side * island
    weights = side ** torch.arange(dims - 1, -1, -1, device=DEVICE)
    indices = torch.empty(n, 30, dtype=torch.int32, device=DEVICE)
    distances = torch.empty(n, 30, device=DEVICE)
    for some in torch.arange(n, device=DEVICE).split(1 << 20):
        there = (place[some][:, None] + window) % side  # each grid is a torus: no corners
        other = (island[some] * each)[:, None] + (there * weights).sum(2)
        away = window + 0.9 * (jitter[other] - jitter[some][:, None])
        away = away.square().sum(2).sqrt()
        distances[some], order = torch.topk(away, 30, dim=1, largest=False)
        indices[some] = torch.gather(other, 1, order).int()
    # Forget the order of the grid, in which neighbours would be near in memory.
    shuffled = torch.randperm(n, generator=generator, device=DEVICE)
    back = torch.empty_like(shuffled)
    back[shuffled] = torch.arange(n, device=DEVICE)
    indices = back[indices.reshape(-1)].reshape(n, 30).int()[shuffled]
    truth = (X[:, 0] * 10 / X[:, 0].max()).long().clamp(max=9)
    return X[shuffled], truth[shuffled].cpu().numpy(), indices, distances[shuffled]


def data(name):
    kind, _, size = name.partition(":")
    if kind == "mnist":
        return mnist()
    if kind == "islands":
        return grid(int(size), 4, 50)
    return grid(int(size), int(kind.removeprefix("grid")))


def labels(truth):
    """Draw ten labels of each class."""
    rng = np.random.default_rng(0)
    y = np.full(len(truth), -1)
    for code, c in enumerate(np.unique(truth)):
        y[rng.choice(np.flatnonzero(truth == c), 10, replace=False)] = code
    return y


def timed(work, repeats=3):
    """Return the answer and the seconds of the fastest run after the first, if there are more."""
    fastest = np.inf
    for turn in range(repeats + 1):
        torch.cuda.synchronize() if DEVICE.type == "cuda" else None
        start = time.perf_counter()
        answer = work()
        torch.cuda.synchronize() if DEVICE.type == "cuda" else None
        if turn or not repeats:
            fastest = min(fastest, time.perf_counter() - start)
    return answer, fastest


def vote(walk):
    shares = np.zeros((len(walk.nearest.weights), int(walk.voter_classes.max()) + 1))
    for j in range(walk.n_voting):
        at = walk.voter_classes[walk.nearest.voters[:, j]]
        shares[np.arange(len(shares)), at] += walk.nearest.weights[:, j]
    return shares.argmax(1)


def compared(X, y, indices, distances, graph, walk):
    """Run the CPU's steps on the same lists, and say what differs."""
    lists = Neighbors(indices.cpu().numpy().astype(np.intp), distances.double().cpu().numpy())
    X = X.cpu().numpy()
    start = time.perf_counter()
    edges = selected_edges(X, lists, **GRAPH)
    built = build_graph(X, lists, y, sigma=graph.sigma, edges=edges, **GRAPH, **TREE)
    middle = time.perf_counter()
    labeled = np.flatnonzero(y >= 0)
    theirs = label_walk(built, labeled, y[labeled], **WALK)
    end = time.perf_counter()
    found, matrix = graph.to_numpy()
    same = all(np.array_equal(a, b) for a, b in zip(found, edges))
    weights = np.abs(matrix.log_weights.data - built.log_weights.data).max()
    scale = np.abs(walk.nearest.log_scale - theirs.nearest.log_scale).max()
    agree = 100 * (vote(walk) == vote(theirs)).mean()
    return (
        f"edges {'the same' if same else 'DIFFERENT'}, log weights within {weights:.0e}, "
        f"log of the largest walk weight within {scale:.0e}, votes agree on {agree:.3f} %; "
        f"CPU {middle - start:.2f} + {end - middle:.2f} s"
    )


def case(name):
    X, truth, indices, distances = data(name)
    y = labels(truth)
    labeled = np.flatnonzero(y >= 0)
    if DEVICE.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    turns = 0 if len(X) > 5e6 else 3
    build = partial(torch_graph, indices, distances, y, X=X, sigma="auto", **GRAPH, **TREE)
    graph, graph_seconds = timed(build, turns)
    alike = torch.equal(graph.log_weights, build().log_weights)
    go = partial(torch_label_walk, graph, labeled, y[labeled], **WALK)
    walk, walk_seconds = timed(go, turns)
    alike &= np.array_equal(walk.nearest.weights, go().nearest.weights)
    peak = torch.cuda.max_memory_allocated() / 1e9 if DEVICE.type == "cuda" else 0.0
    error = 100 * (vote(walk) != truth).mean()
    beside = f"error {error:.2f} %"
    if len(X) < 2e5:
        beside += "; " + compared(X, y, indices, distances, graph, walk)
    return (
        f"| {name} | {len(X):,} | {len(labeled)} | {len(graph.columns):,} | {graph_seconds:.3f} "
        f"| {walk_seconds:.3f} | {walk.n_iter} | {peak:.1f} | {'yes' if alike else 'NO'} "
        f"| {beside} |\n"
    )


def main(names):
    machine = torch.cuda.get_device_name() if DEVICE.type == "cuda" else "CPU"
    text = f"# Graph and walk on {machine}, PyTorch {torch.__version__}\n\n{HEAD}"
    print(text, end="", flush=True)
    for name in names:
        row = case(name)
        print(row, end="", flush=True)
        text += row
    Path(os.environ.get("MANIFOLDKNN_OUT", OUT)).write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
