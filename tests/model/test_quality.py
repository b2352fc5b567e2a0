"""Scores, flags and errors of reconstruction, against literal leave-one-out loops."""

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import oracles
from manifoldknn import ManifoldKNNClassifier, constrained_graph
from manifoldknn.datasets import make_arch_and_s
from manifoldknn.extend.offmanifold import checked_rows

K = 4  # in three dimensions: then the nearest convex combination is unique


def ring(n=150, seed=0):
    """A noisy ring in three dimensions, two labels on either side."""
    rng = np.random.default_rng(seed)
    angle = np.sort(rng.uniform(0, 2 * np.pi, n))
    X = np.stack([np.cos(angle), np.sin(angle), np.zeros(n)], axis=1)
    X += 0.02 * rng.normal(size=X.shape)
    truth = (angle > np.pi).astype(int)
    y = np.full(n, -1)
    y[[5, 30, n - 30, n - 5]] = truth[[5, 30, n - 30, n - 5]]
    return X, y


def convex(x, N):
    """The nearest convex combination, by trying every set of neighbours that may carry it."""
    best, smallest = None, np.inf
    for size in range(1, len(N) + 1):
        for chosen in map(list, combinations(range(len(N)), size)):
            # Stationary under Σz = 1: a linear system for z and its multiplier.
            G = N[chosen] @ N[chosen].T
            ones = np.ones((size, 1))
            system = np.block([[G, ones], [ones.T, np.zeros((1, 1))]])
            z = np.linalg.lstsq(system, np.append(N[chosen] @ x, 1.0), rcond=None)[0][:-1]
            left = np.linalg.norm(x - z @ N[chosen])
            if z.min() > -1e-12 and abs(z.sum() - 1) < 1e-9 and left < smallest - 1e-14:
                best, smallest = np.zeros(len(N)), left
                best[chosen] = z
    return best


def literal(x, X, k, without=None):
    """Neighbours, weights, residual and nearest distance of one row."""
    D = np.linalg.norm(X - x, axis=1)
    if without is not None:
        D[without] = np.inf
    near = np.argsort(D, kind="stable")[:k]
    z = convex(x, X[near])
    return near, z, np.linalg.norm(x - z @ X[near]), D[near[0]]


def literal_oddity(x, X, k, without=None):
    near, _, residual, spacing = literal(x, X, k, without)
    own = [literal(X[i], X, k, without=i)[2:] for i in near]
    usual = np.mean([s for _, s in own])
    return max(residual / (np.sqrt(np.mean([r**2 for r, _ in own])) + usual), spacing / (2 * usual))


def fitted(**parameters):
    X, y = ring()
    return ManifoldKNNClassifier(graph_neighbors=K, **parameters).fit(X, y), X, y


def test_scores_equal_literal_ones():
    clf, X, _ = fitted()
    Q = np.random.default_rng(1).normal(size=(20, 3))
    expected = [-literal_oddity(q, X, K) for q in Q]
    np.testing.assert_allclose(clf.score_samples(Q), expected, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(clf.score_samples(Q[:1]), expected[:1], rtol=1e-4)


def test_flags_are_scores_below_nearly_all_own_ones():
    clf, X, _ = fitted()
    own = [-literal_oddity(X[i], X, K, without=i) for i in checked_rows(len(X))]
    Q = np.random.default_rng(1).normal(size=(200, 3)) * np.linspace(0.1, 2, 200)[:, None]
    scores = clf.score_samples(Q)
    odd = clf.is_off_manifold(Q)
    assert 0 < odd.sum() < 200
    assert scores[odd].max() < scores[~odd].min()
    assert np.mean(own < scores[odd].max()) <= 0.02  # as good as no row of the model is as odd


def test_rows_of_the_model_and_far_ones():
    clf, X, _ = fitted()
    assert not clf.is_off_manifold(X).any()
    np.testing.assert_array_equal(clf.score_samples(X), 0.0)
    assert clf.is_off_manifold([[0.0, 0.0, 0.0], [1.0, 0.0, 5.0], [1e50, 0.0, 0.0]]).all()


def test_held_out_rows_are_rarely_flagged_and_noise_is():
    X, truth, labeled = make_arch_and_s(600, random_state=0)
    rest = np.setdiff1d(np.arange(600), labeled)
    known = np.concatenate([labeled, rest[::2]])
    y = np.where(np.isin(known, labeled), truth[known], -1)
    clf = ManifoldKNNClassifier().fit(X[known], y)
    assert clf.is_off_manifold(X[rest[1::2]]).mean() < 0.05
    noise = np.random.default_rng(1).uniform(X.min(0) - 2, X.max(0) + 2, (300, 2))
    distance = np.sqrt(((noise[:, None] - X[None]) ** 2).sum(2)).min(1)
    assert clf.is_off_manifold(noise[distance > 0.4]).mean() > 0.95


def test_rows_that_came_later_count_as_neighbours():
    """A place the stream has been to is no longer off the manifold."""
    clf, _, _ = fitted()
    rng = np.random.default_rng(2)
    blob = np.array([0.0, 0.0, 3.0]) + 0.1 * rng.normal(size=(25, 3))
    assert clf.is_off_manifold(blob).all()
    clf.partial_fit(blob, refresh=False)
    assert clf.is_off_manifold(blob + 0.01).mean() < 0.3


def test_error_of_samples_and_weights_of_the_model():
    clf, X, y = fitted(n_neighbors=4, vote="neighbors", tol=1e-9)
    made = [literal(x, X, K, without=i) for i, x in enumerate(X)]
    error = clf.reconstruction_error()
    np.testing.assert_allclose(error.residuals, [r for *_, r, _ in made], atol=1e-6)
    assert error.samples == pytest.approx(
        100 * sum(r**2 for *_, r, _ in made) / (X**2).sum(), rel=1e-3
    )
    W = constrained_graph(X, y, graph_neighbors=K, sigma=clf.sigma_).toarray()
    P = np.linalg.inv(np.eye(len(X)) - 0.99 * W / W.sum(axis=1, keepdims=True))
    T = ((P + P.T) / 2)[:, y >= 0]
    R = np.array([z @ T[near] for near, z, *_ in made])
    assert error.weights == pytest.approx(100 * ((T - R) ** 2).sum() / (T**2).sum(), rel=1e-3)
    # Where classes vote, of densities.
    clf, *_ = fitted(tol=1e-9)
    T = oracles.class_densities(oracles.walk_matrix(W, clf.alpha_), y, y.max() + 1)
    R = np.array([z @ T[near] for near, z, *_ in made])
    expected = 100 * ((T - R) ** 2).sum() / (T**2).sum()
    assert clf.reconstruction_error().weights == pytest.approx(expected, rel=1e-3)


def test_error_for_new_rows_needs_their_true_weights():
    """Truth for a new row is its weight in a fit that had it."""
    X, y = ring()
    new = np.arange(3, 150, 10)
    new = new[y[new] < 0]
    old = np.setdiff1d(np.arange(150), new)
    how = {"n_neighbors": 4, "vote": "neighbors", "graph_neighbors": K, "tol": 1e-9}
    clf = ManifoldKNNClassifier(**how).fit(X[old], y[old])
    before = clf.transduction_
    error = clf.reconstruction_error(X[new])
    assert clf.transduction_ is before
    both = np.concatenate([old, new])
    whole = ManifoldKNNClassifier(**how).fit(X[both], y[both])
    (T, rows), (R, others) = whole.kneighbors(), clf.kneighbors(X[new])
    T, rows = T[len(old) :], rows[len(old) :]
    T = np.take_along_axis(T, np.argsort(rows, axis=1), axis=1)
    R = np.take_along_axis(R, np.argsort(others, axis=1), axis=1)
    assert error.weights == pytest.approx(100 * ((T - R) ** 2).sum() / (T**2).sum(), rel=1e-4)
    assert error.samples == pytest.approx(
        100 * (error.residuals**2).sum() / (X[new] ** 2).sum(), rel=1e-9
    )


def test_small_on_manifolds_as_in_the_paper():
    """The paper reports 0.07 to 0.27 % for samples, 0.5 to 1.9 % for weights."""
    X, truth, labeled = make_arch_and_s(800, noise=0.0, random_state=0)
    y = np.full(800, -1)
    y[labeled] = truth[labeled]
    error = ManifoldKNNClassifier().fit(X, y).reconstruction_error()
    assert error.samples < 0.3
    assert error.weights < 2.0


@pytest.mark.parametrize("form", [sparse.csr_array, lambda X: X.astype(np.float32)])
def test_other_forms_of_rows(form):
    clf, X, y = fitted()
    other = ManifoldKNNClassifier(graph_neighbors=K).fit(form(X), y)
    Q = np.random.default_rng(1).normal(size=(9, 3))
    np.testing.assert_allclose(other.score_samples(form(Q)), clf.score_samples(Q), rtol=1e-3)


def test_before_the_fit():
    for ask in ("score_samples", "is_off_manifold", "reconstruction_error"):
        with pytest.raises(NotFittedError):
            getattr(ManifoldKNNClassifier(), ask)([[0.0, 1.0]])


def test_rows_of_the_model_are_judged_without_themselves():
    """The same number, whether a row is in the model or asked about a model without it."""
    X, y = make_arch_and_s(300, random_state=0)[:2]
    odd = np.array([[3.0, 3.0]])
    labels = np.where(np.arange(300) < 20, y, -1)
    clf = ManifoldKNNClassifier().fit(np.vstack([X, odd]), np.append(labels, -1))
    own = clf.score_samples()
    assert own.shape == (301,)
    assert own.argmin() == 300
    assert clf.is_off_manifold()[300]
    assert clf.is_off_manifold()[:300].mean() < 0.05
    without = ManifoldKNNClassifier().fit(X, labels)
    # Neighbours are judged without the odd row here and with it there: nearly the same.
    np.testing.assert_allclose(own[300], without.score_samples(odd)[0], rtol=0.05)


def test_rows_that_joined_are_judged_as_when_they_came():
    X, y = make_arch_and_s(300, random_state=0)[:2]
    clf = ManifoldKNNClassifier().fit(X[:280], np.where(np.arange(280) < 20, y[:280], -1))
    asked = clf.score_samples(X[280:])
    clf.partial_fit(X[280:], refresh=False)
    np.testing.assert_allclose(clf.score_samples()[280:], asked)
