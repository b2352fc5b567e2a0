"""Doubts about rows, against the text of the module written as loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.vote.doubt import doubted, trust, usual_density


def doubted_by_loops(shares, log_scale, usual, belonging):
    out = np.zeros_like(shares)
    for i, row in enumerate(shares):
        if sum(row) == 0:
            continue
        short = 1.0 if usual == -np.inf else min(1.0, float(np.exp(log_scale[i] - usual)))
        t = max(1e-3, short * belonging[i])
        for c, share in enumerate(row):
            out[i, c] = t * share + (1 - t) / len(row)
    return out


@given(st.integers(0, 2**32 - 1), st.sampled_from([-np.inf, -3.0, 0.0, 40.0]))
def test_shares_are_as_the_formula_says(seed, usual):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(4, 0.2), size=20)
    shares[::7] = 0.0
    log_scale = rng.normal(scale=5, size=20)
    log_scale[::7] = -np.inf
    belonging = rng.random(20) ** 3
    found = doubted(shares, trust(log_scale, usual, belonging))
    np.testing.assert_allclose(found, doubted_by_loops(shares, log_scale, usual, belonging))
    reached = shares.any(axis=1)
    np.testing.assert_allclose(found[reached].sum(axis=1), 1)
    assert (found[~reached] == 0).all()
    assert (found.argmax(axis=1) == shares.argmax(axis=1)).all()
    assert (found.max(axis=1) <= shares.max(axis=1) + 1e-12).all()


@given(st.integers(0, 60), st.integers(0, 2**32 - 1))
def test_another_label_is_below_what_is_usual_in_one_of_ten_cases(n_labels, seed):
    rng = np.random.default_rng(seed)
    logs, codes = rng.normal(size=(n_labels, 3)), rng.integers(0, 3, n_labels)
    own = sorted(logs[i, c] for i, c in enumerate(codes))
    fits = [value for rank, value in enumerate(own, 1) if 10 * rank <= n_labels + 1]
    assert usual_density(logs, codes) == (fits[-1] if fits else -np.inf)
    assert (len(fits) == 0) == (n_labels < 9)


def test_fewer_than_nine_labels_doubt_nobody():
    assert (trust(np.array([-800.0, -np.inf]), -np.inf, np.ones(2)) == 1).all()


@pytest.fixture(scope="module")
def digits_without_two():
    """Digits, three labels of each class but 8 and 9."""
    from sklearn.datasets import load_digits

    X, truth = load_digits(return_X_y=True)
    y, rng = np.full(len(X), -1), np.random.default_rng(0)
    for c in range(8):
        y[rng.choice(np.flatnonzero(truth == c), 3, replace=False)] = c
    return X / 16, truth, y, ManifoldKNNClassifier().fit(X / 16, y)


def test_rows_of_classes_without_labels_are_doubted(digits_without_two):
    _, truth, y, clf = digits_without_two
    confidence = clf.label_distributions_.max(axis=1)
    known = confidence[(truth < 8) & (y < 0)].mean()
    assert known > 0.9
    assert confidence[truth >= 8].mean() < known - 0.2


def test_noise_is_doubted(digits_without_two):
    X, truth, y, clf = digits_without_two
    noise = np.random.default_rng(1).random((300, 64))
    shares = clf.predict_proba(noise)
    assert shares.max(axis=1).mean() < 0.5
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    sure = ManifoldKNNClassifier(abstain_below=0.5).fit(X, y)
    assert (sure.predict(noise) == -1).all()
    known = (truth < 8) & (y < 0)
    assert (sure.predict(X[known]) >= 0).mean() > 0.95


def test_fitted_rows_are_doubted_as_new_ones_that_equal_them(digits_without_two):
    X, _, y, clf = digits_without_two
    rest = y < 0
    assert np.array_equal(clf.predict_proba(X[rest]), clf.label_distributions_[rest])
    assert (clf.predict(X[rest]) == clf.transduction_[rest]).all()
    best = clf.classes_[clf.label_distributions_.argmax(axis=1)]
    assert (best[rest] == clf.transduction_[rest]).all()


def test_hidden_labels_are_doubted_as_well(digits_without_two):
    *_, clf = digits_without_two
    hidden, vote = clf.hidden_labels_, clf.fitted_.vote
    assert np.isfinite(vote.usual)
    np.testing.assert_allclose(hidden.shares.sum(axis=1), 1)
    # ⌊25/10⌋ of 24 labels are at or below what is usual.
    assert clf.hidden_labels_.shares.max(axis=1).min() < 0.99


def test_the_answer_stays_where_hardly_any_trust_is_left():
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(size=(60, 2)), rng.normal(size=(60, 2)) + 8]) / 10
    y = np.full(120, -1)
    y[[0, 1, 2, 3, 4, 5, 60, 61, 62, 63, 64, 65]] = np.repeat([0, 1], 6)
    clf = ManifoldKNNClassifier().fit(X, y)
    far = np.array([[-1e6, 0.0], [1e6, 1e6]])
    assert clf.predict(far).tolist() == [0, 1]
    shares = clf.predict_proba(far)
    assert (shares.argmax(axis=1) == [0, 1]).all()
    assert (shares.max(axis=1) < 0.51).all()


def test_the_vote_of_the_paper_is_as_it_was():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(80, 3)), np.full(80, -1)
    y[:20] = np.arange(20) % 2
    clf = ManifoldKNNClassifier(vote="neighbors").fit(X, y)
    weights, voters = clf.kneighbors()
    ones = (weights * y[voters]).sum(axis=1) / weights.sum(axis=1)
    np.testing.assert_allclose(clf.label_distributions_[:, 1], ones, atol=1e-9)
