"""Random problems for property tests: islands, duplicates, every class size."""

from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest
from hypothesis import strategies as st
from sklearn import __version__ as sklearn_version

from manifoldknn.graph import build_graph, candidate_count
from manifoldknn.neighbors import ExactIndex

# scikit-learn before 1.9 reads the names of such frames by a protocol that polars 2 dropped.
NAMED_POLARS = pytest.param(
    pl.DataFrame,
    marks=pytest.mark.skipif(
        not hasattr(pl.DataFrame, "__dataframe__")
        and tuple(map(int, sklearn_version.split(".")[:2])) < (1, 9),
        reason="this scikit-learn cannot read the column names of this polars",
    ),
)


@dataclass(frozen=True)
class Problem:
    X: np.ndarray
    y: np.ndarray  # class numbers, -1 where unlabelled


@st.composite
def problems(draw, max_samples=60, ties=True, min_classes=1):
    """Samples in a few islands, some repeated, with labels for a few of them."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    n = draw(st.integers(6, max_samples))
    d = draw(st.integers(1, 4))
    n_islands = draw(st.integers(1, 3))
    gap = draw(st.sampled_from([0.5, 3.0, 6.0]))
    X = rng.normal(size=(n, d)) + gap * rng.integers(0, n_islands, n)[:, None]
    if ties and draw(st.booleans()):
        X[rng.integers(0, n, n // 3)] = X[rng.integers(0, n, n // 3)]
    if ties and draw(st.booleans()):
        X = np.round(X)
    if np.ptp(X) == 0:
        X[0] += 1.0
    n_classes = draw(st.integers(min_classes, 4))
    most = draw(st.sampled_from([12, 40]))  # more than a block of label columns
    n_labeled = draw(st.integers(n_classes, max(n_classes, min(n, most))))
    y = np.full(n, -1)
    rows = rng.choice(n, n_labeled, replace=False)
    # The first of each class, then classes of any size.
    y[rows] = np.concatenate(
        [np.arange(n_classes), rng.integers(0, n_classes, n_labeled - n_classes)]
    )
    return Problem(X, y)


def built_graph(problem, graph, depth=2, sigma=0.7):
    X = problem.X
    return build_graph(
        X,
        ExactIndex(X).among_samples(candidate_count(graph, 5, len(X))),
        problem.y,
        graph=graph,
        graph_neighbors=5,
        sigma=sigma,
        tree_depth=depth,
        theta=0.1,
        metric="euclidean",
    )
