import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import manifoldknn.split_weights as module
from manifoldknn.split_weights import SplitWeights
from test_selection import by_sorting


def parts(rng, n, n_labeled, n_classes, rank, *, alike=1.0, share=0.1, empty=0):
    """A sparse part, thin matrices and classes, whose columns are more or less `alike`."""
    group = rng.integers(0, n_classes, n_labeled)
    group = np.unique(group, return_inverse=True)[1]
    left = rng.random((n, rank)).astype(np.float32) ** 4
    of_class = rng.random((rank, n_classes)) ** 4
    right = of_class[:, group] * (alike + (1 - alike) * rng.random((rank, n_labeled)))
    local = sparse.random_array((n, n_labeled), density=share, rng=rng, dtype=np.float32)
    local = sparse.csr_array(local)
    left[:empty] = 0
    local.data[: local.indptr[empty]] = 0
    local.eliminate_zeros()
    return local, left, right.astype(np.float32), group


def check(local, left, right, group, n_kept, rows):
    found = SplitWeights(local, left, right, group, n_kept).heaviest(rows)
    weights = (left @ right + local.toarray())[rows]
    expected, _ = by_sorting(weights, n_kept)
    np.testing.assert_allclose(found.absolute_weights(), expected, rtol=1e-5)
    own = np.take_along_axis(weights, found.voters.astype(np.intp), axis=1)
    there = found.weights > 0
    np.testing.assert_allclose(found.absolute_weights()[there], own[there], rtol=1e-5)
    for row, count in zip(found.voters, there.sum(axis=1)):
        assert len(set(row[:count].tolist())) == count
    return found


@settings(max_examples=150, deadline=None)
@given(
    n=st.integers(1, 30),
    n_labeled=st.integers(1, 60),
    n_classes=st.integers(1, 6),
    rank=st.integers(1, 5),
    n_kept=st.integers(1, 60),
    alike=st.sampled_from([0.0, 0.9, 1.0]),
    share=st.sampled_from([0.0, 0.1, 1.0]),
    empty=st.integers(0, 3),
    start=st.integers(0, 5),
    seed=st.integers(0, 2**32 - 1),
)
def test_equals_the_dense_sum(
    n, n_labeled, n_classes, rank, n_kept, alike, share, empty, start, seed
):
    rng = np.random.default_rng(seed)
    made = parts(rng, n, n_labeled, n_classes, rank, alike=alike, share=share, empty=min(empty, n))
    check(*made, min(n_kept, n_labeled), slice(min(start, n - 1), n))


def test_equals_the_dense_sum_by_leaders(monkeypatch):
    """With one leader per class and label, bounds often do not suffice, and all are looked at."""
    asked = []
    usual = SplitWeights._among_all

    def counted(self, left, row, column, value, table, done):
        asked.append((~done).sum())
        return usual(self, left, row, column, value, table, done)

    monkeypatch.setattr(SplitWeights, "_among_all", counted)
    monkeypatch.setattr(module, "_ENTRIES", 500)
    n_rows = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        monkeypatch.setattr(module, "_LEADERS", 1 + seed % 2)
        alike = [0.0, 0.9, 1.0][seed % 3]
        made = parts(rng, 20, 400, 1 + seed % 4, 3, alike=alike, share=0.01 * (seed % 5))
        check(*made, 1 + seed % 7, slice(3, 20))
        n_rows += 17
    assert 0 < sum(asked) < 0.9 * n_rows  # both ways were gone


def test_some_slack_saves_looking_at_all(monkeypatch):
    rng = np.random.default_rng(5)
    local, left, right, group = parts(rng, 50, 3000, 2, 4, alike=0.995)
    looked = []
    monkeypatch.setattr(SplitWeights, "_among_all", lambda *_: looked.append(1))
    found = SplitWeights(local, left, right, group, 5, slack=0.01).heaviest(slice(0, 50))
    assert not looked
    weights = left @ right + local.toarray()
    expected, _ = by_sorting(weights, 5)
    assert (np.abs(found.absolute_weights() - expected) <= 0.01 * expected[:, :1]).all()


def test_a_scale_of_rows_is_that_of_the_answer():
    made = parts(np.random.default_rng(6), 9, 30, 2, 2)
    plain = SplitWeights(*made, 4).heaviest(slice(2, 9))
    scaled = SplitWeights(*made, 4, log_scale=np.arange(9.0) - 500).heaviest(slice(2, 9))
    np.testing.assert_allclose(scaled.log_scale, plain.log_scale + np.arange(2.0, 9) - 500)
    assert (scaled.weights == plain.weights).all()


def test_rows_that_nothing_reaches():
    made = parts(np.random.default_rng(0), 12, 20, 3, 2, empty=4)
    found = check(*made, 5, slice(0, 12))
    assert np.isneginf(found.log_scale[:4]).all()
    assert np.isfinite(found.log_scale[4:]).all()


def test_equal_weights_go_to_the_first_labels():
    """Also across classes, whose columns are kept apart inside."""
    group = np.array([1, 0, 1, 0, 1, 0])
    left, right = np.ones((4, 1), dtype=np.float32), np.ones((1, 6), dtype=np.float32)
    found = SplitWeights(sparse.csr_array((4, 6), dtype=np.float32), left, right, group, 4)
    assert (found.heaviest(slice(0, 4)).voters == np.arange(4)).all()


def test_most_rows_look_into_one_class(monkeypatch):
    """What the bounds are for: the product of all rows and columns is not made."""
    rng = np.random.default_rng(1)
    n, n_classes = 300, 10
    group = np.repeat(np.arange(n_classes), 50)
    of_row = rng.integers(0, n_classes, n)
    left = (np.eye(n_classes)[of_row] + 0.01).astype(np.float32)
    right = (np.eye(n_classes)[:, group] + 0.01 * rng.random((n_classes, 500))).astype(np.float32)
    local = sparse.csr_array(
        (0.5 * rng.random(n).astype(np.float32), 50 * of_row + 7, np.arange(n + 1)), shape=(n, 500)
    )
    looked = []

    def counted(weights, *rest):
        looked.append(weights.size)
        return usual(weights, *rest)

    usual = module.heaviest_keys
    monkeypatch.setattr(module, "heaviest_keys", counted)
    check(local, left, right, group, 20, slice(0, n))
    assert sum(looked) == n * 50


@pytest.mark.parametrize("n_classes", [300, 70_000])
def test_very_many_classes(n_classes):
    rng = np.random.default_rng(2)
    n_labeled = n_classes + 50
    group = np.append(np.arange(n_classes), rng.integers(0, n_classes, 50))
    left = rng.random((5, 1)).astype(np.float32)
    right = rng.random((1, n_labeled)).astype(np.float32)
    local = sparse.csr_array((5, n_labeled), dtype=np.float32)
    check(local, left, right, group, 3, slice(0, 5))


def test_equal_weights_go_to_the_first_labels_with_leaders():
    group = np.zeros(500, dtype=np.intp)
    left, right = np.ones((3, 1), dtype=np.float32), np.ones((1, 500), dtype=np.float32)
    local = sparse.csr_array((3, 500), dtype=np.float32)
    found = SplitWeights(local, left, right, group, 4, slack=1e-3).heaviest(slice(0, 3))
    assert (found.voters == np.arange(4)).all()


def test_one_long_row_does_not_widen_the_others(monkeypatch):
    rng = np.random.default_rng(8)
    n, n_labeled = 300, 4000
    dense = np.zeros((n, n_labeled), dtype=np.float32)
    dense[np.arange(n), rng.integers(0, n_labeled, n)] = 1.0
    dense[7] = rng.random(n_labeled)
    left = 1e-3 * rng.random((n, 2)).astype(np.float32)
    right = rng.random((2, n_labeled)).astype(np.float32)
    widths = []

    def watched(one, other, n_kept):
        widths.append(one.shape[1])
        return usual(one, other, n_kept)

    usual = module.merged_keys
    monkeypatch.setattr(module, "merged_keys", watched)
    made = SplitWeights(sparse.csr_array(dense), left, right, np.zeros(n_labeled, dtype=int), 6,
                        slack=0.01)  # fmt: skip
    found = made.heaviest(slice(0, n))
    assert max(widths) < 200
    expected, _ = by_sorting(left @ right + dense, 6)
    np.testing.assert_allclose(found.absolute_weights(), expected, atol=0.01)
