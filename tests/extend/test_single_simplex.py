"""One point in plain numbers: the very bits that many points at once give."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import manifoldknn.extend.simplex as simplex_module
from manifoldknn import simplex_weights
from manifoldknn.extend.single_simplex import active_set


def by_arrays(X, neighbors):
    gram, order = simplex_module._sorted_gram(X, neighbors)
    z = np.empty(neighbors.shape[:2])
    np.put_along_axis(z, order, simplex_module.active_set(gram, 1000).T, axis=1)
    return z


@settings(deadline=None, max_examples=300)
@given(
    seed=st.integers(0, 2**32 - 1),
    k=st.integers(1, 15),
    d=st.integers(1, 20),
    rounded=st.booleans(),
    repeated=st.booleans(),
    scale=st.sampled_from([1e-150, 1e-6, 1.0, 1e150]),
    far=st.sampled_from([0.0, 3.0, 100.0]),
)
def test_the_same_bits_as_arrays(seed, k, d, rounded, repeated, scale, far):
    rng = np.random.default_rng(seed)
    X, neighbors = rng.normal(size=(6, d)) + far, rng.normal(size=(6, k, d))
    if rounded:  # collinear, cospherical, equal
        X, neighbors = np.round(X), np.round(neighbors)
    if repeated:
        neighbors[:, -1] = neighbors[:, 0]
        X[0] = neighbors[0, 0]
    X, neighbors = X * scale, neighbors * scale
    together = by_arrays(X, neighbors)
    for row in range(6):
        alone = simplex_weights(X[row : row + 1], neighbors[row : row + 1])
        np.testing.assert_array_equal(alone[0], together[row])


def test_giving_up_is_left_to_arrays(monkeypatch):
    rng = np.random.default_rng(0)
    X, neighbors = rng.normal(size=(1, 5)), rng.normal(size=(1, 8, 5))
    expected = by_arrays(X, neighbors)
    assert active_set([[1.0, 0.0], [0.0, 1.0]], 1) is None
    monkeypatch.setattr(simplex_module.single_simplex, "active_set", lambda *_: None)
    np.testing.assert_array_equal(simplex_weights(X, neighbors), expected)
