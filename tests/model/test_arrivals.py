"""Arrivals: what grew with them, and what they are made of."""

import numpy as np

from manifoldknn.extend.reconstruct import Reconstruction
from manifoldknn.model.arrivals import Arrivals
from manifoldknn.vote.similarities import Similarities, combined


def random_similarities(rng, n, columns):
    return Similarities.from_logarithms(rng.normal(size=(n, columns)))


def random_chunks(rng, known, sizes, k):
    """Chunks whose rows lean on everything before them."""
    state, chunks = Arrivals.none(known, np.ones((len(known.logs), 1)), k), []
    for size in sizes:
        n, used = len(state.logs.values), min(k, 3)
        z = rng.dirichlet(np.ones(used), size)
        made = Reconstruction(rng.integers(0, n, (size, used)), z, *rng.random((3, size)))
        new = combined(made.z, made.indices, state.similarities)
        state = state.joined_by(made, new, np.ones((size, 1)), rng.random(size) < 0.5)
        chunks.append((made, new))
    return state, chunks


def test_rows_are_appended_in_order():
    rng = np.random.default_rng(0)
    first = random_similarities(rng, 6, 4)
    state, chunks = random_chunks(rng, first, [2, 1, 5], k=3)
    expected = np.concatenate([first.logs, *(new.logs for _, new in chunks)])
    np.testing.assert_array_equal(state.similarities.logs, expected)
    assert len(state) == 8
    assert state.n_walked == 6
    assert state.seen.values.tolist() == [6, 6, 8, 9, 9, 9, 9, 9]
    assert state.chunks() == [slice(0, 2), slice(2, 3), slice(3, 8)]
    np.testing.assert_array_equal(
        state.residuals.values, np.concatenate([made.residuals for made, _ in chunks])
    )


def test_arrivals_are_combinations_of_rows_that_were_walked():
    """Unfolded at once, or chunk by chunk: the same numbers."""
    rng = np.random.default_rng(2)
    first = random_similarities(rng, 6, 4)
    state, _ = random_chunks(rng, first, [3, 2, 4], k=5)  # padded: rows lean on three
    z, indices = state.on_walked(np.ones((15, 1)), np.arange(15)[:, None])
    assert indices.max() < 6
    np.testing.assert_allclose(z.sum(axis=1), 1.0)
    np.testing.assert_allclose(
        combined(z, indices, first).logarithms(), state.similarities.logarithms(), rtol=1e-12
    )
    new = rng.dirichlet(np.ones(3), 4), rng.integers(0, 15, (4, 3))
    np.testing.assert_allclose(
        combined(*state.on_walked(*new), first).logarithms(),
        combined(*new, state.similarities).logarithms(),
        rtol=1e-12,
    )
