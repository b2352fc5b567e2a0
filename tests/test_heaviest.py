import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifoldknn.heaviest import Heaviest, Selection, row_slices


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 20), n_columns=st.integers(1, 12), n_kept=st.integers(1, 12),
    width=st.integers(1, 5), seed=st.integers(0, 1000),
)  # fmt: skip
def test_blocks_give_what_sorting_everything_gives(n, n_columns, n_kept, width, seed):
    values = np.random.default_rng(seed).permutation(n * n_columns).reshape(n, n_columns) * 1.0
    n_kept = min(n_kept, n_columns)
    heaviest = Heaviest(n_kept, n_columns)
    for start in range(0, n_columns, width):
        block = np.arange(start, min(start + width, n_columns))
        heaviest.add(Selection.of(values[:, block], block, n_kept))
    chosen = heaviest.chosen()
    assert chosen.values.shape == chosen.voters.shape == (n, n_kept)
    np.testing.assert_array_equal(np.take_along_axis(values, chosen.voters, 1), chosen.values)
    expected = -np.sort(-values, axis=1)[:, :n_kept]
    np.testing.assert_array_equal(-np.sort(-chosen.values, axis=1), expected)


def test_columns_below_the_bar_are_left_out():
    values = np.array([[1.0, 5.0, 3.0, 4.0]])
    found = Selection.of(values, np.arange(4), 2, least=np.array([[3.5]]))
    assert sorted(found.voters[0].tolist()) == [1, 3]


@pytest.mark.parametrize("n", [1, 1 << 14, (1 << 14) + 1])
def test_slices_cover_every_row_once(n):
    rows = np.concatenate([np.arange(n)[part] for part in row_slices(n)])
    np.testing.assert_array_equal(rows, np.arange(n))
