import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from manifoldknn.vote import class_mass_factors, class_shares, normalized, winners


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 20),
    n_labeled=st.integers(1, 12),
    n_classes=st.integers(1, 5),
    k=st.integers(1, 15),
    seed=st.integers(0, 2**32 - 1),
)
def test_equals_equation_6_row_by_row(n, n_labeled, n_classes, k, seed):
    rng = np.random.default_rng(seed)
    weights = rng.random((n, n_labeled))
    weights[rng.random(n) < 0.2] = 0
    codes = rng.integers(0, n_classes, n_labeled)
    order = np.argsort(-weights, axis=1, kind="stable")
    shares = class_shares(np.take_along_axis(weights, order, axis=1), codes[order], k, n_classes)
    expected, labels = oracles.vote(weights, codes, k, n_classes)
    np.testing.assert_allclose(shares, expected, atol=1e-12)
    assert (winners(shares) == labels).all()


def test_ties_go_to_the_first_class_even_if_rounding_disagrees():
    shares = np.array([[0.25, 0.375, 0.375], [0.5, 0.5, 0.0], [1 / 3, 1 / 3 + 1e-16, 1 / 3]])
    assert winners(shares).tolist() == [1, 0, 0]
    assert winners(np.array([[0.4999999, 0.5000001]])).tolist() == [1]


def test_normalized_leaves_empty_rows_alone():
    assert normalized(np.array([[2.0, 6.0], [0.0, 0.0]])).tolist() == [[0.25, 0.75], [0.0, 0.0]]


def test_class_mass_factors_bring_the_masses_to_the_prior():
    shares = np.array([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2]])
    factors = class_mass_factors(shares, np.array([0.5, 0.5]))
    mass = (shares * factors).sum(axis=0)
    np.testing.assert_allclose(mass / mass.sum(), [0.5, 0.5])
    nobody = np.array([[1.0, 0.0]])
    assert class_mass_factors(nobody, np.array([0.5, 0.5])).tolist() == [0.5, 1.0]
