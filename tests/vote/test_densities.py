"""Class densities against section 2.5 of the design, written as dense loops."""

from contextlib import nullcontext
from itertools import product
from unittest import mock

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import make_blobs

import oracles
from manifoldknn import ManifoldKNNClassifier, constrained_graph
from manifoldknn.model.fitted import fitted_recipe
from manifoldknn.vote.densities import DensityWalk, class_densities
from manifoldknn.vote.hidden import hidden_groups
from manifoldknn.vote.shared_graph import log_inflow, ready_graph
from manifoldknn.walk import aggregates
from manifoldknn.walk.choose import Way
from strategies import WAYS, built_graph, forced, links_for, problems, recipe_of

GRAPHS = ("pruned", "union", "full")

pytestmark = pytest.mark.filterwarnings("ignore::manifoldknn.exceptions.ManifoldKNNWarning")


def dense(W):
    return W.toarray() if sparse.issparse(W) else W


def assert_close(found, expected, reach=np.inf, atol=1e-6):
    """Compare log f: each by itself as far as `reach`, beyond beside the largest of its row."""
    top = expected.max(axis=1, keepdims=True)
    np.testing.assert_array_equal(np.isneginf(found.max(axis=1)), np.isneginf(top[:, 0]))
    top = np.where(np.isneginf(top), 0.0, top)
    beside = np.exp(found - top), np.exp(expected - top)
    np.testing.assert_allclose(*beside, rtol=0, atol=atol)
    if np.isinf(reach):
        np.testing.assert_array_equal(np.isneginf(found), np.isneginf(expected))
    there = np.isfinite(expected) & (expected - top > -reach)
    np.testing.assert_allclose(found[there], expected[there], rtol=2e-7, atol=atol)


def fitted(X, y, how, **links):
    """Fit, unless W of the oracle would vanish, with some label hidden: see `exact_densities`."""
    clf = ManifoldKNNClassifier(tol=1e-9, **how).fit(X, y, **links)
    logs = fitted_recipe(clf).constrained(np.full(len(y), -1)).log_weights
    logs = logs.data if sparse.issparse(logs) else logs[np.isfinite(logs)]
    assume(logs.min(initial=0.0) > -600)
    return clf


def assert_like_oracle(clf, true, y):
    assert clf.alpha_ == pytest.approx(true.alpha, rel=1e-12)
    np.testing.assert_allclose(clf.class_prior_, true.prior, rtol=1e-12)
    reached = true.f.max(axis=1) > 0
    np.testing.assert_array_equal(clf.unreached_, ~reached)
    with np.errstate(divide="ignore"):
        found = clf.fitted_.walk.similarities.logarithms()
        assert_close(found, np.log(true.f), clf.fitted_.walk.reach)
    near = clf.sharpness_ == pytest.approx(true.sharpness, rel=1e-2)
    if not near and len(true.hidden_rows):  # then on another hill that is no lower
        log = np.log([clf.sharpness_, true.sharpness])
        hidden = true.hidden_f, y[true.hidden_rows], true.prior, true.usual
        mine, theirs = (oracles.posterior(*hidden, point) for point in log)
        near = mine >= theirs
    assert near
    usual = oracles.usual_density(true.hidden_f, y[true.hidden_rows])
    b = clf.fitted_.belonging.values.values
    p = oracles.probabilities(true.f, true.prior, clf.sharpness_)
    p = oracles.doubted(p, true.f, usual, b)[reached]
    np.testing.assert_allclose(clf.label_distributions_[reached], p, rtol=1e-5)
    top = np.sort(np.c_[np.zeros(len(p)), true.p[reached]], axis=1)[:, -2:]
    sure = (top[:, 1] > top[:, 0] + 1e-6) | (y[reached] >= 0)
    label = np.where(y >= 0, y, true.p.argmax(axis=1))[reached]
    np.testing.assert_array_equal(clf.transduction_[reached][sure], label[sure])
    assert clf.calibrated_ == bool(((true.hidden_f > 0).sum(axis=1) > 1).any())
    if len(true.hidden_rows):
        found = clf.hidden_labels_
        np.testing.assert_array_equal(found.rows, true.hidden_rows)
        np.testing.assert_array_equal(found.given, y[true.hidden_rows])
        shares = oracles.probabilities(true.hidden_f, true.prior, clf.sharpness_)
        shares = oracles.doubted(shares, true.hidden_f, usual, b[true.hidden_rows])
        np.testing.assert_allclose(found.shares, shares, rtol=1e-5)
    else:
        assert clf.hidden_labels_ is None


def groups_of(y):
    return oracles.folds(y) if y.max() > 0 else []


@pytest.mark.parametrize("n_labeled", [0, 1, 4, 30, 2500])
def test_labels_are_dealt_as_the_design_says(n_labeled):
    rng = np.random.default_rng(n_labeled)
    y = np.full(3 * n_labeled + 2, -1)
    y[rng.choice(len(y), n_labeled, replace=False)] = rng.integers(0, 4, n_labeled)
    groups = [rows.tolist() for rows in hidden_groups(y)]
    assert groups == oracles.folds(y)
    assert len(groups) == {0: 0, 1: 0, 2500: 2}.get(n_labeled, len(groups))


@settings(max_examples=150, deadline=None)
@given(
    st.data(),
    problems(max_samples=40, ties=False),
    st.sampled_from(GRAPHS),
    st.sampled_from([2, 5]),
    st.sampled_from(["equal", "labeled", "vector"]),
    st.sampled_from(WAYS),
)
def test_equals_the_loops_of_the_design(data, problem, graph, k, prior, way):
    """From X and y to answers, nothing shared; with links."""
    assert_as_designed(data, problem, graph, k, prior, forced(way))


@settings(max_examples=60, deadline=None)
@given(
    st.data(),
    problems(max_samples=40, ties=False),
    st.sampled_from(["pruned", "union"]),
    st.sampled_from([2, 5]),
    st.sampled_from(["equal", "labeled", "vector"]),
)
def test_a_device_equals_the_loops_of_the_design(data, problem, graph, k, prior):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    assert_as_designed(data, problem, graph, k, prior, nullcontext(), device="torch:cpu")


def assert_as_designed(data, problem, graph, k, prior, way, **more):
    X, y = problem.X, problem.y
    k = min(k, len(X) - 1)
    must, cannot = data.draw(links_for(y)) if data.draw(st.booleans()) else ((), ())
    if prior == "vector":
        prior = list(range(1, y.max() + 2))
    how = {"k": k, "sigma": 0.7, "depth": 2, "theta": 0.1}

    def weights(codes, hidden=()):
        kept = ([p for p in pairs if not set(p) & set(hidden)] for pairs in (must, cannot))
        links = dict(zip(("must", "cannot"), kept))
        return oracles.constrained_graph(X, codes, graph=graph, **how, **links)

    parameters = {"graph": graph, "graph_neighbors": k, "sigma": 0.7, "class_prior": prior, **more}
    with way:
        clf = fitted(X, y, parameters, must_link=must, cannot_link=cannot)
    true = oracles.densities_vote(weights, y, groups_of(y), class_prior=prior)
    assert_like_oracle(clf, true, y)
    free = np.flatnonzero((y < 0) & (true.f.max(axis=1) > 0))
    if free.size:  # who is asked again is answered as before
        shares = clf.label_distributions_[free]  # which are the oracle's
        np.testing.assert_allclose(clf.predict_proba(X[free]), shares, rtol=1e-5)
        np.testing.assert_array_equal(clf.predict(X[free]), clf.transduction_[free])


@settings(max_examples=60, deadline=None)
@given(problems(max_samples=60), st.sampled_from(GRAPHS), st.sampled_from([0.5, 0.99, 0.9997]))
def test_equals_the_loops_on_duplicates_and_grids(problem, graph, alpha):
    """Where neighbours tie W is taken as it is; the way is the one that would be taken."""
    X, y = problem.X, problem.y
    how = {"graph": graph, "graph_neighbors": 4, "sigma": 0.6}
    clf = fitted(X, y, how | {"alpha": alpha})
    true = oracles.densities_vote(
        lambda codes, _=(): dense(constrained_graph(X, codes, **how)), y, groups_of(y), alpha_=alpha
    )
    assert_like_oracle(clf, true, y)


def exact_densities(graph, codes, alpha):
    """log f in numbers without limits, from log W; -inf for 0."""
    n = graph.n_samples
    logs = np.full((n, n), -np.inf)
    if graph.is_sparse:
        at = graph.log_weights.tocoo()
        logs[at.row, at.col] = at.data
        tied = (codes[:, None] >= 0) & (codes[:, None] == codes) & ~np.eye(n, dtype=bool)
        logs[tied] = 0.0
    else:
        logs = graph.log_weights
    with mpmath.workdps(40):
        W = [[mpmath.exp(v) if np.isfinite(v) else mpmath.mpf(0) for v in row] for row in logs]
        f = oracles.class_densities(
            oracles.walk_matrix(W, mpmath.mpf(alpha)), codes, codes.max() + 1
        )
        return np.array([[float(mpmath.log(v)) if v > 0 else -np.inf for v in row] for row in f])


def with_outliers(seed, n=16, n_far=4, n_labeled=5):
    """Rows in a crowd, and some a thousand times as far, alone and in pairs, labelled and not."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    X[:n_far] *= 1e3
    X[n_far] = X[0] + 0.1
    y = np.full(n, -1)
    rows = rng.choice(n, n_labeled, replace=False)
    y[rows] = np.arange(n_labeled) % 2
    return X, y


@pytest.mark.parametrize(("graph", "way"), [*product(("pruned", "union"), WAYS), ("full", "dense")])
def test_outliers_a_thousand_times_as_far(graph, way):
    """Degrees of e^-1000000 neither drown the sums nor the rows that hang on nothing else."""
    for seed in range(4):
        X, y = with_outliers(seed)
        with forced(way):
            clf = ManifoldKNNClassifier(graph=graph, graph_neighbors=3, sigma=0.7, tol=1e-9)
            clf.fit(X, y)
        expected = exact_densities(clf.fitted_.graph, y, clf.alpha_)
        assert_close(clf.fitted_.walk.similarities.logarithms(), expected, clf.fitted_.walk.reach)


def walked_f(graph, y, alpha, way, n_jobs=1, **options):
    labeled = np.flatnonzero(y >= 0)
    stay = np.union1d(labeled, options.get("rows", []))
    return class_densities(
        ready_graph(graph, stay.astype(int), alpha, way, n_jobs=n_jobs),
        labeled,
        y[labeled],
        y.max() + 1,
        alpha,
        **{"tol": 1e-9, "max_iter": 1000, "reach": np.inf} | options,
    )


def crowd(seed, n=400, d=3, n_classes=3, per_class=3, graph="pruned"):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.full(n, -1)
    y[rng.choice(n, n_classes * per_class, replace=False)] = np.repeat(range(n_classes), per_class)
    return X, y, recipe_of(X, graph).constrained(y)


def ways(graph):
    with mock.patch.object(aggregates, "_COARSEST", 8):
        levels = aggregates.aggregates(graph.log_weights)
    assert len(levels) > 1
    return {
        "factorise": Way("factorise"),
        "iterate": Way("iterate"),
        "levels": Way("iterate", levels),
    }


@pytest.mark.parametrize("alpha", [0.5, 0.99, 0.9997])
def test_all_ways_agree_and_reach_the_accuracy_asked_for(alpha):
    _, y, graph = crowd(0)
    f = oracles.class_densities(oracles.walk_matrix(dense(graph.to_matrix()), alpha), y, 3)
    for (name, way), tol in product(ways(graph).items(), (1e-9, 1e-3)):
        found = walked_f(graph, y, alpha, way, tol=tol)
        assert found.converged
        error = np.abs(np.exp(found.log_values) / f - 1)
        assert error.max() <= tol, name


def test_levels_save_iterations():
    _, y, graph = crowd(1, n=3000)
    way = ways(graph)
    assert (
        walked_f(graph, y, 0.9997, way["levels"], tol=1e-3).n_iter
        < 0.6 * walked_f(graph, y, 0.9997, way["iterate"], tol=1e-3).n_iter
    )


@pytest.mark.parametrize("way", WAYS)
def test_threads_change_no_bit_and_some_rows_are_those_of_all(way):
    _, y, graph = crowd(2, n=2500, graph="union")
    way = ways(graph)[way]
    one, two = (walked_f(graph, y, 0.999, way, n_jobs=jobs) for jobs in (1, 2))
    np.testing.assert_array_equal(one.log_values, two.log_values)
    np.testing.assert_array_equal(one.log_sums, two.log_sums)
    rows = np.array([2, 1700, 5])
    some = walked_f(graph, y, 0.999, way, rows=rows)
    assert_close(some.log_values, one.log_values[rows])


@pytest.mark.parametrize("way", ["iterate", "levels"])
def test_a_good_start_saves_work_and_a_bad_one_does_no_harm(way):
    _, y, graph = crowd(3, n=1500)
    way = ways(graph)[way]
    fresh = walked_f(graph, y, 0.999, way, tol=1e-6)
    again = walked_f(graph, y, 0.999, way, tol=1e-6, start=fresh.log_values)
    assert again.n_iter < 0.7 * fresh.n_iter
    assert_close(again.log_values, fresh.log_values)
    nonsense = np.random.default_rng(0).normal(size=fresh.log_values.shape) * 300
    nonsense[::7] = -np.inf
    assert_close(
        walked_f(graph, y, 0.999, way, tol=1e-6, start=nonsense).log_values, fresh.log_values
    )


@settings(max_examples=40, deadline=None)
@given(problem=problems(max_samples=40), graph=st.sampled_from(GRAPHS))
def test_inflow_is_the_column_sum_of_p(problem, graph):
    built = built_graph(problem, graph)
    W = dense(built.to_matrix())
    degrees = np.where(W.any(axis=1), W.sum(axis=1), 1.0)
    found = np.exp(log_inflow(built, built.log_degrees()))
    np.testing.assert_allclose(found, (W / degrees[:, None]).sum(axis=0), rtol=1e-9, atol=1e-200)


def test_a_class_without_labels_is_nowhere():
    _, y, graph = crowd(4)
    labeled = np.flatnonzero(y >= 0)
    ready = ready_graph(graph, labeled, 0.9, Way("iterate"))
    walk = DensityWalk(ready, labeled, 0.9, tol=1e-6, max_iter=1000)
    some = np.flatnonzero(y[labeled] != 1)
    found = walk.densities(some, y[labeled][some], 3)
    assert np.isneginf(found.log_values[:, 1]).all()
    whole = walk.densities(np.arange(len(labeled)), y[labeled], 3)
    assert_close(found.log_values[:, [0, 2]], whole.log_values[:, [0, 2]])


def test_an_unfinished_walk_is_told():
    _, y, graph = crowd(5)
    assert not walked_f(graph, y, 0.9997, Way("iterate"), max_iter=2).converged


@pytest.mark.parametrize("way", WAYS)
def test_classes_far_apart_are_as_sharp_whatever_the_way(way):
    """The second class has e^-100 of the first, and the sharpness and all shares depend on it."""
    X, truth = make_blobs(150, 8, centers=4, cluster_std=0.5, random_state=0)
    y = np.where(np.arange(150) % 8 == 0, truth, -1)
    how = {"graph": "pruned", "graph_neighbors": 10, "sigma": 1.0}
    true = oracles.densities_vote(
        lambda codes, _=(): dense(constrained_graph(X, codes, **how)), y, groups_of(y)
    )
    assert 2 / true.usual > 100
    with forced(way):
        clf = ManifoldKNNClassifier(**how).fit(X, y)
    assert_close(clf.fitted_.walk.similarities.logarithms(), np.log(true.f), atol=1e-3)
    assert clf.sharpness_ == pytest.approx(true.sharpness, rel=1e-2)
    usual = oracles.usual_density(true.hidden_f, y[true.hidden_rows])
    p = oracles.doubted(true.p, true.f, usual, clf.fitted_.belonging.values.values)
    # What doubts a row, the density that is usual, comes from hidden labels: right to some percent
    # where classes stand apart.
    np.testing.assert_allclose(clf.label_distributions_, p, rtol=1e-2, atol=5e-3)
