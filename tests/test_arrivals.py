"""Arrivals: what grew with them, and letting them come again."""

import numpy as np

from manifoldknn.arrivals import Arrivals
from manifoldknn.nearest import NearestLabeled
from manifoldknn.reconstruct import Reconstruction, combined


def random_nearest(rng, n, n_voters):
    weights = np.sort(rng.random((n, n_voters)), axis=1)[:, ::-1]
    voters = np.array([rng.permutation(n_voters) for _ in range(n)], dtype=np.int32)
    return NearestLabeled(weights / weights[:, :1], voters, rng.normal(size=n))


def random_chunks(rng, nearest, sizes, width):
    """Chunks whose rows lean on everything before them; all voters as plain concatenation."""
    shares = np.ones((len(nearest.weights), 1))
    state, chunks = Arrivals.none(nearest, shares, width), []
    for size in sizes:
        n, k = len(state.nearest.weights), min(width, 3)
        z = rng.dirichlet(np.ones(k), size)
        made = Reconstruction(rng.integers(0, n, (size, k)), z, *rng.random((3, size)))
        new = combined(made.z, made.indices, state.nearest)
        state = state.joined_by(made, new, np.ones((size, 1)), rng.random(size) < 0.5)
        chunks.append((made, new))
    return state, chunks


def test_rows_are_appended_in_order():
    rng = np.random.default_rng(0)
    first = random_nearest(rng, 6, 4)
    state, chunks = random_chunks(rng, first, [2, 1, 5], width=3)
    expected = np.concatenate([first.weights, *(new.weights for _, new in chunks)])
    np.testing.assert_array_equal(state.nearest.weights, expected)
    assert len(state) == 8
    assert state.n_walked == 6
    assert state.seen.values.tolist() == [6, 6, 8, 9, 9, 9, 9, 9]
    np.testing.assert_array_equal(
        state.residuals.values, np.concatenate([made.residuals for made, _ in chunks])
    )


def test_replaying_gives_what_arrived():
    rng = np.random.default_rng(1)
    first = random_nearest(rng, 6, 4)
    state, _ = random_chunks(rng, first, [2, 1, 5], width=3)
    again = state.replayed(first)
    np.testing.assert_array_equal(again.voters, state.nearest.voters)
    np.testing.assert_array_equal(again.weights, state.nearest.weights)
    np.testing.assert_array_equal(again.log_scale, state.nearest.log_scale)


def test_replaying_is_linear():
    """Class sums of replayed samples are replayed class sums."""
    rng = np.random.default_rng(2)
    samples = random_nearest(rng, 6, 4)
    classes = np.array([0, 1, 0, 1])
    sums = np.stack(
        [
            np.where(classes[samples.voters] == c, samples.absolute_weights(), 0).sum(1)
            for c in (0, 1)
        ],
        axis=1,
    )
    order = np.argsort(-sums, axis=1)
    ordered = np.take_along_axis(sums, order, axis=1)
    by_class = NearestLabeled(
        ordered / ordered[:, :1], order.astype(np.int32), np.log(ordered[:, 0])
    )
    state, _ = random_chunks(rng, by_class, [3, 2], width=5)  # padded: rows lean on three
    again = state.replayed(samples)
    for c in (0, 1):
        total = np.where(classes[again.voters] == c, again.absolute_weights(), 0).sum(axis=1)
        direct = np.where(state.nearest.voters == c, state.nearest.absolute_weights(), 0).sum(1)
        np.testing.assert_allclose(total, direct)
