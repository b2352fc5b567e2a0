import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifoldknn.vote.similarities import Similarities, combined, row_chunks


def random_similarities(rng, n, columns, spread=3.0):
    logs = spread * rng.normal(size=(n, columns))
    logs[rng.random(logs.shape) < 0.1] = -np.inf
    logs[rng.random(n) < 0.1] = -np.inf
    return logs, Similarities.from_logarithms(logs.copy())


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 20), st.integers(1, 6), st.integers(1, 5))
def test_combinations_are_sums_of_the_numbers(seed, n, columns, k):
    rng = np.random.default_rng(seed)
    logs, known = random_similarities(rng, n, columns)
    z, indices = rng.dirichlet(np.ones(k), 7), rng.integers(0, n, (7, k))
    z[0] = np.eye(k)[0]
    found = combined(z, indices, known)
    expected = np.einsum("ij,ijc->ic", z, np.exp(logs)[indices])
    np.testing.assert_allclose(np.exp(found.logarithms()), expected, rtol=1e-9)
    np.testing.assert_array_equal(found.unreached, ~expected.any(axis=1))
    # All weight on one sample: exactly what it has.
    np.testing.assert_array_equal(found.logs[0], known.logs[indices[0, 0]])
    assert found.log_scale[0] == known.log_scale[indices[0, 0]]


def test_neighbours_a_thousand_orders_apart():
    logs = np.array([[0.0, -5000.0], [-4000.0, -2000.0], [-np.inf, -np.inf]])
    known = Similarities.from_logarithms(logs.copy())
    found = combined(np.array([[0.5, 0.25, 0.25]]), np.array([[0, 1, 2]]), known).logarithms()
    np.testing.assert_allclose(found, [[np.log(0.5), -2000 + np.log(0.25)]], rtol=1e-12)


def test_single_precision_is_relative_to_the_row():
    logs = np.array([[-1e6, -1e6 - 3.0], [-np.inf, -np.inf]])
    known = Similarities.from_logarithms(logs.copy(), np.float32)
    assert known.logs.dtype == np.float32
    np.testing.assert_array_equal(known.logarithms(), logs)
    some = known.rows(np.array([1]))
    assert some.unreached.tolist() == [True]


def test_threads_and_chunks_change_no_bit():
    rng = np.random.default_rng(0)
    _, known = random_similarities(rng, 500, 4)
    z, indices = rng.dirichlet(np.ones(6), 40_000), rng.integers(0, 500, (40_000, 6))
    one, two = (combined(z, indices, known, n_jobs=jobs) for jobs in (1, 2))
    np.testing.assert_array_equal(one.logs, two.logs)
    part = combined(z[30_000:30_005], indices[30_000:30_005], known)
    np.testing.assert_array_equal(part.logs, one.logs[30_000:30_005])


@pytest.mark.parametrize(("n", "values"), [(0, 3), (1, 10**9), (100_000, 1), (5000, 40_000)])
def test_chunks_cover_all_rows_within_their_limits(n, values):
    parts = list(row_chunks(n, values, 2))
    rows = np.concatenate([np.arange(n)[part] for part in parts] or [np.empty(0)])
    np.testing.assert_array_equal(rows, np.arange(n))
    sizes = [part.stop - part.start for part in parts]
    assert all(8 * size * values <= 1 << 24 or size <= 64 for size in sizes)
    assert max(sizes, default=0) <= 1 << 14
