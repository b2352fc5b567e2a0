import numpy as np
import pytest

import oracles
from manifoldknn.distances import distance_blocks, euclidean_pairs


@pytest.mark.parametrize("scale", [1e-160, 1.0, 1e160])
def test_pair_distances_neither_overflow_nor_underflow(scale):
    A = np.array([[3.0, 0.0], [1.0, 1.0]]) * scale
    B = np.array([[0.0, 4.0], [1.0, 1.0]]) * scale
    rows = np.array([0, 1, 1])
    cols = np.array([0, 1, 0])
    expected = np.array([5.0, 0.0, np.sqrt(10.0)]) * scale
    np.testing.assert_allclose(euclidean_pairs(A, B, rows, cols), expected, rtol=1e-14)


def test_distance_blocks_cover_the_rows_asked_for():
    X = np.random.default_rng(6).normal(size=(30, 4))
    rows = np.array([3, 7, 29])
    parts = list(distance_blocks(X, rows, metric="euclidean"))
    assert np.concatenate([part for part, _ in parts]).tolist() == rows.tolist()
    D = np.vstack([block for _, block in parts])
    np.testing.assert_allclose(D, oracles.distance_matrix(X)[rows], atol=1e-7)
