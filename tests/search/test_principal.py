import numpy as np
import pytest

import manifoldknn.base.distances as distances
from manifoldknn.search.inverted import PrincipalAxes


@pytest.mark.parametrize(("m", "d"), [(40, 12), (12, 40), (20, 20)])
@pytest.mark.parametrize("block_bytes", [1 << 24, 800])
def test_axes_are_the_eigenvectors_of_the_covariance(monkeypatch, m, d, block_bytes):
    monkeypatch.setattr(distances, "_ROW_BYTES", block_bytes)
    rng = np.random.default_rng(m)
    X = (5 + rng.normal(size=(60, d)) * np.arange(1, d + 1)).astype(np.float32)
    chosen = np.sort(rng.choice(60, m, replace=False))
    true = np.linalg.eigh(np.cov(X[chosen], rowvar=False))[1][:, ::-1]
    found = PrincipalAxes(X, chosen).leading(5)
    assert found.dtype == np.float32
    assert found.shape == (d, 5)
    # Up to their signs.
    np.testing.assert_allclose(np.abs(found.T @ true[:, :5]), np.eye(5), atol=1e-4)


@pytest.mark.parametrize(("m", "d", "rank"), [(30, 50, 29), (50, 30, 30), (10, 11, 9)])
def test_all_axes_keep_distances_between_the_rows(m, d, rank):
    X = np.random.default_rng(0).normal(size=(m, d))
    axes = PrincipalAxes(X, np.arange(m)).leading(d)
    assert axes.shape == (d, rank)
    np.testing.assert_allclose(axes.T @ axes, np.eye(rank), atol=1e-5)
    turned = X @ axes
    for row in range(1, m):
        assert np.linalg.norm(turned[row] - turned[0]) == pytest.approx(
            np.linalg.norm(X[row] - X[0]), rel=1e-5
        )
