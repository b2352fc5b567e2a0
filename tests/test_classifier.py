"""The classifier as a whole: against plain dense algebra, and in the hands of its users."""

import io
import pickle
import tracemalloc
from contextlib import nullcontext
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import oracles
from frames import NAMED_POLARS
from manifoldknn import (
    ManifoldKNNClassifier,
    as_published,
    constrained_graph,
    simplex_weights,
)
from manifoldknn.device import steps as device_steps
from manifoldknn.exceptions import (
    EverythingLabeledWarning,
    GraphSizeWarning,
    OneClassWarning,
    UnreachedError,
    UnreachedWarning,
)
from manifoldknn.search.neighbors import METRICS
from manifoldknn.walk.choose import Way
from strategies import Problem, forced, problems

GRAPHS = ("pruned", "union", "full")
VOTES = ("classes", "neighbors")
EVERYONE = 1000  # more than there are labelled samples anywhere here
# Random problems may have one class, no unlabelled row, or islands.
any_problem = pytest.mark.filterwarnings("ignore::manifoldknn.exceptions.ManifoldKNNWarning")


def clouds(n=90, d=3, n_classes=3, per_class=3, seed=0, gap=2.5):
    """Overlapping clouds, y with a few labels, and the truth."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % n_classes
    X = rng.normal(size=(n, d)) + gap * np.eye(max(d, n_classes))[truth, :d]
    y = np.where(np.arange(n) < per_class * n_classes, truth, -1)
    return X, y, truth


def dense(W):
    return W.toarray() if sparse.issparse(W) else W


def all_weights(clf):
    """w̄ of all labelled samples, in the order of `labeled_indices_`; needs n_neighbors >= l."""
    weights, rows = clf.kneighbors()
    out = np.empty_like(weights)
    np.put_along_axis(out, np.searchsorted(clf.labeled_indices_, rows), weights, axis=1)
    return out


def plain_weights(clf, X, y):
    """½(P + Pᵀ) between all rows and the labelled ones, from a plain inverse; and degrees."""
    W = dense(
        constrained_graph(
            X,
            y,
            graph=clf.graph,
            graph_neighbors=min(clf.graph_neighbors, len(X) - 1),
            sigma=clf.sigma_,
            tree_depth=clf.tree_depth,
            theta=clf.theta,
        )
    )
    return oracles.walk_weights(W, clf.alpha_)[:, clf.labeled_indices_], W.sum(axis=1)


def clear_votes(weights, k):
    """Rows whose k voters are the same under a change of the weights by 1e-5."""
    ordered = -np.sort(-weights, axis=1)
    if k >= weights.shape[1]:
        return np.ones(len(weights), dtype=bool)
    return ordered[:, k - 1] - ordered[:, k] > 1e-5 * ordered[:, 0]


def margins(shares):
    ordered = np.sort(shares, axis=1)
    return ordered[:, -1] - ordered[:, -2] if shares.shape[1] > 1 else np.ones(len(shares))


# The weights, the vote and the labels equal plain dense algebra.


def assert_equals_plain_inverse(problem, k, **parameters):
    X, y = problem.X, problem.y
    make = partial(ManifoldKNNClassifier, vote="neighbors", tol=1e-9, **parameters)
    clf = make(n_neighbors=EVERYONE).fit(X, y)
    expected, degrees = plain_weights(clf, X, y)
    # Float64 holds no degree of a row this far out; the library works with logarithms there.
    resolved = degrees > 1e-290
    if not resolved[clf.labeled_indices_].all():
        reject()
    # A plain inverse has absolute errors of about 1e-15/(1 - α): of smaller rows it has no six
    # digits. Those are compared with higher precision in test_peeling.py.
    largest = expected.max(axis=1)
    visible = resolved & (largest > 1e-8)
    difference = np.abs(all_weights(clf) - expected)[visible] / largest[visible, None]
    assert difference.max() <= 1e-6

    clf = make(n_neighbors=k).fit(X, y)
    shares, winners = oracles.vote(expected, y[clf.labeled_indices_], k, len(clf.classes_))
    clear = visible & clear_votes(expected, k)
    np.testing.assert_allclose(clf.label_distributions_[clear], shares[clear], atol=1e-5)
    clear &= (margins(shares) > 1e-4) & (y < 0)
    assert (clf.transduction_[clear] == winners[clear]).all()
    assert (clf.transduction_[y >= 0] == y[y >= 0]).all()


@any_problem
@settings(max_examples=100, deadline=None)
@given(
    problem=problems(),
    k=st.sampled_from([1, 3, 5, EVERYONE]),
    graph=st.sampled_from(GRAPHS),
    graph_neighbors=st.sampled_from([2, 5, 10]),
    tree_depth=st.sampled_from([0, 2]),
    sigma=st.sampled_from(["auto", 0.5, 3.0]),
    alpha=st.sampled_from([0.5, 0.99]),
)
def test_weights_and_labels_equal_the_plain_inverse(problem, k, **parameters):
    assert_equals_plain_inverse(problem, k, **parameters)


@any_problem
@settings(max_examples=40, deadline=None)
@given(
    problem=problems(max_samples=300),
    graph=st.sampled_from(GRAPHS),
    tree_depth=st.sampled_from([0, 2]),
)
def test_weights_and_labels_equal_the_plain_inverse_on_more_rows(problem, graph, tree_depth):
    assert_equals_plain_inverse(problem, 5, graph=graph, tree_depth=tree_depth)


@pytest.mark.parametrize("graph", GRAPHS)
def test_as_many_rows_as_a_plain_inverse_can_take(graph):
    """300 rows in three islands, a third of them repeated, classes of 1, 3 and 8 labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) + 4.0 * rng.integers(0, 3, 300)[:, None]
    X[200:] = X[rng.integers(0, 200, 100)]
    y = np.full(300, -1)
    y[rng.choice(300, 12, replace=False)] = [0, 1, 1, 1] + [2] * 8
    assert_equals_plain_inverse(Problem(X, y), 3, graph=graph)


@pytest.mark.parametrize("seed", range(3))
def test_as_published_is_the_paper_step_by_step(seed):
    """Full graph, tree, (I - 0.99P)⁻¹ and the five heaviest labels, all from the loops."""
    X, y, _ = clouds(seed=seed)
    clf = as_published(sigma=0.8, graph_neighbors=5).fit(X, y)
    W = oracles.constrained_graph(X, y, graph="full", k=5, sigma=0.8, depth=2, theta=0.1)
    weights = oracles.walk_weights(W, 0.99)[:, :9]
    shares, labels = oracles.vote(weights, y[:9], 5, 3)
    clear = clear_votes(weights, 5)
    assert clear.sum() > 80
    np.testing.assert_allclose(clf.label_distributions_[clear], shares[clear], atol=1e-6)
    assert (clf.transduction_[9:] == labels[9:])[clear[9:]].mean() > 0.98
    assert as_published(vote="classes", alpha=0.5).get_params()["alpha"] == 0.5


# What every fit must hold.


class StatePickler(pickle.Pickler):
    """Leaves out scikit-learn's search, whose trees count the queries they have answered."""

    def persistent_id(self, obj):
        return "search" if isinstance(obj, NearestNeighbors) else None


def state(clf):
    stream = io.BytesIO()
    StatePickler(stream).dump(clf)
    return stream.getvalue()


@any_problem
@settings(max_examples=100, deadline=None)
@given(
    problem=problems(),
    graph=st.sampled_from(GRAPHS),
    k=st.sampled_from([1, 5, EVERYONE]),
    on_unreached=st.sampled_from(["nearest", "abstain"]),
    vote=st.sampled_from(VOTES),
)
def test_predicting_fitted_rows_repeats_the_fit(problem, graph, k, on_unreached, vote):
    X, y = problem.X, problem.y
    clf = ManifoldKNNClassifier(k, vote=vote, graph=graph, on_unreached=on_unreached).fit(X, y)
    _, inverse, counts = np.unique(X, axis=0, return_inverse=True, return_counts=True)
    alone = (y < 0) & (counts[inverse.ravel()] == 1)
    assume(alone.any())
    before = state(clf)
    labels, shares = clf.predict(X[alone]), clf.predict_proba(X[alone])
    weights = clf.kneighbors(X[alone])[0]
    assert state(clf) == before
    assert (labels == clf.transduction_[alone]).all()
    np.testing.assert_array_equal(shares, clf.label_distributions_[alone])
    # Where classes vote, rows and labels are two ends to walk from.
    close = {"rtol": 1e-9} if vote == "neighbors" else {"atol": 5e-3}
    np.testing.assert_allclose(weights, clf.kneighbors()[0][alone], **close)


@any_problem
@settings(max_examples=100, deadline=None)
@given(
    problem=problems(),
    graph=st.sampled_from(GRAPHS),
    vote=st.sampled_from(VOTES),
    seed=st.integers(0, 99),
)
def test_labels_are_classes_and_shares_sum_to_one(problem, graph, vote, seed):
    X, y = problem.X, problem.y
    clf = ManifoldKNNClassifier(graph=graph, vote=vote).fit(X, y)
    Q = np.random.default_rng(seed).normal(scale=5, size=(20, X.shape[1]))
    for labels, shares in (
        (clf.transduction_, clf.label_distributions_),
        (clf.predict(Q), clf.predict_proba(Q)),
    ):
        assert set(labels.tolist()) <= set(clf.classes_.tolist())
        assert shares.shape == (len(labels), len(clf.classes_))
        assert (shares >= 0).all()
        np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
    assert clf.classes_.tolist() == sorted(set(y[y >= 0].tolist()))
    assert clf.labeled_indices_.tolist() == np.flatnonzero(y >= 0).tolist()
    assert clf.transduction_.dtype == y.dtype


@any_problem
@settings(max_examples=60, deadline=None)
@given(
    problem=problems(ties=False),
    graph=st.sampled_from(GRAPHS),
    vote=st.sampled_from(VOTES),
    random=st.randoms(use_true_random=False),
)
def test_permuting_rows_permutes_answers(problem, graph, vote, random):
    X, y = problem.X, problem.y
    order = np.array(random.sample(range(len(X)), len(X)))
    # Which labels are hidden together depends on their order, so the sharpness is given.
    clf = ManifoldKNNClassifier(EVERYONE, vote=vote, graph=graph, tol=1e-9, sharpness=0.7)
    answer, permuted = clone(clf).fit(X, y), clone(clf).fit(X[order], y[order])
    assert permuted.sigma_ == pytest.approx(answer.sigma_, rel=1e-12)
    expected = answer.label_distributions_[order]
    np.testing.assert_allclose(permuted.label_distributions_, expected, atol=1e-5)
    clear = margins(expected) > 1e-4
    assert (permuted.transduction_[clear] == answer.transduction_[order][clear]).all()
    assert (permuted.unreached_ == answer.unreached_[order]).all()


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("vote", VOTES)
def test_permuting_rows_permutes_voters(graph, seed, vote):
    X, y, _ = clouds(seed=seed)
    order = np.random.default_rng(seed).permutation(len(X))
    clf = ManifoldKNNClassifier(3, vote=vote, graph=graph, tol=1e-9)
    weights, rows = clone(clf).fit(X, y).kneighbors()
    permuted_weights, permuted_rows = clone(clf).fit(X[order], y[order]).kneighbors()
    np.testing.assert_allclose(permuted_weights, weights[order], rtol=1e-6)
    assert (order[permuted_rows] == rows[order]).all()


# New rows.


def best_combination(x, neighbors):
    """min ‖x - Σ z_i n_i‖² over the simplex, by trying every support there is."""
    k, best, answer = len(neighbors), np.inf, None
    for size in range(1, k + 1):
        for support in map(list, combinations(range(k), size)):
            base, edges = neighbors[support[0]], neighbors[support[1:]] - neighbors[support[0]]
            along = np.linalg.lstsq(edges.T, x - base, rcond=None)[0] if size > 1 else np.empty(0)
            z = np.zeros(k)
            z[support] = [1 - along.sum(), *along]
            loss = np.sum((x - z @ neighbors) ** 2)
            if z.min() >= 0 and loss < best:
                best, answer = loss, z
    return answer


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("k", [1, 4, EVERYONE])
def test_new_rows_equal_a_literal_reconstruction(graph, k):
    # No more neighbours than dimensions: otherwise several combinations reach a row.
    X, y, _ = clouds(n=80, d=6, n_classes=3, per_class=4)
    Q = np.random.default_rng(1).normal(scale=1.5, size=(25, 6)) + 0.8
    how = {"graph": graph, "graph_neighbors": 6, "tol": 1e-9}
    clf = ManifoldKNNClassifier(k, vote="neighbors", **how).fit(X, y)
    known, _ = plain_weights(clf, X, y)
    weights = np.empty((25, 12))
    for i, x in enumerate(Q):
        distances = np.sqrt(((X - x) ** 2).sum(axis=1))
        nearest = sorted(range(80), key=lambda j, d=distances: (d[j], j))[:6]
        weights[i] = best_combination(x, X[nearest]) @ known[nearest]
    shares, winners = oracles.vote(weights, y[:12], k, 3)
    clear = clear_votes(weights, k)
    assert clear.sum() > 20
    np.testing.assert_allclose(clf.predict_proba(Q)[clear], shares[clear], atol=1e-5)
    assert (clf.predict(Q)[clear] == winners[clear]).all()
    kept = min(k, 12)
    np.testing.assert_allclose(clf.kneighbors(Q)[0], -np.sort(-weights)[:, :kept], rtol=1e-5)
    found = np.take_along_axis(weights, clf.kneighbors(Q)[1], axis=1)  # rows 0 to 11 are labelled
    np.testing.assert_allclose(found, -np.sort(-weights)[:, :kept], rtol=1e-5)


def test_new_rows_combine_the_densities_of_their_neighbours():
    X, y, _ = clouds(n=80, d=6, n_classes=3, per_class=4)
    Q = np.random.default_rng(1).normal(scale=1.5, size=(25, 6)) + 0.8
    clf = ManifoldKNNClassifier(graph_neighbors=6, tol=1e-9, class_prior=[1, 2, 3]).fit(X, y)
    W = dense(constrained_graph(X, y, graph_neighbors=6, sigma=clf.sigma_))
    f = oracles.class_densities(oracles.walk_matrix(W, clf.alpha_), y, 3)
    new = np.empty((25, 3))
    for i, x in enumerate(Q):
        nearest = np.argsort(((X - x) ** 2).sum(axis=1))[:6]
        new[i] = best_combination(x, X[nearest]) @ f[nearest]
    p = oracles.probabilities(new, np.array([1, 2, 3]) / 6, clf.sharpness_)
    belonging = [clf.fitted_.belonging.of_new(*made_of(x, X)) for x in Q]
    expected = oracles.doubted(p, new, clf.fitted_.vote.usual, np.concatenate(belonging))
    np.testing.assert_allclose(clf.predict_proba(Q), expected, rtol=1e-5)
    assert (expected < p).any()
    assert (clf.predict(Q) == p.argmax(axis=1)).all()


def made_of(x, X):
    """Convex weights, rows and the distance to the nearest of them, for one new row."""
    away = np.sqrt(((X - x) ** 2).sum(axis=1))
    nearest = np.argsort(away)[:6]
    return best_combination(x, X[nearest])[None], nearest[None], away[nearest[:1]]


def test_more_labelled_samples_than_voters():
    X, y, truth = clouds(n=400, per_class=40)
    clf = ManifoldKNNClassifier(3, vote="neighbors").fit(X, y)
    unlabelled = np.flatnonzero(y < 0)
    assert (clf.predict(X[unlabelled]) == clf.transduction_[unlabelled]).all()
    assert clf.kneighbors()[0].shape == (400, 3)
    exact, _ = plain_weights(clf, X, y)
    shares, _ = oracles.vote(exact, y[clf.labeled_indices_], 3, 3)
    clear = clear_votes(exact, 3)
    np.testing.assert_allclose(clf.label_distributions_[clear], shares[clear], atol=1e-3)
    assert np.mean(clf.predict(X + 0.01) == truth) > 0.85


# Class prior.


@pytest.mark.parametrize("vote", VOTES)
def test_class_prior_multiplies_what_classes_have(vote):
    X, y, _ = clouds(n=91)
    y[:5] = -1  # 1, 1 and 2 labels
    Q = X[20:40] + 0.1
    clf = ManifoldKNNClassifier(vote=vote, sharpness=0.5, tol=1e-9)
    plain = clone(clf).fit(X, y)
    epsilon = oracles.EPSILON if vote == "classes" else 0.0
    for class_prior in ("labeled", np.array([0.2, 0.3, 0.5]), [4, 6, 10], [4e307, 6e307, 1e308]):
        fitted = clone(clf).set_params(class_prior=class_prior).fit(X, y)
        prior = np.array([0.2, 0.3, 0.5])
        if isinstance(class_prior, str):
            prior = oracles.prior("labeled", y, 3)
        np.testing.assert_allclose(fitted.class_prior_, prior, rtol=1e-12)
        for found, before in (
            (fitted.label_distributions_, plain.label_distributions_),
            (fitted.predict_proba(Q), plain.predict_proba(Q)),
        ):
            scores = (before - epsilon / 3) * prior
            expected = scores / scores.sum(axis=1, keepdims=True)
            np.testing.assert_allclose(found, (1 - epsilon) * expected + epsilon / 3, rtol=1e-9)
        assert (fitted.predict(Q) == fitted.predict_proba(Q).argmax(axis=1)).all()


@pytest.mark.parametrize("vote", VOTES)
def test_class_prior_moves_answers_towards_the_wanted_shares(vote):
    X, y, _ = clouds()
    counts = [
        np.bincount(
            ManifoldKNNClassifier(vote=vote, sharpness=3.0, class_prior=prior)
            .fit(X, y)
            .transduction_
        )
        for prior in ([1000, 1, 1], [1, 1, 1], [1, 1, 1000])
    ]
    assert counts[0][0] > counts[1][0] > counts[2][0]
    assert counts[0][2] < counts[1][2] < counts[2][2]


@any_problem
def test_class_prior_where_nothing_is_unlabelled_or_reached():
    X, _, truth = clouds()
    clf = ManifoldKNNClassifier(class_prior="labeled").fit(X, truth)
    assert (clf.transduction_ == truth).all()
    X, y = with_island()
    clf = ManifoldKNNClassifier(graph="union", class_prior=[0.7, 0.3]).fit(X, y)
    np.testing.assert_allclose(clf.label_distributions_.sum(axis=1), 1.0)


# Sharpness and hidden labels.


def test_one_label_per_class_leaves_the_confidence_a_guess():
    X, y, _ = clouds(per_class=1)
    clf = ManifoldKNNClassifier().fit(X, y)
    assert not clf.calibrated_
    assert clf.hidden_labels_ is None
    logs = np.sort(clf.fitted_.walk.similarities.logs[y < 0].astype(float), axis=1)
    assert clf.sharpness_ == pytest.approx(2 / np.median(logs[:, 2] - logs[:, 1]), rel=1e-9)


def test_a_given_sharpness_hides_nothing_and_changes_no_answer():
    X, y, _ = clouds()
    learned = ManifoldKNNClassifier().fit(X, y)
    assert learned.calibrated_
    assert 0.5 < learned.hidden_labels_.accuracy <= 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("manifoldknn.classifier.hidden_groups", lambda *_: pytest.fail("hid"))
        given = ManifoldKNNClassifier(sharpness=0.01).fit(X, y)
    assert given.sharpness_ == 0.01
    assert not given.calibrated_
    assert given.hidden_labels_ is None
    assert (given.transduction_ == learned.transduction_).all()
    assert given.label_distributions_.max() < learned.label_distributions_.max()


def test_more_labels_of_one_class_do_not_make_it_win():
    """What the vote is for: 30 more labels, all right, all of one class."""
    X, y, truth = clouds(n=600, gap=2.5)
    few = ManifoldKNNClassifier().fit(X, y)
    more = y.copy()
    more[np.flatnonzero((truth == 0) & (y < 0))[:30]] = 0
    many = ManifoldKNNClassifier().fit(X, more)
    paper = ManifoldKNNClassifier(vote="neighbors").fit(X, more)
    accuracies = [np.mean((clf.transduction_ == truth)[more < 0]) for clf in (few, many, paper)]
    assert accuracies[1] > accuracies[0] - 0.02
    assert accuracies[1] > accuracies[2] + 0.02


# Bad input: refused before heavy work, with a message that says what to do.


@pytest.fixture
def no_search(monkeypatch):
    """Fail the test if the neighbour search, the first heavy step, is reached."""

    def reached(*_, **__):
        pytest.fail("the neighbour search was reached")

    monkeypatch.setattr("manifoldknn.search.neighbors.NearestNeighbors", reached)


def changed(X, value):
    X = X.copy()
    X[5, 1] = value
    return X


PLAIN_X, PLAIN_Y, _ = clouds()
BAD_INPUT = {
    "NaN": (changed(PLAIN_X, np.nan), PLAIN_Y, "contains NaN.*TableEncoder"),
    "words": (PLAIN_X.astype(str).astype(object) + "x", PLAIN_Y, "could not conv.*TableEncoder"),
    "infinity": (changed(PLAIN_X, np.inf), PLAIN_Y, "contains infinity"),
    "one dimension": (PLAIN_X[:, 0], PLAIN_Y, "Expected 2D array.*[Rr]eshape your data"),
    "three dimensions": (PLAIN_X[:, :, None], PLAIN_Y, "dim 3.*dim <= 2 is required"),
    "no rows": (PLAIN_X[:0], PLAIN_Y[:0], r"0 sample\(s\).*minimum of 2 is required"),
    "no columns": (PLAIN_X[:, :0], PLAIN_Y, r"0 feature\(s\).*minimum of 1 is required"),
    "one row": (PLAIN_X[:1], PLAIN_Y[:1], r"1 sample\(s\).*minimum of 2 is required"),
    "y too short": (PLAIN_X, PLAIN_Y[:-1], r"90 rows and 89 labels\. Pass one entry of y per row"),
    "no y": (PLAIN_X, None, "requires y to be passed.*one entry per row"),
    "nothing labelled": (PLAIN_X, np.full(90, -1), "no labelled sample.*Label at least one"),
    "only None": (PLAIN_X, [None] * 90, "no labelled sample.*Label at least one"),
    "identical rows": (np.ones((90, 3)), PLAIN_Y, "rows of X are identical.*check how X was made"),
    "values too large": (changed(PLAIN_X, 1e120), PLAIN_Y, "too large.*rescale the features"),
    "mixed labels": (PLAIN_X, [1, "a"] * 5 + [None] * 80, "mixes label types.*Convert to one type"),
    "mixed with booleans": (PLAIN_X, [True, 2] + [None] * 88, "mixes label types"),
    "fractional labels": (PLAIN_X, np.where(PLAIN_Y < 0, -1, PLAIN_Y + 0.5), "[Uu]nknown label"),
}  # fmt: skip


@pytest.mark.usefixtures("no_search")
@pytest.mark.parametrize(("X", "y", "message"), BAD_INPUT.values(), ids=BAD_INPUT.keys())
def test_bad_input(X, y, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        ManifoldKNNClassifier().fit(X, y)


BAD_PARAMETERS = [
    ({"graph": "knn"}, "graph='knn' must be one of 'pruned', 'union', 'full'"),
    ({"graph_neighbors": 0}, "graph_neighbors=0 must be a whole number, at least 1"),
    ({"n_neighbors": 0}, "n_neighbors=0 must be a whole number, at least 1"),
    ({"n_neighbors": 2.5}, r"n_neighbors=2\.5 must be a whole number, at least 1"),
    ({"alpha": 0}, "alpha=0 must be a number strictly between 0 and 1"),
    ({"alpha": 1.0}, r"alpha=1\.0 must be a number strictly between 0 and 1"),
    ({"alpha": -0.1}, r"alpha=-0\.1 must be a number strictly between 0 and 1"),
    ({"alpha": np.nan}, "alpha=nan must be a number strictly between 0 and 1"),
    ({"sigma": 0.0}, r"sigma=0\.0 must be a positive, finite number or 'auto'"),
    ({"sigma": -1}, "sigma=-1 must be a positive, finite number or 'auto'"),
    ({"sigma": np.nan}, "sigma=nan must be a positive, finite number or 'auto'"),
    ({"sigma": "median"}, "sigma='median' must be a positive, finite number or 'auto'"),
    ({"tree_depth": -1}, "tree_depth=-1 must be a whole number, at least 0"),
    ({"theta": 1.0}, r"theta=1\.0 must be at least 0 and below 1"),
    ({"on_unreached": "warn"}, "on_unreached='warn' must be one of 'nearest', 'abstain', 'raise'"),
    ({"tol": 0}, "tol=0 must be a number strictly between 0 and 1"),
    ({"max_iter": 0}, "max_iter=0 must be a whole number, at least 1"),
    ({"verbose": -1}, "verbose=-1 must be a whole number, at least 0"),
    ({"metric": "no-such"}, "metric='no-such' is not one of the metrics offered: .*euclidean"),
    ({"metric": None}, "metric=None is not one of the metrics offered"),
    ({"metric": "precomputed"}, "metric='precomputed' is not one of the metrics offered"),
    ({"unlabeled": "none"}, "unlabeled='none' is of a type that no label in y can equal.*Pass a"),
    ({"alpha": "x"}, "alpha='x' must be a number strictly between 0 and 1, .* or 'auto'"),
    ({"vote": "x"}, "vote='x' must be one of 'classes', 'neighbors'"),
    ({"vote": None}, "vote=None must be one of 'classes', 'neighbors'"),
    ({"sharpness": 0}, "sharpness=0 must be a positive, finite number or 'auto'"),
    ({"sharpness": -1.0}, r"sharpness=-1\.0 must be a positive, finite number or 'auto'"),
    ({"sharpness": np.nan}, "sharpness=nan must be a positive, finite number or 'auto'"),
    ({"sharpness": np.inf}, "sharpness=inf must be a positive, finite number or 'auto'"),
    ({"sharpness": "x"}, "sharpness='x' must be a positive, finite number or 'auto'"),
    ({"class_prior": "uniform"}, "class_prior='uniform' must be 'equal', 'labeled' or one number"),
    ({"class_prior": None}, "class_prior=None must be 'equal', 'labeled' or one number"),
    ({"class_prior": [1, 1]}, r"class_prior=\[1, 1\] must be .* each of the 3 classes 0, 1, 2"),
    ({"class_prior": [[1, 1, 1]]}, "one number for each of the 3 classes"),
    ({"class_prior": ["a", "b", "c"]}, "one number for each of the 3 classes"),
    ({"class_prior": [1e308, 1e308, 1e-320]}, "must hold positive, finite numbers"),
    ({"class_prior": [1, 1, -1]}, "must hold positive, finite numbers"),
    ({"class_prior": [1, 1, np.inf]}, "must hold positive, finite numbers"),
    ({"class_prior": [1, 1, 0]}, r"class_prior=\[1, 1, 0\] must hold positive, finite numbers"),
    ({"class_prior": [1, 1, np.nan]}, "must hold positive, finite numbers"),
]  # fmt: skip


@pytest.mark.usefixtures("no_search")
@pytest.mark.parametrize(("parameters", "message"), BAD_PARAMETERS)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        ManifoldKNNClassifier(**parameters).fit(PLAIN_X, PLAIN_Y)


@pytest.mark.usefixtures("no_search")
@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("canberra", "not available for sparse X; use 'euclidean', 'cosine' or 'manhattan'"),
        (lambda a, b: abs(a - b).sum(), "callable cannot be used with sparse X; name a metric"),
    ],
)
def test_metrics_that_sparse_samples_do_not_have(metric, message):
    with pytest.raises(ValueError, match=message):
        ManifoldKNNClassifier(metric=metric).fit(sparse.csr_array(PLAIN_X), PLAIN_Y)


def test_bad_new_rows():
    clf = ManifoldKNNClassifier().fit(PLAIN_X, PLAIN_Y)
    for method in (clf.predict, clf.predict_proba, clf.kneighbors):
        with pytest.raises(ValueError, match="contains NaN"):
            method(changed(PLAIN_X, np.nan))
        with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3"):
            method(PLAIN_X[:, :2])
        with pytest.raises(ValueError, match="Expected 2D array"):
            method(PLAIN_X[0])
        with pytest.raises(ValueError, match=r"too large .*rescale the features"):
            method(changed(PLAIN_X, 1e120))


def test_not_fitted():
    for method in ("predict", "predict_proba", "kneighbors"):
        with pytest.raises(NotFittedError, match="Call 'fit'"):
            getattr(ManifoldKNNClassifier(), method)(PLAIN_X)


def test_one_class_is_the_answer_with_a_warning():
    y = np.where(PLAIN_Y == 1, 1, -1)
    with pytest.warns(OneClassWarning, match="every row will get it: label at least one row of an"):
        clf = ManifoldKNNClassifier().fit(PLAIN_X, y)
    assert clf.classes_.tolist() == [1]
    assert (clf.transduction_ == 1).all()
    assert (clf.predict(PLAIN_X + 0.1) == 1).all()
    assert (clf.label_distributions_ == 1).all()


@pytest.mark.parametrize("graph", GRAPHS)
def test_everything_labelled_keeps_the_labels_with_a_warning(graph):
    X, _, truth = clouds()
    with pytest.warns(EverythingLabeledWarning, match="mark unlabelled rows with -1"):
        clf = ManifoldKNNClassifier(graph=graph).fit(X, truth)
    assert (clf.transduction_ == truth).all()
    assert np.mean(clf.predict(X + 0.01) == truth) > 0.8


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("graph_neighbors", [90, 10**6])
def test_more_graph_neighbors_than_rows(graph, graph_neighbors):
    clf = ManifoldKNNClassifier(graph=graph, graph_neighbors=graph_neighbors)
    with pytest.warns(GraphSizeWarning, match="only 90 rows: using 89. Lower graph_neighbors"):
        clf.fit(PLAIN_X, PLAIN_Y)
    fewer = clone(clf).set_params(graph_neighbors=89).fit(PLAIN_X, PLAIN_Y)
    np.testing.assert_array_equal(clf.label_distributions_, fewer.label_distributions_)
    assert set(clf.predict(PLAIN_X + 0.1)) <= {0, 1, 2}


@pytest.mark.parametrize("vote", VOTES)
def test_more_voters_than_labelled_samples_are_capped(vote):
    capped, all_of_them = (
        ManifoldKNNClassifier(k, vote=vote).fit(PLAIN_X, PLAIN_Y)
        for k in (EVERYONE, np.sum(PLAIN_Y >= 0))
    )
    np.testing.assert_array_equal(capped.label_distributions_, all_of_them.label_distributions_)
    assert capped.kneighbors()[0].shape == (90, 9)
    assert capped.n_neighbors == EVERYONE


@pytest.mark.parametrize("graph", GRAPHS)
def test_constant_and_repeated_columns(graph):
    X, y, _ = clouds()
    clf = ManifoldKNNClassifier(graph=graph, tol=1e-9)
    plain = clone(clf).fit(X, y)
    constant = clone(clf).fit(np.c_[X, np.full(90, 7.0)], y)
    np.testing.assert_allclose(constant.label_distributions_, plain.label_distributions_, atol=1e-6)
    # All columns twice: every distance is √2 times what it was, and so is σ.
    twice = clone(clf).fit(np.c_[X, X], y)
    assert twice.sigma_ == pytest.approx(np.sqrt(2) * plain.sigma_)
    np.testing.assert_allclose(twice.label_distributions_, plain.label_distributions_, atol=1e-6)
    assert (twice.predict(np.c_[X, X] + 0.1) == plain.predict(X + 0.1)).all()


@pytest.mark.parametrize("graph", GRAPHS)
def test_repeated_rows_with_different_labels(graph):
    X, y, _ = clouds()
    X, y = np.r_[X, X[:9], X[20:50]], np.r_[y, (y[:9] + 1) % 3, np.full(30, -1)]
    clf = ManifoldKNNClassifier(graph=graph).fit(X, y)
    assert (clf.transduction_[y >= 0] == y[y >= 0]).all()
    assert np.isfinite(clf.label_distributions_).all()
    if graph == "full":  # elsewhere ties between repeated rows may give them different edges
        assert (clf.transduction_[20:50] == clf.transduction_[99:]).all()
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1.0)


# Islands without labels.


def with_island():
    """40 rows with labels of both classes, and 15 rows without any, nearest to class 1."""
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 6, rng.normal(size=(15, 2)) + 60]
    y = np.full(55, -1)
    y[[0, 1, 20, 21]] = [0, 0, 1, 1]
    return X, y


ISLAND = np.arange(55) >= 40
NEAR_ISLAND = [[59.0, 61.0], [62.0, 60.0]]
COUNTED = r"15 of 55 rows are connected to no labelled sample \(the first is row 40\)"
ADVICE = "label a row near them, raise graph_neighbors, or use graph='pruned'"


def test_unreached_rows_get_the_class_of_the_nearest_labelled_sample():
    X, y = with_island()
    with pytest.warns(UnreachedWarning, match=f"{COUNTED}; they got the class of .*{ADVICE}"):
        clf = ManifoldKNNClassifier(graph="union").fit(X, y)
    assert (clf.unreached_ == ISLAND).all()
    labeled = np.flatnonzero(y >= 0)
    D = oracles.distance_matrix(X)[:, labeled]
    assert (clf.transduction_[ISLAND] == y[labeled][D.argmin(axis=1)][ISLAND]).all()
    assert (clf.transduction_[ISLAND] == 1).all()
    assert (clf.label_distributions_[ISLAND] == [0.0, 1.0]).all()
    assert (clf.kneighbors()[0][ISLAND] == 0).all()
    with pytest.warns(UnreachedWarning, match=r"2 of 2 rows .*nearest labelled sample"):
        assert clf.predict(NEAR_ISLAND).tolist() == [1, 1]
    with pytest.warns(UnreachedWarning, match=r"2 of 3 rows .*first is row 1"):
        shares = clf.predict_proba([[0.0, 0.0], *NEAR_ISLAND])
    assert shares[1:].tolist() == [[0.0, 1.0]] * 2
    assert clf.predict(X[~ISLAND]).tolist() == clf.transduction_[~ISLAND].tolist()


@pytest.mark.parametrize(
    ("names", "marker"),
    [
        ([0, 1, -1], -1),
        (["a", "b", None], None),
        (["a", "b", ""], ""),
        ([False, True, None], None),
    ],
    ids=["integers", "strings and None", "strings", "booleans"],
)
def test_abstaining_answers_with_the_marker(names, marker):
    X, y = with_island()
    clf = ManifoldKNNClassifier(graph="union", on_unreached="abstain")
    with pytest.warns(UnreachedWarning, match=f"{COUNTED}; they stay unlabelled. .*{ADVICE}"):
        clf.fit(X, [names[code] for code in y])
    assert clf.transduction_[ISLAND].tolist() == [marker] * 15
    assert set(clf.transduction_[~ISLAND].tolist()) == set(names[:2])
    assert clf.classes_.tolist() == names[:2]
    assert (clf.label_distributions_[ISLAND] == 0.5).all()
    with pytest.warns(UnreachedWarning, match="2 of 3 rows .*they stay unlabelled"):
        labels = clf.predict([*NEAR_ISLAND, [0.0, 0.0]])
    assert labels.tolist() == [marker, marker, names[0]]
    with pytest.warns(UnreachedWarning):
        assert (clf.predict_proba(NEAR_ISLAND) == 0.5).all()


def test_abstaining_answers_with_the_marker_that_was_named():
    X, y = with_island()
    clf = ManifoldKNNClassifier(graph="union", on_unreached="abstain", unlabeled=99)
    with pytest.warns(UnreachedWarning):
        clf.fit(X, np.where(y < 0, 99, -y))
    assert clf.classes_.tolist() == [-1, 0]
    assert (clf.transduction_[ISLAND] == 99).all()


def test_raising_for_unreached_rows():
    X, y = with_island()
    clf = ManifoldKNNClassifier(graph="union", on_unreached="raise")
    with pytest.raises(UnreachedError, match=f"{COUNTED}: {ADVICE}, or set on_unreached='near"):
        clf.fit(X, y)
    assert issubclass(UnreachedError, ValueError)
    y[50] = 0
    clf.fit(X, y)
    assert clf.predict(NEAR_ISLAND).tolist() == [0, 0]


def test_raising_for_new_rows_only():
    X, y = with_island()
    with pytest.warns(UnreachedWarning):
        clf = ManifoldKNNClassifier(graph="union").fit(X, y)
    clf.set_params(on_unreached="raise")
    with pytest.raises(UnreachedError, match="2 of 2 rows"):
        clf.predict(NEAR_ISLAND)
    assert clf.predict([[0.0, 0.0]]).tolist() == [0]


@pytest.mark.parametrize("graph", ["pruned", "full"])
@pytest.mark.parametrize("on_unreached", ["nearest", "abstain", "raise"])
def test_connected_graphs_reach_every_row(graph, on_unreached):
    X, y = with_island()
    clf = ManifoldKNNClassifier(graph=graph, on_unreached=on_unreached).fit(X, y)
    assert not clf.unreached_.any()
    assert (clf.transduction_[ISLAND] == 1).all()
    assert clf.predict(NEAR_ISLAND).tolist() == [1, 1]


def test_warnings_point_at_the_caller():
    X, y = with_island()
    with pytest.warns(UnreachedWarning) as caught:
        clf = ManifoldKNNClassifier(graph="union").fit(X, y)
    with pytest.warns(UnreachedWarning) as caught_later:
        clf.predict(NEAR_ISLAND)
    with pytest.warns(GraphSizeWarning) as caught_size:
        ManifoldKNNClassifier(graph_neighbors=200).fit(X, y)
    for warning in (*caught, *caught_later, *caught_size):
        assert warning.filename == __file__


# Far outliers.


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("far", [1e2, 1e4, 1e6])
@pytest.mark.parametrize("vote", VOTES)
def test_far_outliers(graph, far, vote):
    """exp() underflows for every edge of an outlier; its nearest side still gets it."""
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) + np.array([8.0, 0.0])]
    y = np.full(60, -1)
    y[[0, 1, 2, 30, 31, 32]] = [0, 0, 0, 1, 1, 1]
    clf = ManifoldKNNClassifier(vote=vote, graph=graph, sigma=1.0, tol=1e-9, sharpness=1.0)
    without = clone(clf).fit(X, y)
    outliers = np.array([[-far, 0.0], [far, 0.0], [8.0 + far, far]])
    # A logarithm of -far²/2 has too few digits for such a tol in the end, and that is told.
    told = pytest.warns(ConvergenceWarning, match="far") if far > 1e3 else nullcontext()
    with told:
        clf.fit(np.r_[X, outliers], np.r_[y, [-1, -1, -1]])
    assert clf.transduction_[60:].tolist() == [0, 1, 1]
    assert not clf.unreached_.any()
    assert np.isfinite(clf.label_distributions_).all()
    assert np.isfinite(clf.kneighbors()[0]).all()
    np.testing.assert_allclose(
        # Densities sum to 1 over outliers as well.
        clf.label_distributions_[:60],
        without.label_distributions_,
        atol=1e-6 if vote == "neighbors" else 5e-3,
    )
    assert clf.predict(outliers * 1.5).tolist() == [0, 1, 1]


@pytest.mark.parametrize("graph", GRAPHS)
def test_an_outlier_that_is_labelled(graph):
    X, y, truth = clouds(gap=6.0)
    X, y = np.r_[X, [[1e5, 0.0, 0.0]]], np.r_[y, 0]
    clf = ManifoldKNNClassifier(graph=graph).fit(X, y)
    assert np.isfinite(clf.label_distributions_).all()
    assert (clf.transduction_[:90] == truth).all()


# Sparse samples and other types.


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_sparse_samples_answer_as_dense_ones(graph, metric, form):
    rng = np.random.default_rng(0)
    X, y, _ = clouds(d=8)
    X *= rng.random(X.shape) < 0.6
    clf = ManifoldKNNClassifier(graph=graph, metric=metric, tol=1e-9)
    from_dense, from_sparse = (
        clone(clf).fit(X, y),
        clone(clf).fit(sparse.coo_array(X).asformat(form), y),
    )
    expected = from_dense.label_distributions_
    np.testing.assert_allclose(from_sparse.label_distributions_, expected, atol=1e-6)
    assert (from_sparse.transduction_ == from_dense.transduction_).all()
    Q = X[10:30] + 0.1
    expected = from_dense.predict_proba(Q)
    for new in (Q, sparse.coo_array(Q).asformat(form)):
        np.testing.assert_allclose(from_sparse.predict_proba(new), expected, atol=1e-6)
        np.testing.assert_allclose(from_dense.predict_proba(new), expected, atol=1e-6)


def test_sparse_samples_are_not_densified(monkeypatch):
    """Dense, these samples would take 800 MB."""
    rng = np.random.default_rng(0)
    rows, columns = np.repeat(np.arange(1000), 20), rng.integers(2, 100_000, 20_000)
    columns[::20] = np.arange(1000) % 2
    X = sparse.csr_array((rng.random(20_000), (rows, columns)), shape=(1000, 100_000))
    y = np.full(1000, -1)
    y[:6] = [0, 1] * 3
    largest = 0
    for kind in (sparse.csr_array, sparse.csr_matrix):
        toarray = kind.toarray

        def watched(self, *args, toarray=toarray, **kwargs):
            nonlocal largest
            largest = max(largest, self.shape[0] * self.shape[1])
            return toarray(self, *args, **kwargs)

        monkeypatch.setattr(kind, "toarray", watched)
    tracemalloc.start()
    try:
        clf = ManifoldKNNClassifier(metric="euclidean").fit(X, y)
        fitting = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        labels = clf.predict(X[100:120])
        predicting = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (labels == clf.transduction_[100:120]).all()
    assert largest < X.shape[0] * X.shape[1] / 10
    assert fitting < 50e6
    assert predicting < 150e6  # a few reconstructions at a time


@pytest.mark.parametrize(
    "dtype",
    ["float16", "float32", "longdouble", "object", "int8", "uint8", "uint16", "int32", "int64"],
)
@pytest.mark.parametrize("graph", GRAPHS)
def test_types_of_samples(graph, dtype):
    X, y, _ = clouds()
    X = np.round(10 * (X - X.min()))  # every type holds these
    plain = ManifoldKNNClassifier(graph=graph).fit(X, y)
    clf = ManifoldKNNClassifier(graph=graph).fit(X.astype(dtype), y)
    np.testing.assert_allclose(clf.label_distributions_, plain.label_distributions_, atol=1e-6)


@pytest.mark.parametrize("dtype", ["longdouble", "object", "int32", "uint32", "int64"])
def test_types_of_new_rows(dtype):
    X, y, _ = clouds()
    X = np.round(10 * (X - X.min()))
    plain = ManifoldKNNClassifier().fit(X, y)
    assert (plain.predict(X.astype(dtype)) == plain.predict(X)).all()
    assert (ManifoldKNNClassifier().fit(X.astype(dtype), y).predict(X) == plain.predict(X)).all()


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_boolean_samples(wrap):
    rng = np.random.default_rng(0)
    truth = np.arange(80) % 2
    X = rng.random((80, 12)) < np.where(truth, 0.9, 0.1)[:, None]
    y = np.where(np.arange(80) < 6, truth, -1)
    clf = ManifoldKNNClassifier().fit(wrap(X), y)
    plain = ManifoldKNNClassifier().fit(X.astype(float), y)
    np.testing.assert_allclose(clf.label_distributions_, plain.label_distributions_, atol=1e-6)
    assert (clf.transduction_ == truth).all()


# Manners.


def test_default_answer_and_attributes():
    X, y, truth = clouds(n=300)
    clf = ManifoldKNNClassifier().fit(X, y)
    assert np.mean(clf.transduction_ == truth) > 0.85
    assert clf.score(X[9:], truth[9:]) == np.mean(clf.transduction_[9:] == truth[9:])
    assert clf.n_iter_ > 0
    assert clf.sigma_ > 0
    assert clf.n_features_in_ == 3
    assert not hasattr(clf, "feature_names_in_")


LABELS = {
    "strings": (["cat", "dog", "eel"], ""),
    "strings and None": (["cat", "dog", "eel"], None),
    "strings and NaN": (["cat", "dog", "eel"], np.nan),
    "negative and large integers": ([-5, 7, 10**12], -1),
    "floats and NaN": ([0.0, 1.0, 2.0], np.nan),
    "bytes": ([b"a", b"b", b"c"], b""),
}


@pytest.mark.parametrize(("names", "marker"), LABELS.values(), ids=LABELS.keys())
def test_labels_of_many_kinds(names, marker):
    X, y, _ = clouds()
    plain = ManifoldKNNClassifier().fit(X, y)
    clf = ManifoldKNNClassifier().fit(X, [[*names, marker][code] for code in y])
    assert clf.classes_.tolist() == names
    assert clf.transduction_.tolist() == [names[code] for code in plain.transduction_]
    assert clf.predict(X + 0.1).tolist() == [names[code] for code in plain.predict(X + 0.1)]
    np.testing.assert_array_equal(clf.label_distributions_, plain.label_distributions_)


@pytest.mark.parametrize(
    "column",
    [
        lambda values: pd.Series(pd.Categorical(values, categories=["x", "b", "a"])),
        lambda values: pd.Categorical(values),
        lambda values: pd.Series(values, index=range(500, 590)),
        lambda values: pl.Series(values),
        lambda values: pl.Series(values, dtype=pl.Categorical),
        lambda values: np.array(values, dtype=object),
    ],
    ids=["pd category", "pd.Categorical", "pd.Series", "pl.Series", "pl.Categorical", "object"],
)
def test_columns_of_labels(column):
    X, y, _ = clouds(n_classes=2)
    plain = ManifoldKNNClassifier().fit(X, y)
    clf = ManifoldKNNClassifier().fit(X, column([["a", "b", None][code] for code in y]))
    assert clf.classes_.tolist() == ["a", "b"]
    assert clf.transduction_.tolist() == [["a", "b"][code] for code in plain.transduction_]


def test_boolean_labels():
    X, y, _ = clouds(n_classes=2)
    plain = ManifoldKNNClassifier().fit(X, y)
    clf = ManifoldKNNClassifier().fit(X, [[False, True, None][code] for code in y])
    assert clf.classes_.dtype == clf.transduction_.dtype == bool
    assert (clf.transduction_ == plain.transduction_).all()


def test_minus_one_as_a_class():
    X, y, _ = clouds(n_classes=2)
    plain = ManifoldKNNClassifier().fit(X, y)
    clf = ManifoldKNNClassifier(unlabeled=-9).fit(X, np.array([-1, 1, -9])[y])
    assert clf.classes_.tolist() == [-1, 1]
    assert (clf.transduction_ == np.array([-1, 1])[plain.transduction_]).all()


@pytest.mark.parametrize("frame", [pd.DataFrame, NAMED_POLARS], ids=["pandas", "polars"])
def test_frames(frame):
    X, y, _ = clouds()
    plain = ManifoldKNNClassifier().fit(X, y)
    named = frame({"red": X[:, 0], "green": X[:, 1], "blue": X[:, 2]})
    clf = ManifoldKNNClassifier().fit(named, y)
    assert clf.feature_names_in_.tolist() == ["red", "green", "blue"]
    np.testing.assert_array_equal(clf.label_distributions_, plain.label_distributions_)
    assert (clf.predict(named) == plain.predict(X)).all()
    wrong = frame({"red": X[:, 0], "blue": X[:, 2], "green": X[:, 1]})
    with pytest.raises(ValueError, match=r"(?s)feature names .*same order"):
        clf.predict(wrong)
    with pytest.raises(ValueError, match=r"(?s)feature names should match.*depth"):
        clf.predict_proba(frame({"red": X[:, 0], "green": X[:, 1], "depth": X[:, 2]}))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        clf.predict(X)


@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_pipeline(output):
    X, y, _ = clouds()
    stretched = X * [1.0, 1e3, 1e-3]
    names = ["a", "b", "c"]
    given = {
        "default": lambda: stretched,
        "pandas": lambda: pd.DataFrame(stretched, columns=names),
        "polars": lambda: pl.DataFrame(stretched, schema=names),
    }[output]()
    pipe = make_pipeline(MinMaxScaler().set_output(transform=output), ManifoldKNNClassifier())
    pipe.fit(given, y)
    plain = ManifoldKNNClassifier().fit(MinMaxScaler().fit_transform(stretched), y)
    assert (pipe[-1].transduction_ == plain.transduction_).all()
    assert (pipe.predict(given) == plain.predict(MinMaxScaler().fit_transform(stretched))).all()
    assert pipe.predict_proba(given).shape == (90, 3)


supervised = pytest.mark.filterwarnings("ignore::manifoldknn.exceptions.EverythingLabeledWarning")


@supervised
def test_cross_validation_as_a_plain_classifier():
    X, y = load_iris(return_X_y=True)
    scores = cross_val_score(make_pipeline(MinMaxScaler(), ManifoldKNNClassifier()), X, y, cv=5)
    assert scores.mean() > 0.93
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    by_name = cross_val_score(
        make_pipeline(MinMaxScaler(), ManifoldKNNClassifier()), X, names, cv=5
    )
    np.testing.assert_array_equal(by_name, scores)


@supervised
def test_grid_search():
    X, y = load_iris(return_X_y=True)
    grid = {"n_neighbors": [1, 5, 120], "graph": ["pruned", "union"]}
    search = GridSearchCV(ManifoldKNNClassifier(), grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.93
    assert search.best_estimator_.n_neighbors == search.best_params_["n_neighbors"]


def test_parameters_come_and_go():
    clf = ManifoldKNNClassifier(3, graph="union", sigma=2.0)
    twin = clone(clf)
    assert twin.get_params() == clf.get_params()
    assert twin.set_params(n_neighbors=7, alpha=0.9) is twin
    assert (twin.n_neighbors, twin.alpha, twin.graph, twin.sigma) == (7, 0.9, "union", 2.0)
    assert clf.n_neighbors == 3
    with pytest.raises(TypeError, match="positional"):
        ManifoldKNNClassifier(3, "union")


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("vote", VOTES)
def test_pickle(graph, vote):
    X, y, _ = clouds()
    clf = ManifoldKNNClassifier(vote=vote, graph=graph, class_prior="labeled").fit(X, y)
    copy = pickle.loads(pickle.dumps(clf))
    Q = X + 0.1
    np.testing.assert_array_equal(copy.predict_proba(Q), clf.predict_proba(Q))
    np.testing.assert_array_equal(copy.predict(Q), clf.predict(Q))
    np.testing.assert_array_equal(copy.kneighbors(Q), clf.kneighbors(Q))
    np.testing.assert_array_equal(copy.transduction_, clf.transduction_)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("d", [3, 20])
@pytest.mark.parametrize("vote", VOTES)
def test_same_input_same_output_for_any_number_of_jobs(graph, d, vote):
    X, y, _ = clouds(n=200, d=d)
    first, *others = (
        ManifoldKNNClassifier(vote=vote, graph=graph, n_jobs=n_jobs, random_state=seed).fit(X, y)
        for n_jobs, seed in ((None, None), (None, 0), (1, 1), (2, None))
    )
    for clf in others:
        assert clf.sharpness_ == first.sharpness_
        np.testing.assert_array_equal(clf.label_distributions_, first.label_distributions_)
        np.testing.assert_array_equal(clf.transduction_, first.transduction_)
        np.testing.assert_array_equal(clf.kneighbors(), first.kneighbors())
        np.testing.assert_array_equal(clf.predict_proba(X + 0.1), first.predict_proba(X + 0.1))


def test_fitting_again_forgets_the_first_fit():
    X, y, _ = clouds()
    other, labels, _ = clouds(n=60, d=5, n_classes=2, seed=1)
    clf = ManifoldKNNClassifier().fit(X, y).fit(other, labels)
    fresh = ManifoldKNNClassifier().fit(other, labels)
    assert clf.n_features_in_ == 5
    assert clf.classes_.tolist() == [0, 1]
    np.testing.assert_array_equal(clf.label_distributions_, fresh.label_distributions_)
    np.testing.assert_array_equal(clf.predict_proba(other + 0.1), fresh.predict_proba(other + 0.1))


def test_the_inputs_are_left_alone():
    X, y, _ = clouds()
    given_X, given_y = X.copy(), y.copy()
    ManifoldKNNClassifier().fit(given_X, given_y).predict(given_X)
    np.testing.assert_array_equal(given_X, X)
    np.testing.assert_array_equal(given_y, y)


BY_HAND = {
    "euclidean": lambda a, b: np.sqrt(np.sum((a - b) ** 2)),
    "manhattan": lambda a, b: np.sum(np.abs(a - b)),
    "chebyshev": lambda a, b: np.max(np.abs(a - b)),
    "cosine": lambda a, b: 1 - a @ b / np.sqrt((a @ a) * (b @ b)),
}


@pytest.mark.parametrize("metric", BY_HAND)
def test_metrics_equal_distances_by_hand(metric):
    X, y, _ = clouds(n=60)
    clf = as_published(metric=metric, tree_depth=0).fit(X, y)
    D = np.array([[BY_HAND[metric](a, b) for b in X] for a in X])
    W = np.exp(-(D**2) / (2 * clf.sigma_**2))
    both = (y[:, None] >= 0) & (y[None, :] >= 0)
    W[both] = (y[:, None] == y[None, :])[both]
    np.fill_diagonal(W, 0.0)
    weights = oracles.walk_weights(W, 0.99)[:, :9]
    shares, _ = oracles.vote(weights, y[:9], 5, 3)
    clear = clear_votes(weights, 5)
    assert clear.sum() > 50
    np.testing.assert_allclose(clf.label_distributions_[clear], shares[clear], atol=1e-6)


@pytest.mark.parametrize("metric", sorted(METRICS - {"l1", "l2", "cityblock", "minkowski"}))
@pytest.mark.parametrize("n_features", [4, 60])
def test_no_metric_depends_on_the_number_of_jobs(metric, n_features):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 700)
    X = np.abs(rng.normal(size=(700, n_features)) + rng.normal(size=(3, n_features))[truth])
    y = np.where(rng.random(700) < 0.05, truth, -1)
    one, *others = (
        ManifoldKNNClassifier(metric=metric, alpha=0.9999, n_jobs=jobs).fit(X, y)
        for jobs in (1, 2, 4)
    )
    for other in others:
        np.testing.assert_array_equal(other.label_distributions_, one.label_distributions_)
        for rows in (X[:1] + 0.1, X + 0.1):
            np.testing.assert_array_equal(other.predict_proba(rows), one.predict_proba(rows))


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("metric", ["manhattan", "cosine", BY_HAND["chebyshev"]])
def test_other_metrics_end_to_end(graph, metric):
    X, y, truth = clouds(gap=6.0)
    clf = ManifoldKNNClassifier(graph=graph, metric=metric).fit(X, y)
    assert (clf.transduction_ == truth).all()
    assert (clf.predict(X[9:]) == truth[9:]).all()
    assert (clf.predict(X + 0.1) == truth).all()


def test_cosine_ignores_the_length_of_rows():
    X, y, _ = clouds()
    lengths = np.random.default_rng(0).uniform(0.1, 10, (90, 1))
    clf = ManifoldKNNClassifier(metric="cosine", tol=1e-9)
    plain, scaled = clone(clf).fit(X, y), clone(clf).fit(X * lengths, y)
    np.testing.assert_allclose(scaled.label_distributions_, plain.label_distributions_, atol=1e-6)
    np.testing.assert_allclose(
        scaled.predict_proba(3 * X + 0.1), plain.predict_proba(X + 0.1 / 3), atol=1e-6
    )


@pytest.mark.parametrize("on_unreached", ["nearest", "abstain", "raise"])
def test_too_few_iterations(on_unreached):
    """Rows that an unfinished walk did not get to are no islands."""
    X, y, _ = clouds()
    clf = ManifoldKNNClassifier(max_iter=1, tol=0.01, on_unreached=on_unreached)
    with (
        pytest.warns(
            ConvergenceWarning, match=r"tol=0.01 \(max_iter=1\): raise tol, raise max_iter"
        ),
        forced("iterate"),
    ):
        clf.fit(X, y)
    assert not clf.unreached_.any()
    assert np.isfinite(clf.label_distributions_).all()
    assert set(clf.transduction_.tolist()) <= {0, 1, 2}


def test_an_outlier_among_many_labels():
    """Degrees over a range that single precision does not hold, on the factorised path."""
    rng = np.random.default_rng(0)
    X = rng.random((600, 2))
    y = np.full(601, -1)
    y[:300] = X[:300, 0] > 0.5
    sigma = ManifoldKNNClassifier().fit(X, y[:-1]).sigma_
    rightmost = X[X[:, 0].argmax()]
    for reach in (20, 60, 100, 172, 185, 195, 300, 1000):
        outlier = rightmost + sigma * np.sqrt(2 * reach) * np.array([1.0, 0.0])
        clf = ManifoldKNNClassifier(sigma=sigma).fit(np.vstack([X, outlier]), y)
        assert clf.transduction_[-1] == 1
        exact = ManifoldKNNClassifier(sigma=sigma, tol=1e-7).fit(np.vstack([X, outlier]), y)
        np.testing.assert_allclose(clf.label_distributions_, exact.label_distributions_, atol=5e-3)
        assert np.isfinite(clf.kneighbors()[0]).all()


def test_new_rows_with_many_labels_equal_the_literal_combination():
    """Nothing may be cut off: must-links make the weights of a class nearly equal."""
    rng = np.random.default_rng(1)
    X = rng.random((400, 2))
    y = np.full(400, -1)
    y[:120] = (X[:120, 0] + 0.2 * rng.random(120) > 0.6).astype(int)
    Q = rng.random((60, 2))
    clf = ManifoldKNNClassifier(5, vote="neighbors", tol=1e-7).fit(X, y)
    W = constrained_graph(X, y, sigma=clf.sigma_).toarray()
    weights = oracles.walk_weights(W, 0.99)[:, :120]
    lists = np.argsort(((Q[:, None] - X[None]) ** 2).sum(axis=2), axis=1)[:, :10]
    z = simplex_weights(Q, X[lists])
    combined = np.einsum("qk,qkl->ql", z, weights[lists])
    found = clf.kneighbors(Q)[0]
    np.testing.assert_allclose(found, -np.sort(-combined, axis=1)[:, :5], rtol=1e-4)
    shares, labels = oracles.vote(combined, y[:120], 5, 2)
    clear = np.abs(shares[:, 0] - 0.5) > 1e-3
    assert clear.sum() > 50
    assert (clf.predict(Q)[clear] == labels[clear]).all()


@any_problem
def test_smallest_problems():
    clf = ManifoldKNNClassifier().fit([[0.0], [1.0]], [1, -1])
    assert clf.transduction_.tolist() == [1, 1]
    clf = ManifoldKNNClassifier().fit([[0.0], [1.0]], ["a", "b"])
    assert clf.transduction_.tolist() == ["a", "b"]
    clf = ManifoldKNNClassifier(sigma=0.2).fit([[0.0], [0.1], [1.0], [1.2]], [0, -1, -1, 1])
    assert clf.transduction_.tolist() == [0, 0, 1, 1]
    assert clf.predict([[-0.1], [1.3]]).tolist() == [0, 1]


@pytest.mark.parametrize("graph", ["pruned", "full"])
@pytest.mark.parametrize("decades", [12, 60, 250])
@pytest.mark.parametrize("vote", VOTES)
def test_clusters_behind_gaps_follow_the_nearer_side(decades, graph, vote):
    """Two labelled clusters, and one at each side behind a gap of so many decades."""
    rng = np.random.default_rng(decades)
    gap = np.sqrt(2 * decades * np.log(10))  # in units of sigma
    centres = np.array([0.0, gap, 2.2 * gap, 3.2 * gap])
    truth = np.repeat([0, 0, 1, 1], 40)
    X = np.repeat(centres, 40)[:, None] + 0.3 * rng.random((160, 1))
    y = np.full(160, -1)
    y[[45, 60, 75]], y[[85, 100, 115]] = 0, 1
    clf = ManifoldKNNClassifier(vote=vote, graph=graph, sigma=1.0).fit(X, y)
    assert (clf.transduction_ == truth).all()
    assert not clf.unreached_.any()
    if vote == "classes":
        return
    weights = clf.kneighbors()[0][:, 0]
    assert weights[:40].max() < 10.0 ** (-0.8 * decades) * weights[40:80].max()


@pytest.mark.parametrize("way", ["iterate", "factorise"])
def test_labels_are_hidden_while_the_walk_goes_on_as_they_would_be_after_it(monkeypatch, way):
    monkeypatch.setattr("manifoldknn.device.steps.chosen_way", lambda *_, **__: Way(way))
    X, y, _ = clouds()
    ahead = ManifoldKNNClassifier().fit(X, y)
    walk, asked = device_steps.Steps.walk, []

    def forgetful(steps, built, *arguments, **options):
        found = walk(steps, built, *arguments, **options)
        asked.append(len(built.hidden))
        built.hidden = []  # so that they are hidden afterwards
        return found

    monkeypatch.setattr(device_steps.Steps, "walk", forgetful)
    after = ManifoldKNNClassifier().fit(X, y)
    assert asked == [5]
    assert after.sharpness_ == ahead.sharpness_
    assert (after.hidden_labels_.shares == ahead.hidden_labels_.shares).all()
    assert (after.label_distributions_ == ahead.label_distributions_).all()
