"""Tests of `manifoldknn.extend.simplex` against solvers that share nothing with it."""

import itertools
import tracemalloc

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from manifoldknn.extend import simplex
from manifoldknn.extend.simplex import simplex_weights


def objectives(X, neighbors, z):
    """Squared residual of each row, from the residual itself."""
    residual = np.einsum("mkd,mk->md", neighbors - X[:, None], z)
    return (residual**2).sum(axis=1)


def scales(X, neighbors):
    """The largest squared distance of each row: the unit of its objective and slacks."""
    return ((neighbors - X[:, None]) ** 2).sum(axis=2).max(axis=1)


def enumerated(x, neighbors):
    """Optimum by trying every support: least squares under the sum, the best feasible one."""
    best, best_z = np.inf, None
    for size in range(1, len(neighbors) + 1):
        for support in itertools.combinations(range(len(neighbors)), size):
            origin = neighbors[support[0]]
            edges = (neighbors[list(support[1:])] - origin).T
            w = np.linalg.lstsq(edges, x - origin, rcond=1e-10)[0] if size > 1 else np.zeros(0)
            weights = np.append(1 - w.sum(), w)
            if (weights < -1e-10).any():
                continue
            z = np.zeros(len(neighbors))
            z[list(support)] = np.maximum(weights, 0) / np.maximum(weights, 0).sum()
            value = ((neighbors.T @ z - x) ** 2).sum()
            if value < best:
                best, best_z = value, z
    return best, best_z


def assert_feasible(z):
    assert z.dtype == np.float64
    assert (z >= 0).all()
    np.testing.assert_allclose(z.sum(axis=1), 1, rtol=0, atol=1e-12)


def kkt_violation(X, neighbors, z):
    """Worst violation of the optimality conditions, relative to each row's scale."""
    diffs = (neighbors - X[:, None]).astype(np.longdouble)
    size = np.abs(diffs).max(axis=(1, 2), keepdims=True)
    diffs /= np.where(size > 0, size, 1)
    residual = np.einsum("mkd,mk->md", diffs, z)
    slack = np.einsum("mkd,md->mk", diffs, residual) - (residual**2).sum(axis=1)[:, None]
    unit = (diffs**2).sum(axis=2).max(axis=1)
    violation = np.maximum(-slack, np.where(z > 0, slack, 0)).max(axis=1)
    return float((violation / np.where(unit > 0, unit, 1)).max())


def random_problem(m, k, d, seed=0):
    rng = np.random.default_rng(seed)
    X, neighbors = rng.normal(size=(m, d)), rng.normal(size=(m, k, d))
    return X, nearest_first(X, neighbors)


def nearest_first(X, neighbors):
    order = np.argsort(((neighbors - X[:, None]) ** 2).sum(axis=2), axis=1, kind="stable")
    return np.take_along_axis(neighbors, order[:, :, None], axis=1)


def degenerate_problems(m=200, k=10, seed=0):
    """Neighbourhoods with every kind of dependence, by name."""
    rng = np.random.default_rng(seed)
    for d in (1, 2, 3, 16):
        X, neighbors = rng.normal(size=(m, d)), rng.normal(size=(m, k, d))
        yield f"random d={d}", X, neighbors
        yield f"inside d={d}", neighbors.mean(axis=1), neighbors
        yield f"duplicates d={d}", X, neighbors[:, rng.integers(0, 3, k)]
        yield f"inside duplicates d={d}", neighbors[:, :3].mean(axis=1), neighbors[:, [0, 1, 2] * 3]
        # Tenths are not exact in binary: dependent but for rounding.
        grid = rng.integers(0, 4, (m, k, d)) * 0.1
        yield f"grid d={d}", rng.integers(0, 4, (m, d)) * 0.1 + 0.05, grid
        line, at = rng.normal(size=(2, m, 1, d)), rng.normal(size=(m, k, 1))
        for noise in (0.0, 1e-15, 1e-12, 1e-8, 1e-5):
            collinear = line[0] + at * line[1] + noise * rng.normal(size=(m, k, d))
            yield f"collinear {noise} d={d}", X, collinear
            yield f"on the line {noise} d={d}", (line[0] + 0.1 * line[1])[:, 0], collinear
            cluster = line[0] + noise * rng.normal(size=(m, k, d))
            yield f"cluster {noise} d={d}", X, cluster
        for near in (1e-6, 1e-12):
            spread = rng.normal(size=(m, k, d))
            spread[:, 0] *= near
            yield f"one at {near} d={d}", np.zeros((m, d)), spread
            yield f"last at {near} d={d}", np.zeros((m, d)), spread[:, ::-1]
            spread[:, : k // 2] *= near
            yield f"half at {near} d={d}", np.zeros((m, d)), spread


def test_known_answers():
    square = [[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]]
    z = simplex_weights([[1.0, -1.0], [3.0, 3.0], [2.5, 0.5]], [square] * 3)
    np.testing.assert_allclose(z, [[0.5, 0, 0.5, 0], [0, 0, 0, 1], [0, 0, 0.75, 0.25]], atol=1e-15)


@pytest.mark.parametrize(
    ("k", "d"), [(1, 3), (2, 1), (2, 4), (4, 2), (5, 3), (6, 6), (6, 1), (3, 9)]
)
def test_matches_enumeration_of_supports(k, d):
    X, neighbors = random_problem(40, k, d, seed=10 * k + d)
    X[::2] = 0.5 * X[::2] + 0.5 * neighbors[::2].mean(axis=1)  # more of them inside the hull
    z = simplex_weights(X, neighbors)
    best, best_z = zip(*map(enumerated, X, neighbors))
    assert_feasible(z)
    assert (np.abs(objectives(X, neighbors, z) - best) <= 1e-12 * scales(X, neighbors)).all()
    if k <= d + 1:  # affinely independent: the solution is unique
        np.testing.assert_allclose(z, best_z, rtol=0, atol=1e-9)


@pytest.mark.parametrize("d", [2, 5, 12, 100])
def test_matches_general_solvers_for_ten_neighbours(d):
    X, neighbors = random_problem(25, 10, d, seed=d)
    X *= 0.5
    z = simplex_weights(X, neighbors)
    assert_feasible(z)
    found = objectives(X, neighbors, z)
    for i, (x, n) in enumerate(zip(X, neighbors)):
        weight = 1e5
        system, target = np.vstack([n.T, np.full(10, weight)]), np.append(x, weight)
        by_nnls = scipy.optimize.nnls(system, target)[0]
        by_nnls /= by_nnls.sum()
        by_slsqp = scipy.optimize.minimize(
            lambda w, n=n, x=x: ((n.T @ w - x) ** 2).sum(),
            np.full(10, 0.1),
            jac=lambda w, n=n, x=x: 2 * n @ (n.T @ w - x),
            bounds=[(0, None)] * 10,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: w * 0 + 1},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        scale = ((n - x) ** 2).sum(axis=1).max()
        assert abs(((n.T @ by_nnls - x) ** 2).sum() - found[i]) <= 1e-8 * scale
        assert by_slsqp.success
        assert abs(by_slsqp.fun - found[i]) <= 1e-8 * scale
        if d >= 9:
            np.testing.assert_allclose(z[i], by_nnls, rtol=0, atol=1e-7)
            np.testing.assert_allclose(z[i], by_slsqp.x, rtol=0, atol=1e-4)


@st.composite
def small_problems(draw):
    """Up to six points of a small integer grid, many equal or collinear, k above and below d."""
    k, d = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    coordinate = st.integers(-2, 2)
    points = draw(st.lists(st.lists(coordinate, min_size=d, max_size=d), min_size=1, max_size=k))
    chosen = draw(st.lists(st.sampled_from(points), min_size=k, max_size=k))
    x = draw(st.lists(coordinate, min_size=d, max_size=d))
    unit = draw(st.sampled_from([1.0, 0.1, 1 / 3]))
    shift = draw(st.sampled_from([0.0, 0.5, 1e6]))
    return np.array([x]) * unit, (np.array([chosen]) + shift) * unit


@settings(max_examples=400, deadline=None)
@given(small_problems())
def test_ties_and_dependences_match_enumeration(problem):
    X, neighbors = problem
    z = simplex_weights(X, neighbors)
    assert_feasible(z)
    best, _ = enumerated(X[0], neighbors[0])
    scale = max(scales(X, neighbors)[0], np.finfo(float).tiny)
    assert abs(objectives(X, neighbors, z)[0] - best) <= 1e-10 * scale
    assert kkt_violation(X, neighbors, z) <= 1e-12


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 25), st.integers(1, 40), st.integers(0, 3))
def test_every_shape_satisfies_kkt(seed, k, d, rank):
    """Neighbours of affine dimension `rank` (0 for all equal) plus as many again at random."""
    rng = np.random.default_rng(seed)
    flat = rng.normal(size=(20, k, rank)) @ rng.normal(size=(20, rank, d))
    loose = np.where(rng.random((20, k, 1)) < 0.5, rng.normal(size=(20, k, d)), flat)
    X, neighbors = rng.normal(size=(40, d)), np.concatenate([flat, loose])
    z = simplex_weights(X, neighbors)
    assert_feasible(z)
    assert kkt_violation(X, neighbors, z) <= 1e-12


def test_degenerate_neighbourhoods_satisfy_kkt(monkeypatch):
    """And do so by the active-set method alone."""

    def refuse(*_):
        raise AssertionError("the fallback was needed")

    monkeypatch.setattr(simplex, "_fallback", refuse)
    for name, X, neighbors in degenerate_problems():
        z = simplex_weights(X, neighbors)
        assert_feasible(z)
        assert kkt_violation(X, neighbors, z) <= 1e-12, name


def test_a_much_nearer_neighbour_is_resolved_at_its_own_scale():
    """The foot of the perpendicular from the origin to a segment from 1e-6 to 1."""
    near, far = np.array([1e-6, 1e-6]), np.array([-1.0, 0.0])
    z = simplex_weights([[0.0, 0.0]], [[near, far]])[0]
    edge = far - near
    np.testing.assert_allclose(z[1], -(near @ edge) / (edge @ edge), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_point_equal_to_a_neighbour_takes_the_first_such(dtype):
    rng = np.random.default_rng(0)
    neighbors = rng.integers(-50, 50, (60, 7, 3)).astype(dtype)
    first = rng.integers(0, 7, 60)
    X = neighbors[np.arange(60), first]
    neighbors[::2, 6] = X[::2]  # a second copy, later
    expected = np.eye(7)[(neighbors == X[:, None]).all(axis=2).argmax(axis=1)]
    np.testing.assert_array_equal(simplex_weights(X, neighbors), expected)


def test_exact_match_wins_over_a_neighbour_whose_squared_distance_underflows():
    neighbors = [[[1e-200], [0.0], [1.0], [0.0]]]
    np.testing.assert_array_equal(simplex_weights([[0.0]], neighbors), [[0, 1, 0, 0]])


def test_all_neighbours_equal_goes_to_the_first():
    neighbors = np.full((2, 4, 3), 0.1)
    X = np.array([[0.3, 0.7, -0.1], [0.1, 0.1, 0.1]])
    np.testing.assert_array_equal(simplex_weights(X, neighbors), [[1, 0, 0, 0]] * 2)


def test_batch_does_not_change_a_row():
    X, neighbors = random_problem(3000, 10, 12, seed=5)  # more than one chunk
    together = simplex_weights(X, neighbors)
    for i in [*range(0, 3000, 97), 2999]:
        alone = simplex_weights(X[i : i + 1], neighbors[i : i + 1])
        np.testing.assert_allclose(alone[0], together[i], rtol=0, atol=1e-12)
    shuffle = np.random.default_rng(0).permutation(3000)
    moved = simplex_weights(X[shuffle], neighbors[shuffle])
    np.testing.assert_allclose(moved, together[shuffle], rtol=0, atol=1e-12)


def test_rounding_does_not_depend_on_the_batch():
    X, neighbors = random_problem(50, 20, 12, seed=7)
    gram, _ = simplex._sorted_gram(X, neighbors)
    together = simplex.active_set(gram, 250)
    alone = [simplex.active_set(gram[:, :, i : i + 1], 250) for i in range(50)]
    np.testing.assert_array_equal(together, np.hstack(alone))


@pytest.mark.parametrize("unit", [1, 0.1])  # ties that are exact, and ties up to rounding
def test_batch_does_not_change_the_choice_among_tied_solutions(unit):
    rng = np.random.default_rng(1)
    X, neighbors = rng.integers(0, 5, (400, 2)) * unit, rng.integers(0, 5, (400, 12, 2)) * unit
    together = simplex_weights(X, neighbors)
    alone = [simplex_weights(X[i : i + 1], neighbors[i : i + 1])[0] for i in range(400)]
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(together, simplex_weights(X, neighbors))


@pytest.mark.parametrize("exponent", [-1000, -498, -200, 40, 498, 1000])
def test_power_of_two_scaling_changes_nothing(exponent):
    X, neighbors = random_problem(100, 8, 5)
    scaled = simplex_weights(np.ldexp(X, exponent), np.ldexp(neighbors, exponent))
    np.testing.assert_array_equal(scaled, simplex_weights(X, neighbors))


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_extreme_scales(scale):
    X, neighbors = random_problem(100, 8, 10)
    expected = simplex_weights(X, neighbors)
    z = simplex_weights(X * scale, neighbors * scale)
    np.testing.assert_allclose(z, expected, rtol=0, atol=1e-10)


def test_subnormal_features():
    rng = np.random.default_rng(6)
    X, neighbors = rng.integers(-9, 9, (50, 3)), rng.integers(-9, 9, (50, 6, 3))
    tiny = np.nextafter(0.0, 1.0)
    np.testing.assert_array_equal(
        simplex_weights(X * tiny, neighbors * tiny), simplex_weights(X, neighbors)
    )


def test_differences_that_overflow():
    rng = np.random.default_rng(2)
    X, neighbors = rng.choice([-1.0, 1.0], (30, 6)), rng.choice([-1.0, 0.5, 1.0], (30, 5, 6))
    huge = 2.0**1023
    np.testing.assert_array_equal(
        simplex_weights(X * huge, neighbors * huge), simplex_weights(X, neighbors)
    )


def test_large_offset_costs_no_accuracy():
    """Integers about 2**27: differences are exact, squares of the coordinates are not."""
    rng = np.random.default_rng(3)
    X, neighbors = rng.integers(-9, 9, (200, 6)) / 16, rng.integers(-9, 9, (200, 10, 6)) / 16
    offset = 2.0**27
    np.testing.assert_array_equal(
        simplex_weights(X + offset, neighbors + offset), simplex_weights(X, neighbors)
    )


def test_input_types_are_upcast():
    rng = np.random.default_rng(4)
    X, neighbors = rng.integers(0, 200, (50, 4)), rng.integers(0, 200, (50, 6, 4))
    expected = simplex_weights(X.astype(float), neighbors.astype(float))
    for dtype in (np.uint8, np.int64, np.float32, np.float16):  # uint8 differences would wrap
        z = simplex_weights(X.astype(dtype), neighbors.astype(dtype))
        np.testing.assert_array_equal(z, expected)
    np.testing.assert_array_equal(simplex_weights(X.tolist(), neighbors.tolist()), expected)


def test_order_of_neighbours_only_permutes_the_weights():
    X, neighbors = random_problem(100, 7, 9, seed=8)
    back = simplex_weights(X, neighbors[:, ::-1])[:, ::-1]
    np.testing.assert_allclose(back, simplex_weights(X, neighbors), rtol=0, atol=1e-12)


def test_inputs_are_left_alone():
    X, neighbors = random_problem(20, 5, 3)
    before = X.copy(), neighbors.copy()
    X.flags.writeable = neighbors.flags.writeable = False
    simplex_weights(X, neighbors)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(neighbors, before[1])


def test_memory_beyond_the_input_is_bounded():
    neighbors = np.zeros((1500, 10, 1000))  # 120 MB
    neighbors += np.random.default_rng(0).normal(size=(10, 1000))
    X = neighbors[:, 0] + 0.5
    tracemalloc.start()
    try:
        simplex_weights(X, neighbors)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64e6


@pytest.mark.parametrize("max_iter", [0, 1, 3])
def test_fallback_reaches_the_same_optimum(max_iter, monkeypatch):
    calls = []
    original = simplex._fallback

    def counting(gram, z):
        calls.append(1)
        return original(gram, z)

    monkeypatch.setattr(simplex, "_fallback", counting)
    for d in (2, 5, 30):
        X, neighbors = random_problem(60, 10, d, seed=d)
        gram, order = simplex._sorted_gram(X, neighbors)
        z = np.empty((60, 10))
        np.put_along_axis(z, order, simplex.active_set(gram, max_iter).T, axis=1)
        assert_feasible(z)
        assert kkt_violation(X, neighbors, z) <= 1e-8
        if d == 30:
            np.testing.assert_allclose(z, simplex_weights(X, neighbors), rtol=0, atol=1e-8)
    assert len(calls) > 60


def test_fallback_keeps_the_iterate_if_least_squares_gives_up_or_is_worse(monkeypatch):
    X, neighbors = random_problem(1, 5, 4)
    gram = simplex._sorted_gram(X, neighbors)[0][:, :, 0]
    best = simplex_weights(X, neighbors)[0]

    def give_up(*_):
        raise RuntimeError("Maximum number of iterations reached.")

    for nnls in (give_up, lambda *_: (np.eye(5)[4], 0.0)):
        monkeypatch.setattr(scipy.optimize, "nnls", nnls)
        np.testing.assert_array_equal(simplex._fallback(gram, best), best)


def test_fallback_leaves_a_corner_for_weights_of_sum_one():
    gram = np.array([[2.0, 0.0], [0.0, 2.0]])
    z = simplex._fallback(gram, np.array([1.0, 0.0]))
    np.testing.assert_allclose(z, [0.5, 0.5], rtol=1e-14)


def test_no_rows():
    assert simplex_weights(np.empty((0, 3)), np.empty((0, 5, 3))).shape == (0, 5)


def test_one_neighbour_takes_all():
    X, neighbors = random_problem(5, 1, 3)
    np.testing.assert_array_equal(simplex_weights(X, neighbors), np.ones((5, 1)))


@pytest.mark.parametrize(
    ("X", "neighbors", "message"),
    [
        (np.zeros(3), np.zeros((1, 2, 3)), r"X must have shape \(m, d\)"),
        (np.zeros((1, 3)), np.zeros((2, 3)), r"neighbors must have shape \(m, k, d\)"),
        (np.zeros((2, 3)), np.zeros((1, 2, 3)), r"neighbors has shape \(1, 2, 3\) and X \(2, 3\)"),
        (np.zeros((1, 3)), np.zeros((1, 2, 4)), r"neighbors has shape \(1, 2, 4\) and X \(1, 3\)"),
        (np.zeros((1, 3)), np.zeros((1, 0, 3)), "k and d at least 1"),
        (np.zeros((1, 0)), np.zeros((1, 2, 0)), "k and d at least 1"),
        (np.zeros((1, 3), complex), np.zeros((1, 2, 3)), "X must hold real numbers"),
        (np.zeros((1, 3)), np.full((1, 2, 3), "a"), "neighbors must hold real numbers"),
        ([[0.0, np.nan]], np.zeros((1, 2, 2)), "X contains NaN or infinity"),
        ([[0.0, np.inf]], np.full((1, 2, 2), np.inf), "X contains NaN or infinity"),
        (np.zeros((1, 2)), [[[0.0, 1.0], [-np.inf, 0.0]]], "neighbors contains NaN or infinity"),
        (np.zeros((1, 2)), [[[0.0, 1.0], [np.nan, 0.0]]], "neighbors contains NaN or infinity"),
    ],
)
def test_bad_input_is_named(X, neighbors, message):
    with pytest.raises(ValueError, match=message):
        simplex_weights(X, neighbors)
