import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manifoldknn.selection as selection_module
from manifoldknn.selection import heaviest_keys, merged_keys, unpacked


def by_sorting(weights, n_kept):
    """Weights and columns of the heaviest, equal ones by column; column 0 where nobody is."""
    columns = np.broadcast_to(np.arange(weights.shape[1]), weights.shape)
    order = np.lexsort((columns, -weights), axis=1)[:, :n_kept]
    return np.take_along_axis(weights, order, axis=1), order


def levelled(rng, rows, columns, levels):
    """Numbers from 0 to 1 with ties, and many zeros where levels are few."""
    return (rng.integers(0, levels + 1, (rows, columns)) / levels).astype(np.float32)


@settings(max_examples=100, deadline=None)
@given(
    rows=st.integers(1, 8),
    columns=st.integers(1, 90),
    n_kept=st.integers(1, 100),
    levels=st.integers(1, 1000),
    groups=st.integers(1, 20),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_heaviest_are_those_that_sorting_finds(rows, columns, n_kept, levels, groups, seed):
    weights = levelled(np.random.default_rng(seed), rows, columns, levels)
    usual, selection_module._GROUPS = selection_module._GROUPS, groups
    try:
        found = unpacked(heaviest_keys(weights, np.arange(columns), n_kept))
    finally:
        selection_module._GROUPS = usual
    expected, order = by_sorting(weights, n_kept)
    width = expected.shape[1]
    np.testing.assert_allclose(found.absolute_weights()[:, :width], expected, rtol=1e-6)
    assert (found.weights[:, width:] == 0).all()
    positive = expected > 0
    assert (found.voters[:, :width][positive] == order[positive]).all()
    assert (np.isneginf(found.log_scale) == ~positive.any(axis=1)).all()


@pytest.mark.parametrize("n_kept", [1, 5, 30])
def test_keys_of_two_halves_are_those_of_the_whole(n_kept):
    weights = levelled(np.random.default_rng(0), 50, 40, 9)
    halves = [
        heaviest_keys(np.ascontiguousarray(weights[:, part]), np.arange(40)[part], n_kept)
        for part in (slice(0, 15), slice(15, 40))
    ]
    whole = heaviest_keys(weights, np.arange(40), n_kept)
    assert (merged_keys(*halves, n_kept) == whole).all()


def test_weights_of_any_size_keep_their_order():
    above_one = np.nextafter(np.float32(1), np.float32(2))
    weights = np.array([[1e-37, 3e38, 1.0, 1e-45, 0.0, -1.0, above_one]], dtype=np.float32)
    found = unpacked(heaviest_keys(weights, np.arange(7), 6))
    assert found.voters[0, :4].tolist() == [1, 6, 2, 0]
    assert (found.weights[0, 4:] == 0).all()  # below what single precision holds, or no weight
    assert found.log_scale[0] == pytest.approx(np.log(3e38))


def test_large_numbers_of_columns_fit():
    keys = heaviest_keys(np.ones((1, 3), dtype=np.float32), 2**31 - 4 + np.arange(3), 2)
    assert unpacked(keys).voters.tolist() == [[2**31 - 4, 2**31 - 3]]
