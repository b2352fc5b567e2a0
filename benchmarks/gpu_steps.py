"""Time the graph and the walk on a GPU, and compare them with the CPU's on the same lists.

    MANIFOLDKNN_DATA=folder python benchmarks/gpu_steps.py mnist grid:1000000 grid:10000000

Neighbours are not timed: of MNIST they come from plain tiles, of the jittered grids from
the window around each row.
"""

import os
import sys
import time
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


def wait():
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


def timed(name, work, repeats=3):
    for turn in range(repeats):
        if DEVICE.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        wait()
        start = time.perf_counter()
        answer = work()
        wait()
        seconds = time.perf_counter() - start
        peak = torch.cuda.max_memory_allocated() / 1e9 if DEVICE.type == "cuda" else 0.0
        print(f"  {name} {turn}: {seconds:.4f} s, {peak:.2f} GB", flush=True)
    return answer


def mnist():
    with np.load(Path(os.environ["MANIFOLDKNN_DATA"]) / "mnist.npz") as data:
        X, truth = data["X"], data["y"].astype(int)
    X = torch.as_tensor(X, device=DEVICE).float() / 255
    return X, truth, *nearest(X)


def nearest(X, k=30, tile=4096):
    """The k nearest others of each row: tiles of products, distances from differences."""
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
    """Jittered grids, rows in no order; the 30 nearest within the window around each."""
    each = n // islands
    side = int(each ** (1 / dims))
    each = side**dims
    n = each * islands
    generator = torch.Generator(device=DEVICE).manual_seed(0)
    reach = {2: 4, 3: 2, 4: 1}[dims]
    steps = torch.arange(-reach, reach + 1, device=DEVICE)
    window = torch.cartesian_prod(*[steps] * dims)
    window = window[window.any(1)]
    place = torch.cartesian_prod(*[torch.arange(side, device=DEVICE)] * dims).repeat(islands, 1)
    jitter = torch.rand(n, dims, generator=generator, device=DEVICE)
    X = place + 0.9 * jitter
    island = torch.arange(n, device=DEVICE) // each
    X[:, 0] += 3.0 * side * island
    weights = side ** torch.arange(dims - 1, -1, -1, device=DEVICE)
    indices = torch.empty(n, 30, dtype=torch.int32, device=DEVICE)
    distances = torch.empty(n, 30, device=DEVICE)
    for some in torch.arange(n, device=DEVICE).split(1 << 20):
        there = (place[some][:, None] + window) % side  # each grid is a torus: no corners
        other = (island[some] * each)[:, None] + (there * weights).sum(2)
        away = window + 0.9 * (jitter[other] - jitter[some][:, None])
        away = away.square().sum(2).sqrt()
        near, order = torch.topk(away, 30, dim=1, largest=False)
        indices[some] = torch.gather(other, 1, order).int()
        distances[some] = near
    # Forget the order of the grid, in which neighbours would be near in memory.
    shuffled = torch.randperm(n, generator=generator, device=DEVICE)
    back = torch.empty_like(shuffled)
    back[shuffled] = torch.arange(n, device=DEVICE)
    indices = back[indices.reshape(-1)].reshape(n, 30).int()[shuffled]
    truth = ((X[:, 0] // max(1.0, 3.0 * side * islands / 10)) % 10).long()
    return X[shuffled], truth[shuffled].cpu().numpy(), indices, distances[shuffled]


def labels(truth, per_class):
    rng = np.random.default_rng(0)
    y = np.full(len(truth), -1)
    for c in np.unique(truth):
        rows = rng.choice(np.flatnonzero(truth == c), per_class, replace=False)
        y[rows] = c
    return np.unique(y, return_inverse=True)[1] - 1


def vote(walk):
    shares = np.zeros((len(walk.nearest.weights), int(walk.voter_classes.max()) + 1))
    for j in range(walk.n_voting):
        at = walk.voter_classes[walk.nearest.voters[:, j]]
        shares[np.arange(len(shares)), at] += walk.nearest.weights[:, j]
    return shares.argmax(1)


def compare(X, y, indices, distances, graph, walk):
    """The CPU's steps on the same lists."""
    lists = Neighbors(indices.cpu().numpy().astype(np.intp), distances.double().cpu().numpy())
    X = X.cpu().numpy()
    start = time.perf_counter()
    edges = selected_edges(X, lists, **GRAPH)
    built = build_graph(X, lists, y, sigma=graph.sigma, edges=edges, **GRAPH, **TREE)
    middle = time.perf_counter()
    labeled = np.flatnonzero(y >= 0)
    theirs = label_walk(built, labeled, y[labeled], **WALK)
    print(f"  CPU: graph {middle - start:.2f} s, walk {time.perf_counter() - middle:.2f} s")
    found, matrix = graph.to_numpy()
    same = all(np.array_equal(a, b) for a, b in zip(found, edges))
    weights = np.abs(matrix.log_weights.data - built.log_weights.data).max()
    print(f"  same edges: {same}; log weights differ by at most {weights:.1e}")
    agree = (vote(walk) == vote(theirs)).mean()
    dense = []
    for one in (walk, theirs):
        full = np.zeros((len(y), len(labeled)))
        np.put_along_axis(full, one.nearest.voters, one.nearest.weights, axis=1)
        dense.append(full)
    worst = (
        np.abs(dense[0] - dense[1]).max() if walk.nearest.weights.shape[1] == len(labeled) else -1
    )
    scale = np.abs(walk.nearest.log_scale - theirs.nearest.log_scale).max()
    print(
        f"  votes agree on {100 * agree:.3f} %; weights differ by {worst:.1e}, scales {scale:.1e}"
    )


def products(graph):
    """The product with S: bags against cuSPARSE, in double precision."""
    from manifoldknn.gpu.products import SparseProduct

    n = graph.n_samples
    values = graph.log_weights.exp()
    bags = SparseProduct(graph.offsets, graph.columns, values)
    for width in (1, 32, 100):
        if n * width * 8 > 20e9:
            continue
        v = torch.rand(n, width, dtype=torch.float64, device=DEVICE)
        timed(f"bags, {width} columns", lambda: [bags(v) for _ in range(20)], 2)
        csr = torch.sparse_csr_tensor(graph.offsets, graph.columns.long(), values, (n, n))
        timed(f"cuSPARSE, {width} columns", lambda: [csr @ v for _ in range(20)], 2)
        print("  the same bits:", torch.equal(bags(v), bags(v)), torch.equal(csr @ v, csr @ v))


def case(name):
    print(name, flush=True)
    kind, _, size = name.partition(":")
    if kind == "mnist":
        X, truth, indices, distances = timed("data and neighbours", mnist, 1)
        y = labels(truth, 10)
    else:
        dims = int(kind[4:] or 4) if kind.startswith("grid") else 4
        islands = 50 if kind == "islands" else 1
        X, truth, indices, distances = timed(
            "data and neighbours", lambda: grid(int(size), dims, islands), 1
        )
        y = labels(truth, 100 // len(np.unique(truth)))
    labeled = np.flatnonzero(y >= 0)
    print(f"  {len(X)} rows, {len(labeled)} labels", flush=True)

    def build():
        return torch_graph(indices, distances, y, X=X, sigma="auto", **GRAPH, **TREE)

    def walk():
        return torch_label_walk(graph, labeled, y[labeled], **WALK)

    graph = timed("graph", build)
    again = build()
    print("  two graphs alike:", torch.equal(graph.log_weights, again.log_weights))
    degrees = graph.offsets.diff()
    print(f"  {len(graph.columns)} entries, largest degree {int(degrees.max())}")
    del again
    found = timed("walk", walk, 2 if len(X) > 5e6 else 3)
    print(f"  n_iter {found.n_iter}, converged {found.converged}")
    again = walk()
    print("  two walks alike:", np.array_equal(found.nearest.weights, again.nearest.weights))
    print(f"  error {100 * (vote(found) != truth).mean():.2f} %")
    if kind == "mnist" or len(X) < 2e5:
        compare(X, y, indices, distances, graph, found)
    if len(X) < 2e6 and DEVICE.type == "cuda":
        products(graph)


if __name__ == "__main__":
    import logging

    if os.environ.get("VERBOSE"):
        logging.basicConfig(level=logging.DEBUG)
        logging.getLogger("manifoldknn").setLevel(logging.DEBUG)
    print(torch.__version__, torch.cuda.get_device_name() if DEVICE.type == "cuda" else "CPU")
    for name in sys.argv[1:]:
        case(name)
