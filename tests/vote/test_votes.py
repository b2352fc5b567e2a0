import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from manifoldknn.vote.votes import (
    ClassVote,
    NeighborVote,
    class_prior,
    class_shares,
    heaviest,
    normalized,
    winners,
)


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 20),
    n_labeled=st.integers(1, 12),
    n_classes=st.integers(1, 5),
    k=st.integers(1, 15),
    seed=st.integers(0, 2**32 - 1),
)
def test_neighbours_vote_as_equation_6_row_by_row(n, n_labeled, n_classes, k, seed):
    rng = np.random.default_rng(seed)
    weights = rng.random((n, n_labeled))
    weights[rng.random(n) < 0.2] = 0
    codes = rng.integers(0, n_classes, n_labeled)
    with np.errstate(divide="ignore"):
        logs = np.log(weights) + 1000 * rng.normal(size=(n, 1))  # any scale of the row
    shares = NeighborVote(np.full(n_classes, 1 / n_classes), codes, k).shares(logs)
    expected, labels = oracles.vote(weights, codes, k, n_classes)
    np.testing.assert_allclose(shares, expected, atol=1e-9)
    assert (winners(shares) == labels).all()


def test_equal_voters_are_taken_by_position():
    weights, voters = heaviest(np.array([[-5.0, -3.0, -3.0, -3.0], [-np.inf] * 4]), 2)
    assert voters.tolist() == [[1, 2], [0, 1]]
    assert weights.tolist() == [[1.0, 1.0], [0.0, 0.0]]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 5),
    st.sampled_from([1e-3, 1.0, 30.0]),
    st.sampled_from([np.float32, np.float64]),
)
def test_classes_vote_as_the_formula_has_it(seed, n_classes, sharpness, dtype):
    rng = np.random.default_rng(seed)
    f = rng.random((12, n_classes)) ** 4
    f[rng.random(f.shape) < 0.1] = 0
    f[0] = 0
    prior = rng.dirichlet(np.ones(n_classes))
    with np.errstate(divide="ignore"):
        logs = (np.log(f) - np.arange(12)[:, None]).astype(dtype)
    found = ClassVote(prior, sharpness).shares(logs)
    expected = oracles.probabilities(f, prior, sharpness)
    np.testing.assert_allclose(found, expected, atol=1e-9 if dtype == np.float64 else 2e-5)
    assert (found[0] == 0).all()


def test_densities_that_no_float_holds():
    found = ClassVote(np.array([0.5, 0.5]), 0.001).shares(np.array([[-1e6, -1e6 - 1000.0]]))
    share = 1 / (1 + np.exp(-1.0))
    np.testing.assert_allclose(found, [[0.98 * share + 0.01, 0.98 * (1 - share) + 0.01]])


def test_ties_go_to_the_first_class_even_if_rounding_disagrees():
    shares = np.array([[0.25, 0.375, 0.375], [0.5, 0.5, 0.0], [1 / 3, 1 / 3 + 1e-16, 1 / 3]])
    assert winners(shares).tolist() == [1, 0, 0]
    assert winners(np.array([[0.4999999, 0.5000001]])).tolist() == [1]


def test_rows_without_votes_stay_empty():
    assert normalized(np.array([[2.0, 6.0], [0.0, 0.0]])).tolist() == [[0.25, 0.75], [0.0, 0.0]]
    assert class_shares(np.zeros((1, 2)), np.array([[0, 1]]), 2).tolist() == [[0.0, 0.0]]


CLASSES = np.array(["a", "b", "c"])
COUNTS = np.array([1, 3, 1])


@pytest.mark.parametrize(
    ("prior", "expected"),
    [
        ("equal", [1 / 3, 1 / 3, 1 / 3]),
        ("labeled", [1 / 3, 1 / 3, 1 / 3]),  # so few could differ by chance
        ([1, 2, 5], [0.125, 0.25, 0.625]),
        ((0.2, 0.3, 0.5), [0.2, 0.3, 0.5]),
        (np.array([3, 3, 3], dtype=np.int8), [1 / 3, 1 / 3, 1 / 3]),
        ([1e308, 1e308, 1e308], [1 / 3, 1 / 3, 1 / 3]),
    ],
)
def test_class_prior_becomes_shares(prior, expected):
    np.testing.assert_allclose(class_prior(prior, COUNTS, CLASSES), expected, rtol=1e-12)


@given(st.lists(st.integers(1, 500), min_size=1, max_size=6))
def test_label_shares_are_shrunk_by_what_may_be_chance(counts):
    codes = np.repeat(np.arange(len(counts)), counts)
    found = class_prior("labeled", np.array(counts), np.arange(len(counts)))
    np.testing.assert_allclose(found, oracles.prior("labeled", codes, len(counts)), rtol=1e-9)
    assert found.sum() == pytest.approx(1.0)
    assert (found > 0).all()


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ("uniform", "class_prior='uniform' must be 'equal', 'labeled' or one number for each"),
        (None, "class_prior=None must be 'equal', 'labeled' or one number for each"),
        ([0.5, 0.5], "3 classes a, b, c, in this order"),
        ([0.25] * 4, "one number for each of the 3 classes"),
        ([[1, 1, 1]], "one number for each of the 3 classes"),
        (0.5, "one number for each of the 3 classes"),
        (["a", "b", "c"], "one number for each of the 3 classes"),
        ({"a": 1, "b": 1, "c": 1}, "one number for each of the 3 classes"),
        ([1, 2, 0], "must hold positive, finite numbers"),
        ([1, 2, -3], "must hold positive, finite numbers"),
        ([1, 2, np.nan], "must hold positive, finite numbers"),
        ([1, 2, np.inf], "must hold positive, finite numbers"),
        ([1e308, 1, 1e-300], "must hold positive, finite numbers"),
    ],
)
def test_wrong_class_priors(prior, message):
    with pytest.raises(ValueError, match=message):
        class_prior(prior, COUNTS, CLASSES)
