"""Parts that hardly touch, on machines that share the rows, against exact arithmetic."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import manifoldknn.walk.parts as module
from distributed_lines import in_ranks
from exact_walks import clusters, exact_logs
from manifoldknn.distributed.walk.recipe import Numbering
from manifoldknn.graph.weights import ConstrainedGraph
from manifoldknn.walk.levels import Columns
from manifoldknn.walk.normalized import NormalizedGraph
from manifoldknn.walk.parts import solve_by_parts

ACCURACY = {"alpha": 0.99, "tol": 1e-6, "max_iter": 3000}


def solved_by(machine, log_w, group, columns, wanted, few=True):
    """Return log x of all rows, given the machine of each, and the doors of each part."""
    order = np.argsort(machine, kind="stable")
    log_w, group = log_w[np.ix_(order, order)], group[order]
    place = np.argsort(order)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(machine))])
    one, other = np.nonzero(np.isfinite(log_w))

    def work(links):
        start, stop = bounds[links.rank], bounds[links.rank + 1]
        mine = (one >= start) & (one < stop)
        rows = Numbering(links, bounds, other[mine])
        a, b, values = rows.local(one[mine]), rows.local(other[mine]), log_w[one[mine], other[mine]]
        ghost = b >= rows.n_own  # an edge to the halo is known from both ends
        ends = np.append(a, b[ghost]), np.append(b, a[ghost])
        weights = sparse.csr_array((np.append(values, values[ghost]), ends), (rows.n_rows,) * 2)
        links_of = np.append(group[start:stop], np.full(len(rows.ghosts), -1))
        graph = NormalizedGraph(ConstrainedGraph(weights, links_of, rows.together))
        at = rows.local(place[columns.rows])
        own = (at >= 0) & (at < rows.n_own)
        right = Columns(
            at[own], columns.cols[own], columns.log_values[own], columns.views, columns.reach
        )
        division = graph.divided(np.log(1e-4))
        numbers = None if division is None else module._Doors(division, right).numbers
        here = np.append(wanted[order][start:stop], np.zeros(len(rows.ghosts), dtype=bool))
        found = solve_by_parts(graph, right, wanted=here, **ACCURACY)
        assert found.converged
        return found.log_values[: rows.n_own], numbers

    with mock.patch.object(module._Doors, "are_few", few):
        found = in_ranks(len(bounds) - 1, work)
    return np.concatenate([logs for logs, _ in found])[place], found[0][1]


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_entry_is_exact_however_rows_are_shared_out(data):
    """Chains, stars and loops of clusters and single rows, each on several machines."""
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=2, max_size=5))
    joins = [(data.draw(st.integers(0, p - 1)), p) for p in range(1, len(sizes))]
    joins += data.draw(st.lists(st.sampled_from(joins), max_size=2))
    log_weak = [data.draw(st.sampled_from([-15.0, -30.0, -80.0])) for _ in joins]
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    log_w, n = clusters(rng, sizes, joins, log_weak), sum(sizes)
    size = data.draw(st.integers(2, min(3, n)))
    machine = rng.permutation(np.append(np.arange(size), rng.integers(0, size, n - size)))
    group = np.full(n, -1)
    if data.draw(st.booleans()):
        group[rng.choice(n, 2, replace=False)] = 0
    n_columns = data.draw(st.integers(1, 3))
    rows = rng.choice(n, min(n, n_columns + 1), replace=False)
    columns = Columns(
        rows, np.arange(len(rows)) % n_columns, rng.normal(size=len(rows)),
        np.zeros((1, n_columns)), np.inf,
    )  # fmt: skip
    expected = exact_logs(log_w, group, columns, 0.99)
    told = np.isfinite(expected) & (expected > -500)
    wanted = np.zeros(n, dtype=bool)
    wanted[rng.choice(n, max(1, n // 3), replace=False)] = True
    for few in (True, False):  # by doors, and from part to part
        every = np.ones(n, dtype=bool)
        found, _ = solved_by(machine, log_w, group, columns, every, few)
        np.testing.assert_allclose(found[told], expected[told], atol=2e-6)
        found, _ = solved_by(machine, log_w, group, columns, wanted, few)
        here = told & wanted[:, None]
        np.testing.assert_allclose(found[here], expected[here], atol=2e-6)


@pytest.mark.parametrize("outlier", [0, 1, 2])
def test_an_outlier_elsewhere_is_one_door_on_every_machine_that_sees_it(outlier):
    """One row has weak edges to rows of two machines; it is a row of one of them, or of a third."""
    log_w = np.full((20, 20), -np.inf)
    for i in [*range(8), *range(9, 19)]:
        log_w[i, i + 1] = -0.5
    log_w[8, 10:16] = -40.0 - np.arange(6)
    log_w[3, 18] = -50.0
    log_w, group = np.maximum(log_w, log_w.T), np.full(20, -1)
    machine = np.repeat([0, 1], [13, 7])
    machine[8] = outlier
    columns = Columns(np.array([0, 19]), np.arange(2), np.zeros(2), np.zeros((1, 2)), np.inf)
    expected = exact_logs(log_w, group, columns, 0.99)
    found, numbers = solved_by(machine, log_w, group, columns, np.ones(20, dtype=bool))
    np.testing.assert_allclose(found, expected, atol=2e-6)
    # A source and the outlier itself; the outlier as a door of two machines; the other edge.
    np.testing.assert_array_equal(np.sort(numbers), [3, 4])
