"""The toy sets: shapes, seeds, the curves themselves, and the story that they tell."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.baselines import GeodesicKNNClassifier, WeightedKNNClassifier
from manifoldknn.datasets import (
    make_arch_and_s,
    make_circle_and_strip,
    make_knot,
    make_two_circles,
)
from manifoldknn.datasets.synthetic import _arch, _circle, _mirrored_s, _strand, _strip

WITH_BRIDGES = (make_two_circles, make_circle_and_strip, make_knot)
CURVES = {
    make_two_circles: (_circle(1.0), _circle(0.6)),
    make_circle_and_strip: (_circle(1.0), _strip),
    make_knot: (_strand(0.0), _strand(np.pi)),
}


def test_shapes_and_dtypes():
    X, y, labeled = make_arch_and_s(random_state=0)
    assert X.shape == (400, 2)
    assert X.dtype == np.float64
    assert y.shape == (400,)
    assert y.dtype.kind == labeled.dtype.kind == "i"
    assert np.bincount(y).tolist() == [200, 200]
    assert labeled.shape == (6,)
    assert len(set(labeled.tolist())) == 6
    assert y[labeled].tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("n_samples", "sizes"),
    [(6, (3, 3)), (7, (4, 3)), ((3, 50), (3, 50)), ([20, 10], (20, 10)), (np.int64(10), (5, 5))],
)
def test_sizes(n_samples, sizes):
    X, y, labeled = make_arch_and_s(n_samples, random_state=0)
    assert tuple(np.bincount(y)) == sizes
    assert len(X) == sum(sizes)
    assert len(set(labeled.tolist())) == 6
    assert y[labeled].tolist() == [0, 0, 0, 1, 1, 1]


def test_same_seed_same_set():
    first, again = make_arch_and_s(random_state=3), make_arch_and_s(random_state=3)
    for a, b in zip(first, again):
        np.testing.assert_array_equal(a, b)
    other = make_arch_and_s(random_state=np.random.RandomState(3))
    np.testing.assert_array_equal(first[0], other[0])
    assert not np.array_equal(first[0], make_arch_and_s(random_state=4)[0])


def test_rows_are_shuffled():
    y = make_arch_and_s(random_state=0)[1]
    assert 100 < np.count_nonzero(np.diff(y)) < 300


def test_without_noise_samples_lie_on_the_curves():
    X, y, _ = make_arch_and_s(noise=0, random_state=0)
    (x0, y0), (x1, y1) = X[y == 0].T, X[y == 1].T
    arch = np.where(y0 >= 0, np.hypot(x0, y0), np.abs(x0))
    np.testing.assert_allclose(arch, 1)
    assert y0.min() >= -1.3
    bowl = np.minimum(np.abs(np.hypot(x1, y1 - 0.1) - 0.45), np.abs(np.hypot(x1, y1 + 0.8) - 0.45))
    np.testing.assert_allclose(bowl, 0, atol=1e-12)


@pytest.mark.parametrize("curve", [_arch, _mirrored_s, _circle(0.6), _strip, _strand(0.0)], ids=str)
def test_curves_run_at_constant_speed_without_jumps(curve):
    steps = np.linalg.norm(np.diff(curve(np.linspace(0, 1, 2001)), axis=0), axis=1)
    np.testing.assert_allclose(steps, steps.mean(), rtol=1e-3)


def test_the_s_is_mirrored():
    # A printed S ends at the upper right and the lower left; its mirror image the other way round.
    start, middle, end = _mirrored_s(np.array([0.0, 0.5, 1.0]))
    np.testing.assert_allclose(middle, [0, -0.35], atol=1e-12)
    assert start[0] < 0
    assert start[1] > middle[1]
    assert end[0] > 0
    assert end[1] < middle[1]


def test_curves_are_as_far_apart_as_the_docstring_says():
    u = np.linspace(0, 1, 1001)
    gap = np.linalg.norm(_arch(u)[:, None] - _mirrored_s(u), axis=2).min()
    assert gap == pytest.approx(0.45, abs=1e-3)


def test_noise_has_the_given_size():
    clean, noisy = (make_arch_and_s(4000, noise=s, random_state=0)[0] for s in (0, 0.05))
    assert np.std(noisy - clean) == pytest.approx(0.05, rel=0.05)


def test_labeled_rows_follow_their_curve():
    X, _, labeled = make_arch_and_s(2000, noise=0, random_state=0)
    arch, s = X[labeled[:3]], X[labeled[3:]]
    np.testing.assert_allclose(arch, _arch(np.array([0.06, 0.54, 0.96])), atol=0.25)
    np.testing.assert_allclose(s, _mirrored_s(np.array([0.08, 0.37, 0.95])), atol=0.25)
    # Spread over the curve, no two close together.
    for a, b in [*pairwise(arch), *pairwise(s)]:
        assert np.linalg.norm(a - b) > 0.4


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("k", [1, 3])
def test_euclidean_neighbours_fail_although_the_classes_are_apart(seed, k):
    X, y, labeled = make_arch_and_s(random_state=seed)
    few = KNeighborsClassifier(k).fit(X[labeled], y[labeled])
    assert np.mean(few.predict(X) != y) > 0.2
    # With every label known nothing is wrong: it is the few labels that make it hard.
    rest = np.arange(len(X)) % 2 == 0
    assert KNeighborsClassifier(1).fit(X[rest], y[rest]).score(X[~rest], y[~rest]) == 1


@pytest.mark.parametrize("n_samples", [5, 0, -4, (2, 10), (10,), (4, 4, 4), 12.0, "12", (5.0, 5)])
def test_bad_sizes_are_refused(n_samples):
    with pytest.raises(ValueError, match="n_samples must be"):
        make_arch_and_s(n_samples)


@pytest.mark.parametrize("noise", [-0.1, np.nan, np.inf, None, "much"])
def test_bad_noise_is_refused(noise):
    with pytest.raises(ValueError, match="noise is a standard deviation"):
        make_arch_and_s(noise=noise)


@pytest.mark.parametrize("make", WITH_BRIDGES)
class TestSetsWithBridges:
    def test_shapes_seeds_and_labels(self, make):
        X, y, labeled = make(random_state=1)
        assert X.shape == (400, 2)
        assert np.bincount(y).tolist() == [200, 200]
        assert len(set(labeled.tolist())) == 6
        assert y[labeled].tolist() == [0, 0, 0, 1, 1, 1]
        for a, b in zip((X, y, labeled), make(random_state=1)):
            np.testing.assert_array_equal(a, b)
        assert not np.array_equal(X, make(random_state=2)[0])
        assert np.bincount(make((30, 21), random_state=0)[1]).tolist() == [30, 21]

    def test_samples_lie_on_two_curves_but_for_the_bridges(self, make):
        X, y, labeled = make(noise=0, random_state=0, n_bridges=3)
        u = np.linspace(0, 1, 5001)
        curves = [curve(u) for curve in CURVES[make]]
        away = np.array(
            [[np.linalg.norm(c - x, axis=1).min() for c in curves] for x in X]
        )  # of every sample, from either curve
        own = away[np.arange(len(X)), y]
        bridging = own > 2e-3
        assert bridging.sum() == 12
        assert not bridging[labeled].any()
        assert (own < away[np.arange(len(X)), 1 - y]).all()
        # Bridging points cross the gap: they are where both curves are near.
        gap = np.linalg.norm(curves[0][::5, None] - curves[1][::5], axis=2).min()
        assert away[bridging].sum(axis=1).max() < 1.3 * gap

    def test_the_gap_is_as_wide_as_the_docstring_says(self, make):
        u = np.linspace(0, 1, 2001)
        one, other = (curve(u) for curve in CURVES[make])
        gap = np.linalg.norm(one[:, None] - other, axis=2).min()
        named = {make_two_circles: 0.4, make_circle_and_strip: 0.35, make_knot: 0.47}
        assert gap == pytest.approx(named[make], abs=0.01)

    def test_the_story_of_the_paper(self, make):
        """Plain kNN errs most, weights help a little, paths more, and the walk most."""
        plain, weighted, paths, walk = [], [], [], []
        for seed in range(8):
            X, truth, labeled = make(random_state=seed)
            y = np.full(len(X), -1)
            y[labeled] = truth[labeled]
            few = X[labeled], truth[labeled]
            answers = (
                KNeighborsClassifier(3).fit(*few).predict(X),
                WeightedKNNClassifier(3).fit(*few).predict(X),
                GeodesicKNNClassifier(3).fit(X, y).transduction_,
                ManifoldKNNClassifier(3).fit(X, y).transduction_,
            )
            for errors, answer in zip((plain, weighted, paths, walk), answers):
                errors.append(100 * np.mean((answer != truth)[y < 0]))
        assert np.mean(plain) > np.mean(weighted) > np.mean(walk)
        assert np.mean(plain) > 30
        assert np.mean(paths) > np.mean(walk)
        assert np.mean(walk) < 8

    def test_bad_sizes_are_refused(self, make):
        with pytest.raises(ValueError, match="n_samples must be"):
            make(5)
        with pytest.raises(ValueError, match="lower n_bridges"):
            make(16, n_bridges=3)
