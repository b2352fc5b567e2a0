import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from manifoldknn.selection import HeaviestOfRows


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(1, 8),
    columns=st.integers(2, 90),
    n_kept=st.integers(1, 10),
    levels=st.integers(1, 1000),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_heaviest_are_those_that_sorting_finds(rows, columns, n_kept, levels, seed):
    n_kept = min(n_kept, columns - 1)
    rng = np.random.default_rng(seed)
    weights = (rng.integers(0, levels + 1, (rows, columns)) / levels).astype(np.float32)
    heaviest = HeaviestOfRows(rows + 3, columns, n_kept)
    heaviest(np.ones((rows + 3, columns), dtype=np.float32))  # of which nothing must stay
    found = heaviest(weights)
    order = np.lexsort((np.broadcast_to(np.arange(columns), weights.shape), -weights), axis=1)
    expected = np.take_along_axis(weights, order[:, :n_kept], axis=1)
    np.testing.assert_allclose(found.absolute_weights(), expected, rtol=1e-6)
    positive = expected > 0
    assert (found.voters[positive] == order[:, :n_kept][positive]).all()
