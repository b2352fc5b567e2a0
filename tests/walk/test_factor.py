import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.walk.factor import FactorizedInverse
from manifoldknn.walk.normalized import NormalizedGraph
from strategies import built_graph, forced, problems


@settings(max_examples=60, deadline=None)
@given(
    problem=problems(max_samples=60),
    graph=st.sampled_from(["pruned", "union"]),
    alpha=st.sampled_from([0.5, 0.99, 0.9997]),
)
def test_equals_the_plain_inverse(problem, graph, alpha):
    """Entry by entry, with the must-links that the factor does not hold."""
    built = built_graph(problem, graph)
    normalized = NormalizedGraph(built)
    root = np.exp(0.5 * normalized.log_degrees)
    W = built.to_matrix().toarray()
    s = normalized.log_s.copy()
    s.data = np.exp(s.data)
    linked = np.flatnonzero(normalized.group >= 0)
    group = np.unique(normalized.group[linked], return_inverse=True)[1]
    found = FactorizedInverse(s, linked, group, 1 / root[linked], alpha).solve(np.eye(len(W)))
    expected = np.linalg.inv(np.eye(len(W)) - alpha * W / root[:, None] / root)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-13 * np.abs(expected).max())
    assert (found >= 0).all()


def many_labels(n=900, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, n)
    X = rng.normal(size=(n, 6)) + 2.5 * np.eye(4, 6)[truth]
    y = np.where(rng.random(n) < 0.4, truth, -1)
    return X, y, truth


@pytest.mark.parametrize("vote", ["classes", "neighbors"])
def test_factorised_and_iterated_walks_agree(vote):
    X, y, _ = many_labels()
    fits = []
    for way in ("factorise", "iterate"):
        with forced(way):
            fits.append(ManifoldKNNClassifier(vote=vote, tol=1e-6).fit(X, y))
    assert fits[0].n_iter_ < fits[1].n_iter_
    first, second = (clf.label_distributions_ for clf in fits)
    np.testing.assert_allclose(first, second, atol=1e-4)
    assert (fits[0].transduction_ == fits[1].transduction_).mean() > 0.999


@pytest.mark.parametrize("vote", ["classes", "neighbors"])
def test_weights_too_small_for_floats(vote):
    """Unlabelled rows far behind a gap still get the class of the near side."""
    X, y, _ = many_labels()
    sigma = ManifoldKNNClassifier(vote=vote).fit(X, y).sigma_
    far = X[:30] * 0.1 + 100 * sigma
    X, y = np.vstack([X, far]), np.append(y, np.full(30, -1))
    with forced("factorise"):
        clf = ManifoldKNNClassifier(vote=vote, sigma=sigma).fit(X, y)
    assert not clf.unreached_.any()
    assert len(np.unique(clf.transduction_[-30:])) == 1


@pytest.mark.parametrize("vote", ["classes", "neighbors"])
def test_islands_are_unreached(vote):
    X, y, _ = many_labels()
    X, y = np.vstack([X, X[:30] * 0.1 + 1e3]), np.append(y, np.full(30, -1))
    clf = ManifoldKNNClassifier(vote=vote, graph="union", on_unreached="abstain")
    with (
        forced("factorise"),
        pytest.warns(UserWarning, match="30 of 930 rows are connected to no labelled sample"),
    ):
        clf.fit(X, y)
    assert clf.unreached_.tolist() == [False] * 900 + [True] * 30
