"""Is the graph healthy? Islands, hubs, how far labels reach, and what to change."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from manifoldknn.graph.constrained import automatic_sigma
from manifoldknn.insight.dimension import intrinsic_dimension
from manifoldknn.insight.listing import Listing
from manifoldknn.model.cautions import label_advice
from manifoldknn.model.rowids import check_all_walked, fitted_row_ids
from manifoldknn.search.repeated import equal_rows

if TYPE_CHECKING:
    from manifoldknn.classifier import ManifoldKNNClassifier

_WEAK = float(np.log(1e-6))  # edges below hardly let a walker pass
_FAR = 8  # hops
_LISTED = 10
_DIMENSION_ROWS = 3000
_HUB = 10.0  # times as many neighbours' lists as usual
_WIDE = 3.0  # times the automatic sigma: the seventh neighbour weighs 0.9 of the first
_STEEP = 1e-4  # a typical weight of a row's best edge that tells of a small sigma


@dataclass(frozen=True)
class GraphHealth(Listing):
    """What there is to say about the graph of a fitted classifier.

    ``to_frame()`` is a pandas frame of it, and a notebook shows it as a table.

    Attributes
    ----------
    n_rows, n_labeled, n_edges : int
        Rows, labelled rows, and edges without direction (must-links not counted).
    edges_per_row : tuple of float
        Smallest, median and largest number of edges of a row.
    n_components : int
        Connected parts of the graph, must-links included.
    islands : list of dict
        Parts that only edges weaker than 1e-6 join to the rest, largest first:
        ``size``, ``n_labeled`` and ``example`` (the name of a row). One part: no islands.
    n_unlabeled_islands : int
        How many of all islands have no label.
    hubs : list of dict
        Rows that are a neighbour to ten times as many rows as usual: ``id``, ``count``.
    hops : dict of int to int
        How many rows are how many edges away from the nearest label; -1: unreachable.
    farthest : list of dict
        The rows that are most hops away: ``id``, ``hops``.
    labels_per_class : dict
        Number of labels of each class.
    n_duplicates : int
        Rows that repeat an earlier row.
    contradictions : list of tuple
        Names of equal rows with different labels, in pairs.
    sigma : float
        The kernel width.
    typical_weight : float
        Median over rows of the weight of the best edge to a row that differs; NaN if none does.
    intrinsic, ambient : float, int
        Dimension of the data (estimated on at most 3,000 rows) and of its columns.
    advice : list of str
        What to do, most urgent first; empty if all is well.
    """

    n_rows: int
    n_labeled: int
    n_edges: int
    edges_per_row: tuple[float, float, float]
    n_components: int
    islands: list[dict[str, Any]]
    n_unlabeled_islands: int
    hubs: list[dict[str, Any]]
    hops: dict[int, int]
    farthest: list[dict[str, Any]]
    labels_per_class: dict[Any, int]
    n_duplicates: int
    contradictions: list[tuple[Any, Any]]
    sigma: float
    typical_weight: float
    intrinsic: float
    ambient: int
    advice: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns of a table, by name: what is known, and each advice."""
        known = [(name, value) for name, value in vars(self).items() if name != "advice"]
        advice = self.advice or ["none: the graph is healthy"]
        what, values = zip(*known, *(("advice", line) for line in advice))
        return {"what": list(what), "value": list(values)}


def inspect(classifier: ManifoldKNNClassifier, *, index: Any = None) -> GraphHealth:
    """Look the graph of a fitted classifier over.

    Parameters
    ----------
    classifier : ManifoldKNNClassifier
        Fitted.
    index : frame, index or array-like, optional
        Names of the fitted rows; by default the index of the fitted frame.

    Returns
    -------
    GraphHealth
        Numbers, examples by name, and advice.

    Notes
    -----
    Cost: a few passes over the edges, and an estimate of the
    intrinsic dimension on at most 3,000 rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manifoldknn import ManifoldKNNClassifier, inspect
    >>> X, y = load_iris(return_X_y=True)
    >>> y[10:50] = y[60:100] = y[110:] = -1
    >>> health = inspect(ManifoldKNNClassifier().fit(X, y))
    >>> health.n_components, health.n_labeled, health.n_duplicates
    (1, 30, 1)
    """
    check_all_walked(classifier)
    ids = fitted_row_ids(classifier, index)
    graph = classifier.fitted_.graph
    W = graph.log_weights if graph.is_sparse else _as_sparse(graph.log_weights)
    labeled = classifier.labeled_indices_
    codes = classifier.fitted_.labels.codes
    X = classifier.fitted_.index.X
    counts = np.diff(W.indptr)
    n_components, _ = _parts(W, codes, -np.inf)
    islands, n_unlabeled = _islands(W, codes, ids)
    hops = hops_from_labels(W, labeled)
    repeated, contradictions = _duplicates(X, codes, ids)
    k = min(classifier.graph_neighbors, X.shape[0] - 1)
    near = classifier.fitted_.lists.indices[:, :k]
    occurrences = np.bincount(near.ravel(), minlength=X.shape[0])
    number, size = np.unique(hops, return_counts=True)
    far = np.lexsort((np.arange(len(hops)), -np.where(hops < 0, len(hops), hops)))[:_LISTED]
    health = GraphHealth(
        n_rows=X.shape[0],
        n_labeled=len(labeled),
        n_edges=int(W.nnz // 2),
        edges_per_row=(float(counts.min()), float(np.median(counts)), float(counts.max())),
        n_components=n_components,
        islands=islands,
        n_unlabeled_islands=n_unlabeled,
        hubs=_hubs(occurrences, k, ids),
        hops=dict(zip(number.tolist(), size.tolist())),
        farthest=[{"id": _plain(ids[i]), "hops": int(hops[i])} for i in far],
        labels_per_class=dict(
            zip(classifier.classes_.tolist(), np.bincount(codes[labeled]).tolist())
        ),
        n_duplicates=repeated,
        contradictions=contradictions,
        sigma=classifier.sigma_,
        typical_weight=_typical_weight(W),
        intrinsic=_intrinsic(X),
        ambient=int(X.shape[1]),
    )
    health.advice.extend(_advice(health, classifier))
    return health


def hops_from_labels(W: Any, labeled: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return how many edges each row is away from the nearest labelled one, -1 where no path leads.

    Every stored entry of the symmetric W is an edge.

    >>> path = sparse.csr_array(np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1))
    >>> hops_from_labels(path, np.array([0]))
    array([0, 1, 2, 3])
    """
    pattern = sparse.csr_array((np.ones(W.nnz, dtype=np.int8), W.indices, W.indptr), shape=W.shape)
    hops = np.full(W.shape[0], -1, dtype=np.intp)
    frontier = np.asarray(labeled, dtype=np.intp)
    distance = 0
    while frontier.size:
        hops[frontier] = distance
        around = np.unique(pattern[frontier].indices)
        frontier = around[hops[around] < 0]
        distance += 1
    return hops


def _as_sparse(log_weights: NDArray[np.float64]) -> Any:
    """Return a dense graph as a sparse one, whose entries may be log 1 = 0."""
    rows, cols = np.nonzero(np.isfinite(log_weights))
    return sparse.csr_array((log_weights[rows, cols], (rows, cols)), shape=log_weights.shape)


def _parts(W: Any, codes: NDArray[np.intp], above: float) -> tuple[int, NDArray[np.intp]]:
    """Return connected parts of the edges above a log weight, must-links included."""
    rows = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
    strong = W.data > above
    order = np.argsort(codes, kind="stable")
    order = order[codes[order] >= 0]
    same = codes[order[1:]] == codes[order[:-1]]
    i = np.concatenate([rows[strong], order[:-1][same]])
    j = np.concatenate([W.indices[strong], order[1:][same]])
    links = sparse.coo_array((np.ones(len(i)), (i, j)), shape=W.shape)
    count, part = csgraph.connected_components(links, directed=False)
    return int(count), part.astype(np.intp)


def _islands(
    W: Any, codes: NDArray[np.intp], ids: NDArray[Any]
) -> tuple[list[dict[str, Any]], int]:
    count, part = _parts(W, codes, _WEAK)
    if count == 1:
        return [], 0
    sizes = np.bincount(part)
    labels = np.bincount(part[codes >= 0], minlength=count)
    first = np.unique(part, return_index=True)[1]
    largest = np.argsort(-sizes, kind="stable")[:_LISTED]
    listed = [
        {"size": int(sizes[p]), "n_labeled": int(labels[p]), "example": _plain(ids[first[p]])}
        for p in largest
    ]
    return listed, int((labels == 0).sum())


def _typical_weight(W: Any) -> float:
    """Return the median over rows of the best weight below 1, which copies of a row have."""
    filled = np.diff(W.indptr) > 0
    apart = np.where(W.data < 0, W.data, -np.inf)
    best = np.maximum.reduceat(apart, W.indptr[:-1][filled]) if filled.any() else apart
    best = best[np.isfinite(best)]
    return float(np.exp(np.median(best))) if best.size else float("nan")


def _hubs(occurrences: NDArray[np.intp], k: int, ids: NDArray[Any]) -> list[dict[str, Any]]:
    top = np.argsort(-occurrences, kind="stable")[:_LISTED]
    return [
        {"id": _plain(ids[i]), "count": int(occurrences[i])}
        for i in top
        if occurrences[i] > _HUB * k
    ]


def _duplicates(
    X: Any, codes: NDArray[np.intp], ids: NDArray[Any]
) -> tuple[int, list[tuple[Any, Any]]]:
    """Count rows that repeat an earlier one, and pair equal rows of different labels."""
    first, kinds = equal_rows(X)
    with_label: dict[int, int] = {}
    pairs: list[tuple[Any, Any]] = []
    for i in np.flatnonzero(codes >= 0).tolist():
        j = with_label.setdefault(int(kinds[i]), i)
        if codes[j] != codes[i]:
            pairs.append((_plain(ids[j]), _plain(ids[i])))
    return len(kinds) - len(first), pairs


def _intrinsic(X: Any) -> float:
    n = X.shape[0]
    if n > _DIMENSION_ROWS:
        rng = np.random.default_rng(0)
        X = X[np.sort(rng.choice(n, _DIMENSION_ROWS, replace=False))]
    try:
        return float(intrinsic_dimension(X))
    except ValueError:  # too few distinct rows, or a regular grid
        return float("nan")


def _advice(health: GraphHealth, classifier: ManifoldKNNClassifier) -> Iterator[str]:
    """Turn findings into things to do, in the words of ``advice.toml``."""
    words = tomllib.loads((resources.files(__package__) / "advice.toml").read_text("utf-8"))
    # What to change to, where it is not so already.
    pruned = "" if classifier.graph == "pruned" else "graph='pruned'"
    cosine = "" if classifier.metric == "cosine" else "metric='cosine' or "
    auto = "" if isinstance(classifier.sigma, str) else ", or sigma='auto'"
    unreached = int(classifier.unreached_.sum())
    far = sum(count for hops, count in health.hops.items() if hops > _FAR)
    if health.contradictions:
        a, b = health.contradictions[0]
        yield words["contradictions"].format(count=len(health.contradictions), a=a, b=b)
    if unreached:
        yield words["unreached"].format(count=unreached, or_pruned=pruned and f", or use {pruned}")
    elif health.n_unlabeled_islands:
        yield words["islands"].format(count=health.n_unlabeled_islands)
    yield from label_advice(classifier)
    if far > 0.05 * health.n_rows:
        yield words["far"].format(count=far, hops=_FAR)
    if health.sigma > _WIDE * automatic_sigma(classifier.fitted_.lists):
        yield words["wide"].format(sigma=health.sigma, better=health.sigma / 2, or_auto=auto)
    elif health.typical_weight < _STEEP:
        yield words["steep"].format(sigma=health.sigma, better=2 * health.sigma, or_auto=auto)
    if health.hubs:
        how = {"first": health.hubs[0]["id"], "pruned": pruned and f"{pruned}, ", "cosine": cosine}
        yield words["hubs"].format(count=len(health.hubs), **how)
    if health.n_duplicates > 0.2 * health.n_rows:
        yield words["duplicates"].format(count=health.n_duplicates)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
