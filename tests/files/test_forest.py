"""A forest of plain arrays says what scikit-learn's says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

from manifoldknn.files.forest import PlainForest, put_forest, restored_forest


def grown(seed, n, n_classes, n_trees, **params):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(1)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    forest = RandomForestClassifier(n_trees, random_state=0, n_jobs=1, **params).fit(X, y)
    return forest, rng.normal(size=(50, 3)).round(1)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 2**31),
    st.integers(4, 60),
    st.integers(2, 4),
    st.integers(1, 12),
    st.sampled_from([{}, {"class_weight": "balanced"}, {"max_depth": 1}, {"max_leaf_nodes": 4}]),
)
def test_the_same_probabilities(seed, n, n_classes, n_trees, params):
    forest, Q = grown(seed, n, n_classes, n_trees, **params)
    plain = restored_forest(put_forest(forest), 3, n_classes)
    np.testing.assert_array_equal(plain.classes_, forest.classes_)
    edges = np.repeat(forest.estimators_[0].tree_.threshold, 3).reshape(-1, 3)
    for rows in (Q, Q.astype(np.float32), Q[:1], edges):
        expected = forest.predict_proba(rows)
        np.testing.assert_allclose(plain.predict_proba(rows), expected, rtol=0, atol=1e-12)
    sparsely = sparse.csr_array(Q)
    np.testing.assert_array_equal(plain.predict_proba(sparsely), plain.predict_proba(Q))


def test_trees_that_are_a_leaf():
    forest, Q = grown(0, 20, 2, 3, min_samples_split=100)
    plain = PlainForest.of(forest)
    np.testing.assert_allclose(plain.predict_proba(Q), forest.predict_proba(Q), atol=1e-12)
    assert PlainForest.of(plain) is plain
    assert plain.predict_proba(Q[:0]).shape == (0, 2)


def test_only_forests():
    with pytest.raises(ValueError, match="of type GaussianNB cannot be saved"):
        PlainForest.of(GaussianNB())


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("left", lambda a: np.where(a > 0, 0, a)),  # a circle
        ("left", lambda a: a + len(a)),
        ("right", lambda a: np.full_like(a, -1)),
        ("right", lambda a: a[:-1]),
        ("roots", lambda a: a + 10_000),
        ("roots", lambda a: a[:0]),
        ("feature", lambda a: a + 3),
        ("feature", lambda a: a[:-1]),
        ("threshold", lambda a: a * np.nan),
        ("value", lambda a: -1 - a),
        ("value", lambda a: a[:, :1]),
    ],
)
def test_what_cannot_be_is_refused(name, change):
    arrays = put_forest(grown(0, 40, 3, 4)[0])
    arrays[f"forest_{name}"] = change(arrays[f"forest_{name}"])
    with pytest.raises(ValueError, match="cannot be"):
        restored_forest(arrays, 3, 3)
