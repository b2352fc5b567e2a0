"""Intrinsic dimension: known dimensions, the published formulae, invariance, awkward data."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.stats import ortho_group
from sklearn.neighbors import NearestNeighbors

from manifoldknn.datasets import make_arch_and_s
from manifoldknn.insight.dimension import intrinsic_dimension

METHODS = ("mle", "two_nn")
ROTATION = ortho_group.rvs(10, random_state=0)


def rotated_cube(n, dim, seed=0):
    """Uniform samples of a cube, turned at random in ten dimensions."""
    cube = np.random.default_rng(seed).random((n, dim))
    return np.pad(cube, ((0, 0), (0, 10 - dim))) @ ROTATION


def literal_mle(X, k):
    """The formula of Levina and Bickel, inverses averaged as MacKay and Ghahramani say."""
    inverses = []
    for i in range(len(X)):
        T = sorted(math.dist(X[i], X[j]) for j in range(len(X)) if j != i)
        inverses.append(sum(math.log(T[k - 1] / T[j]) for j in range(k - 1)) / (k - 1))
    return 1 / (sum(inverses) / len(inverses))


def literal_two_nn(X):
    """The recipe of Facco et al., with numpy's least squares for the line through the origin."""
    ratios = []
    for i in range(len(X)):
        T = sorted(math.dist(X[i], X[j]) for j in range(len(X)) if j != i)
        ratios.append(T[1] / T[0])
    ratios.sort()
    points = [
        (math.log(mu), -math.log(1 - i / len(X)))
        for i, mu in enumerate(ratios, start=1)
        if i <= 0.9 * len(X)
    ]
    x, y = np.array(points).T
    return np.linalg.lstsq(x[:, None], y, rcond=None)[0][0]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("method", "dim", "n", "tolerance"),
    [
        ("mle", 1, 1000, 0.05),
        ("mle", 2, 1000, 0.15),
        ("mle", 5, 3000, 0.6),  # edges: too low in many dimensions
        ("two_nn", 1, 1000, 0.15),
        ("two_nn", 2, 1000, 0.3),
        ("two_nn", 5, 3000, 0.6),
    ],
)
def test_cubes(method, dim, n, tolerance, seed):
    estimate = intrinsic_dimension(rotated_cube(n, dim, seed), method=method)
    assert estimate == pytest.approx(dim, abs=tolerance)


@pytest.mark.parametrize("k", [2, 3, 10, 39])
def test_mle_is_the_published_formula(k):
    X = np.random.default_rng(1).standard_normal((40, 3))
    assert intrinsic_dimension(X, n_neighbors=k) == pytest.approx(literal_mle(X, k), rel=1e-10)


@pytest.mark.parametrize("n", [3, 10, 41])
def test_two_nn_is_the_published_recipe(n):
    X = np.random.default_rng(1).standard_normal((n, 3))
    assert intrinsic_dimension(X, method="two_nn") == pytest.approx(literal_two_nn(X), rel=1e-10)


def test_manifold_distributed_or_not():
    curve = make_arch_and_s(2000, noise=0, random_state=0)[0]
    assert intrinsic_dimension(curve) < 1.3
    filled = np.random.default_rng(0).random((2000, 2))
    assert intrinsic_dimension(filled) > 1.7


@pytest.mark.parametrize("method", METHODS)
@given(log_scale=st.integers(-250, 250), shift=st.floats(-1e3, 1e3), seed=st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_scale_shift_and_rotation_do_not_matter(method, log_scale, shift, seed):
    X = rotated_cube(60, 3)
    expected = intrinsic_dimension(X, method=method, n_neighbors=10)
    turned = X @ ortho_group.rvs(10, random_state=seed)
    for same in (X * 10.0**log_scale, X + shift, turned):
        actual = intrinsic_dimension(same, method=method, n_neighbors=10)
        assert actual == pytest.approx(expected, rel=1e-6)


def test_large_offset_in_many_columns_does_not_drown_the_differences():
    # More than 15 features: scikit-learn then multiplies matrices, which cancels badly.
    X = np.random.default_rng(0).random((300, 20))
    expected = intrinsic_dimension(X)
    assert intrinsic_dimension(X + 1e7) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csc_matrix])
def test_repeated_rows_count_once(method, make):
    X = rotated_cube(80, 2)
    expected = intrinsic_dimension(X, method=method)
    repeated = np.random.default_rng(0).permutation(np.vstack([X, X[:30], X[:30], X[:1]]))
    assert intrinsic_dimension(make(repeated), method=method) == pytest.approx(expected, rel=1e-9)


def test_rows_at_distance_zero_under_the_metric_count_once():
    X = rotated_cube(80, 2)
    expected = intrinsic_dimension(X, n_neighbors=5)

    def ignores_last(a, b):
        return float(np.linalg.norm(a[:-1] - b[:-1]))

    thrice = np.column_stack([np.tile(X, (3, 1)), np.arange(240.0)])
    actual = intrinsic_dimension(thrice, metric=ignores_last, n_neighbors=5)
    assert actual == pytest.approx(expected, rel=1e-9)


def test_minus_zero_is_zero():
    X = np.random.default_rng(0).random((30, 2))
    X[:2] = [[0.0, 0.5], [-0.0, 0.5]]
    alone = intrinsic_dimension(np.delete(X, 1, axis=0))
    assert intrinsic_dimension(X) == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_sparse_equals_dense_and_input_stays_as_it_was(method):
    X = np.random.default_rng(0).random((200, 30))
    X[X < 0.8] = 0
    as_csr = sparse.csr_array(X)
    before = as_csr.copy()
    expected = intrinsic_dimension(X, method=method)
    assert intrinsic_dimension(as_csr, method=method) == pytest.approx(expected, rel=1e-6)
    assert (as_csr != before).nnz == 0
    original = X.copy()
    intrinsic_dimension(X, method=method)
    np.testing.assert_array_equal(X, original)


@pytest.mark.parametrize("method", METHODS)
def test_constant_columns_do_not_matter(method):
    X = np.random.default_rng(0).random((100, 2))
    wider = np.column_stack([X, np.full(100, 7.0), np.zeros(100)])
    expected = intrinsic_dimension(X, method=method)
    assert intrinsic_dimension(wider, method=method) == pytest.approx(expected, rel=1e-9)


def test_other_metrics_and_number_types():
    X = np.random.default_rng(0).integers(0, 10**6, size=(200, 3))
    manhattan = intrinsic_dimension(X, metric="manhattan", n_neighbors=10)
    T = np.sort(cdist(X, X, "cityblock"), axis=1)[:, 1:11]
    assert manhattan == pytest.approx(1 / np.mean(np.log(T[:, -1:] / T[:, :-1])))
    as_float32 = intrinsic_dimension(X.astype(np.float32), n_neighbors=10)
    assert as_float32 == pytest.approx(intrinsic_dimension(X, n_neighbors=10), rel=1e-5)
    assert type(manhattan) is float


def test_n_neighbors_is_lowered_to_the_other_distinct_rows():
    X = np.random.default_rng(0).random((10, 2))
    expected = intrinsic_dimension(X, n_neighbors=9)
    assert intrinsic_dimension(np.vstack([X, X]), n_neighbors=500) == pytest.approx(expected)


def test_n_jobs_gives_the_same():
    X = rotated_cube(100, 2)
    assert intrinsic_dimension(X, n_jobs=2) == intrinsic_dimension(X)


def test_one_search_is_enough_without_repeats(monkeypatch):
    calls = []
    fit = NearestNeighbors.fit
    monkeypatch.setattr(NearestNeighbors, "fit", lambda self, X: calls.append(1) or fit(self, X))
    intrinsic_dimension(np.vstack([rotated_cube(50, 2)] * 3))
    assert len(calls) == 1


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_missing_values(bad, make):
    X = np.random.default_rng(0).random((20, 2))
    X[3, 1] = bad
    with pytest.raises(ValueError, match=r"missing or infinite values\. Drop those rows"):
        intrinsic_dimension(make(X))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.ones((50, 3)), "1 distinct row;"),
        (np.zeros((50, 3)), "1 distinct row;"),
        (np.repeat([[0.0], [1.0]], 20, axis=0), "2 distinct rows;"),
    ],
)
def test_too_few_distinct_rows(method, X, words):
    for made in (X, sparse.csr_array(X)):
        with pytest.raises(ValueError, match=words):
            intrinsic_dimension(made, method=method)


def test_regular_grid():
    grid = np.stack(np.meshgrid(np.arange(8), np.arange(8)), axis=-1).reshape(-1, 2)
    with pytest.raises(ValueError, match="same distance, as on a regular grid"):
        intrinsic_dimension(grid, method="two_nn")
    assert intrinsic_dimension(grid) > 1
    with pytest.raises(ValueError, match="same distance"):
        intrinsic_dimension(np.eye(5))  # corners of a simplex


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"method": "pca"}, "method must be one of 'mle', 'two_nn', not 'pca'"),
        ({"method": ["mle"]}, "method must be one of"),
        ({"n_neighbors": 1}, "n_neighbors must be an int of at least 2, not 1"),
        ({"n_neighbors": 2.5}, "n_neighbors must be an int"),
        ({"metric": "cosine"}, "Scale each row to length 1"),
        ({"metric": "sqeuclidean"}, "square of a length"),
        ({"metric": "precomputed"}, "not supported"),
    ],
)
def test_bad_arguments(arguments, words):
    with pytest.raises(ValueError, match=words):
        intrinsic_dimension(rotated_cube(20, 2), **arguments)


def test_cosine_would_halve_the_dimension():
    # Why it is refused: on a sphere, cosine distance is half the square of the chord.
    X = np.random.default_rng(0).standard_normal((1500, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    chord = np.sort(cdist(X, X), axis=1)[:, 1:21]
    squared = 1 / np.mean(np.log(chord[:, -1:] ** 2 / chord[:, :-1] ** 2))
    assert squared == pytest.approx(intrinsic_dimension(X) / 2)
    assert squared == pytest.approx(1, abs=0.1)
