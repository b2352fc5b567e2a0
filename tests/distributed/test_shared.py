"""Sums, medians and halos of machines that share rows against those of one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distributed_lines import in_ranks
from manifoldknn.distributed.walk.recipe import Numbering
from manifoldknn.distributed.walk.shared import Shared


def alone(links):
    return Shared(links, 0, [np.empty(0, dtype=int)] * links.size, [0] * links.size, None)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.floats(allow_nan=False, width=32), max_size=6), min_size=1, max_size=4))
def test_median(values):
    every = np.concatenate([np.array(v, dtype=float) for v in values])
    if not len(every):
        return
    with np.errstate(invalid="ignore"):
        expected = np.median(every)
    found = in_ranks(len(values), lambda links: alone(links).median(np.array(values[links.rank])))
    np.testing.assert_array_equal(found, [expected] * len(values))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_sums_maxima_and_log_sums(size):
    rng = np.random.default_rng(0)
    blocks = rng.normal(size=(size, 4, 2))
    blocks[:, 0] = -np.inf

    def work(links):
        here, block = alone(links), blocks[links.rank]
        every, total = here.gathered_and_sum(block.astype(np.float32)[: links.rank], block[1:])
        np.testing.assert_array_equal(
            every, np.concatenate([b.astype(np.float32)[:rank] for rank, b in enumerate(blocks)])
        )
        np.testing.assert_allclose(total, blocks[:, 1:].sum(axis=0), rtol=1e-6, atol=1e-6)
        return here.sum(block), here.max(block), here.log_sum(block), here.all(links.rank < 2)

    for total, largest, logs, everybody in in_ranks(size, work):
        np.testing.assert_allclose(total, blocks.sum(axis=0))
        np.testing.assert_array_equal(largest, blocks.max(axis=0))
        np.testing.assert_allclose(logs, np.logaddexp.reduce(blocks, axis=0))
        assert everybody == (size < 3)


def test_halos_of_all_and_of_some_rows():
    bounds, n = np.array([0, 4, 7, 10]), 10
    values = np.arange(n) ** 2

    def work(links):
        start, stop = bounds[links.rank], bounds[links.rank + 1]
        near = np.unique([[(row + 3) % n, (row - 3) % n] for row in range(start, stop)])
        rows = Numbering(links, bounds, near)
        here = np.concatenate([np.arange(start, stop), rows.ghosts])
        np.testing.assert_array_equal(rows.together.halo(values[start:stop]), values[here])
        own = np.flatnonzero(np.arange(start, stop) % 2 == 0)[::-1]  # even rows, backwards
        ghosts, some = rows.together.restricted(own)
        left = np.concatenate([here[own], here[ghosts]])
        np.testing.assert_array_equal(some.halo(values[here[own]]), values[left])
        assert (left % 2 == 0).all()
        return len(left)

    assert sum(in_ranks(3, work)) > n // 2
