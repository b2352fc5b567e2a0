"""Every kernel, by NumPy and by PyTorch, against a loop that says what it means."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifoldknn.base.kernels import NUMPY

EVERY = [NUMPY]
try:
    import torch

    from manifoldknn.device.kernels import TorchKernels

    EVERY.append(TorchKernels(torch.device("cpu")))
except ImportError:  # the core goes without PyTorch
    pass

seeds = st.integers(0, 2**32 - 1)
numbers = st.lists(st.integers(-5, 5), max_size=40)
on_both = pytest.mark.parametrize("kernels", EVERY, ids=lambda kernels: kernels.xp.__name__)
few = settings(max_examples=40, deadline=None)


@on_both
def test_arrays_come_and_go(kernels):
    here = kernels.array(np.array([3, 1], dtype=np.int32))
    assert isinstance(kernels.host(here), np.ndarray)
    assert kernels.host(kernels.long(here)).dtype == np.int64
    assert kernels.host(kernels.array([1.0, 2.0], here.dtype)).tolist() == [1, 2]
    assert kernels.host(kernels.arange(3)).tolist() == [0, 1, 2]
    assert kernels.host(kernels.arange(0)).dtype == np.int64
    assert kernels.host(kernels.full(2, -np.inf)).tolist() == [-np.inf, -np.inf]
    assert kernels.host(kernels.full(2, 0.0)).dtype == np.float64
    assert kernels.host(kernels.full((2, 1), 1.0)).tolist() == [[1.0], [1.0]]
    values = kernels.array(np.array([1.0, 3.0]))
    assert kernels.at_least(values, 2.0).tolist() == [2.0, 3.0]
    assert kernels.at_most(values, 2.0).tolist() == [1.0, 2.0]
    kernels.at_most(kernels.at_least(values, 2.0, out=values), 2.5, out=values)
    assert values.tolist() == [2.0, 2.5]
    assert kernels.log(kernels.array(np.array([0.0, 1.0]))).tolist() == [-np.inf, 0.0]
    assert kernels.log(values, out=values) is values
    assert kernels.host(kernels.repeat(here, 2)).tolist() == [3, 3, 1, 1]


@on_both
@few
@given(drawn=st.lists(st.booleans(), max_size=40))
def test_masks_and_places(kernels, drawn):
    places = [i for i, chosen in enumerate(drawn) if chosen]
    mask = kernels.mask(kernels.array(np.array(places, dtype=np.intp)), len(drawn))
    assert mask.tolist() == drawn
    assert kernels.places(mask).tolist() == places
    at = kernels.inverse(kernels.array(np.array(places, dtype=np.intp)), len(drawn))
    assert at.tolist() == [places.index(i) if i in places else -1 for i in range(len(drawn))]


@on_both
@few
@given(drawn=st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=40))
def test_order_by_several_keys(kernels, drawn):
    keys = np.array(drawn, dtype=np.int64).reshape(-1, 3).T
    found = kernels.order(*(kernels.array(key) for key in keys))
    assert found.tolist() == sorted(range(len(drawn)), key=lambda i: drawn[i][::-1])


@on_both
@few
@given(drawn=numbers, others=numbers)
def test_distinct_numbers_and_who_stands_among_them(kernels, drawn, others):
    here = kernels.array(np.array(drawn, dtype=np.int64))
    distinct = kernels.distinct(here)
    assert distinct.tolist() == sorted(set(drawn))
    expected = [i == 0 or drawn[i] != drawn[i - 1] for i in range(len(drawn))]
    assert kernels.is_first(here).tolist() == expected
    if drawn:
        present, at = kernels.contains(distinct, kernels.array(np.array(others, dtype=np.int64)))
        assert present.tolist() == [number in drawn for number in others]
        assert [distinct[a] for a, p in zip(at, present) if p] == [n for n in others if n in drawn]


@on_both
@few
@given(drawn=st.lists(st.floats(-9, 9), min_size=1, max_size=9))
def test_median(kernels, drawn):
    ordered, n = sorted(drawn), len(drawn)
    expected = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    assert kernels.median(kernels.array(np.array(drawn))) == pytest.approx(expected)


@on_both
@few
@given(
    lengths=st.lists(st.integers(1, 300), min_size=1, max_size=8),
    columns=st.sampled_from([None, 1, 3]),
    seed=seeds,
)
def test_runs(kernels, lengths, columns, seed):
    rng, n = np.random.default_rng(seed), sum(lengths)
    values = rng.normal(size=n if columns is None else (n, columns))
    values[rng.random(n) < 0.3] = -np.inf
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    runs, here = kernels.runs(kernels.array(offsets)), kernels.array(values)
    numbers = np.repeat(np.arange(len(lengths)) % 2, lengths)
    assert kernels.runs_of(kernels.array(numbers)).offsets.tolist() == offsets.tolist()
    found = runs.max(here), runs.sum(kernels.xp.exp(here)), runs.log_sum(here)
    for run, (first, end) in enumerate(pairwise(offsets)):
        block = values[first:end].reshape(end - first, -1).T.tolist()
        sums = [math.fsum(math.exp(v) for v in column) for column in block]
        logs = [math.log(s) if s else -math.inf for s in sums]
        for ours, expected in zip(found, ([max(column) for column in block], sums, logs)):
            np.testing.assert_allclose(np.ravel(ours[run]), expected, rtol=1e-12, atol=1e-12)


@on_both
@few
@given(k=st.integers(1, 7), m=st.integers(0, 9), seed=seeds)
def test_totals(kernels, k, m, seed):
    rng = np.random.default_rng(seed)
    terms, weights = rng.normal(size=(k, k, m)), rng.normal(size=(k, m))
    here, weighed = kernels.array(terms), kernels.array(weights)
    expected = np.zeros((k, m))
    for i in range(k):
        for j in range(m):
            expected[:, j] += terms[i, :, j] * weights[i, j]
    np.testing.assert_allclose(kernels.combined(here, weighed), expected, atol=1e-12)
    np.testing.assert_allclose(kernels.total(weighed), weights.sum(axis=0), atol=1e-12)


@on_both
@few
@given(k=st.integers(1, 7), m=st.integers(1, 9), seed=seeds)
def test_packing_and_putting_back(kernels, k, m, seed):
    rng = np.random.default_rng(seed)
    chosen = rng.random((k, m)) < 0.5
    chosen[rng.integers(0, k, m), np.arange(m)] = True  # a support is never empty
    index, counts, put_back = kernels.packed(kernels.array(chosen))
    rows = [[i for i in range(k) if chosen[i, j]] for j in range(m)]
    assert counts.tolist() == [len(column) for column in rows]
    assert len(index) == max(map(len, rows))
    values = np.zeros(tuple(index.shape))
    for j, column in enumerate(rows):
        assert index[: len(column), j].tolist() == column
        values[: len(column), j] = 1 + np.array(column)
    expected = np.where(chosen, 1 + np.arange(k)[:, None], 0)
    assert put_back(kernels.array(values)).tolist() == expected.tolist()
