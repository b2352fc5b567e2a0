"""Wrong labels are found."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

import oracles
from manifoldknn import ManifoldKNNClassifier, find_label_errors
from manifoldknn.insight import label_errors
from manifoldknn.insight.label_errors import unlinked_shares
from manifoldknn.vote.hidden import fold_numbers
from strategies import problems, recipe_of

GRAPHS = ("pruned", "union", "full")


@pytest.fixture(scope="module")
def spoiled():
    """Digits with 20 labels per class, a tenth of them wrong."""
    X, truth = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    y = np.full(len(X), -1)
    for c in range(10):
        y[rng.choice(np.flatnonzero(truth == c), 20, replace=False)] = c
    wrong = rng.choice(np.flatnonzero(y >= 0), 20, replace=False)
    y[wrong] = (y[wrong] + rng.integers(1, 10, 20)) % 10
    frame = pd.DataFrame(X / 16, index=[f"row{i}" for i in range(len(X))])
    frame.columns = frame.columns.astype(str)
    return ManifoldKNNClassifier().fit(frame, y), wrong, truth, y


def test_most_suspicious_are_wrong(spoiled):
    clf, wrong, truth, y = spoiled
    found = find_label_errors(clf)
    assert np.isin(found.rows[:20], wrong).mean() >= 0.8
    np.testing.assert_array_equal(found.given, y[found.rows])
    assert (found.suggested != found.given).all()
    assert (found.suggested[:10] == truth[found.rows[:10]]).mean() >= 0.7


def test_fewer_groups_of_labels_where_rows_are_many(spoiled, monkeypatch):
    clf, wrong, *_ = spoiled
    monkeypatch.setattr(label_errors, "_MANY_ROWS", 1000)
    found = find_label_errors(clf)
    assert np.isin(found.rows[:20], wrong).mean() >= 0.8
    monkeypatch.setattr(label_errors, "_GROUPS", 5)
    monkeypatch.setattr(label_errors, "_MANY_ROWS", 10_000)
    np.testing.assert_array_equal(find_label_errors(clf).rows, found.rows)


def test_order_and_names(spoiled):
    clf, *_ = spoiled
    found = find_label_errors(clf)
    lead = found.suggested_share - found.given_share
    assert (lead > 0).all()
    assert (np.diff(lead) <= 0).all()
    assert (found.n_judged, found.n_labeled) == (200, 200)
    assert list(found) == [f"row{i}" for i in found.rows]
    table = pd.DataFrame(found.to_dict())
    assert len(table) == len(found)
    assert table["id"].tolist() == list(found)
    named = find_label_errors(clf, index=np.arange(1797) + 5000)
    np.testing.assert_array_equal(named.ids, found.rows + 5000)


@pytest.mark.filterwarnings("ignore::manifoldknn.exceptions.ManifoldKNNWarning")
@settings(max_examples=60, deadline=None)
@given(
    problems(max_samples=40, ties=False, min_classes=2),
    st.sampled_from(GRAPHS),
    st.sampled_from(["classes", "neighbors"]),
)
def test_shares_as_the_dense_walk_without_links_gives_them(problem, graph, vote):
    """Whoever votes in the fit: densities of the others, on the graph without links of labels."""
    X, y = problem.X, problem.y
    parameters = {"graph": graph, "graph_neighbors": 5, "alpha": 0.9, "tol": 1e-9}
    clf = ManifoldKNNClassifier(vote=vote, **parameters).fit(X, y)
    bare = recipe_of(X, graph, sigma=clf.sigma_).constrained(np.full(len(X), -1))
    W = bare.to_matrix()
    K = oracles.walk_matrix((W if graph == "full" else W.toarray()).tolist(), 0.9)
    rows = np.flatnonzero(y >= 0)
    groups = fold_numbers(y[rows], min(20, len(rows)), 0)
    f = np.zeros((len(rows), y.max() + 1))
    for group in np.unique(groups):
        visible = y.copy()
        visible[rows[groups == group]] = -1
        if (visible >= 0).any():
            densities = oracles.class_densities(K, visible, y.max() + 1)
            f[groups == group] = densities[rows[groups == group]]
    second, first = np.sort(f, axis=1)[:, -2:].T
    assume(((second == 0) | (second > 1e-6 * first)).all())  # accuracy is relative to the largest
    sharpness = oracles.usual_sharpness(f, np.full(len(f), -1))
    expected = oracles.probabilities(f, np.full(f.shape[1], 1 / f.shape[1]), sharpness)
    np.testing.assert_allclose(unlinked_shares(clf), expected, atol=1e-3)


def test_its_own_label_plays_no_part(spoiled):
    """Whatever a row itself is called, others say much the same; only the groups differ."""
    clf, _, _, y = spoiled
    row = int(np.flatnonzero(y >= 0)[0])
    changed = y.copy()
    changed[row] = (y[row] + 1) % 10
    again = ManifoldKNNClassifier().fit(clf.fitted_.index.X, changed)
    np.testing.assert_allclose(unlinked_shares(clf)[0], unlinked_shares(again)[0], atol=0.03)


def test_nothing_to_find():
    X = np.concatenate([np.arange(20.0), 100 + np.arange(20.0)])[:, None]
    y = np.where(np.arange(40) % 3 == 0, (X[:, 0] > 50).astype(int), -1)
    assert len(find_label_errors(ManifoldKNNClassifier().fit(X, y))) == 0


def test_rows_alone_in_their_class_are_not_accused():
    X = np.arange(12.0)[:, None]
    y = np.full(12, -1)
    y[[0, 2, 4]], y[3] = 0, 1
    assert 3 not in find_label_errors(ManifoldKNNClassifier(graph_neighbors=3).fit(X, y)).rows


@pytest.mark.parametrize("seed", range(3))
def test_by_label_and_by_group_is_the_same(monkeypatch, seed):
    """Few labels are walked from one by one, many group by group."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 2)) + 3 * (np.arange(120) % 3)[:, None]
    y = np.where(np.arange(120) < 45, np.arange(120) % 3, -1)
    clf = ManifoldKNNClassifier(tol=1e-6).fit(X, y)
    by_label = label_errors.unlinked_shares(clf)
    monkeypatch.setattr(label_errors, "_BLOCK", 4)
    np.testing.assert_allclose(label_errors.unlinked_shares(clf), by_label, atol=1e-6)

    def grouped(walk, rows, codes, groups, n_classes):
        logs = np.full((len(rows), n_classes), -np.inf)
        for group in np.unique(groups):
            others, hidden = np.flatnonzero(groups != group), np.flatnonzero(groups == group)
            found = walk.densities(
                others, codes[others], n_classes, rows=rows[hidden], reach=np.inf
            )
            logs[hidden] = found.log_values
        return logs

    monkeypatch.setattr(label_errors, "_by_label", grouped)
    np.testing.assert_allclose(label_errors.unlinked_shares(clf), by_label, atol=1e-5)
