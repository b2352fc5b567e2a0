"""Suggested rows are unlabelled, different, uncertain, worth their labels, and need none."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse import csgraph
from sklearn.datasets import load_digits

from manifoldknn import ManifoldKNNClassifier, suggest
from manifoldknn.insight.ground import bare_ground
from manifoldknn.insight.suggestions import reasons, uncertainty
from strategies import problems

any_problem = pytest.mark.filterwarnings("ignore::manifoldknn.exceptions.ManifoldKNNWarning")


@any_problem
@settings(max_examples=60, deadline=None)
@given(problems(), st.integers(1, 12), st.sampled_from(["pruned", "union", "full"]))
def test_unlabelled_distinct_and_as_many_as_there_are(problem, n, graph):
    X, y = problem.X, problem.y
    clf = ManifoldKNNClassifier(graph=graph, graph_neighbors=5).fit(X, y)
    found = suggest(clf, n)
    assert (y[found.rows] == -1).all()
    chosen = X[found.rows]
    assert len(np.unique(chosen, axis=0)) == len(found) <= n
    if (y == -1).any():
        assert len(found) >= 1
    assert len(found.reasons) == len(found)
    more = suggest(clf, n + 5).to_dict()
    for name, column in found.to_dict().items():  # the first of many are those of few
        assert column == more[name][: len(found)]


def test_never_twenty_copies_of_one_row():
    rng = np.random.default_rng(0)
    X = np.concatenate([np.tile([[0.5, 0.5]], (300, 1)), rng.random((100, 2))])
    y = np.full(400, -1)
    y[[300, 301]] = 0, 1
    found = suggest(ManifoldKNNClassifier().fit(X, y), 20)
    assert (found.rows < 300).sum() <= 1
    assert len(found) > 10


def test_uncertainty_is_one_minus_the_margin():
    X = np.arange(9.0)[:, None]
    y = np.full(9, -1)
    y[0], y[8] = 0, 1
    clf = ManifoldKNNClassifier(graph="union", graph_neighbors=2, sigma=1.0).fit(X, y)
    shares = np.sort(clf.label_distributions_, axis=1)
    np.testing.assert_allclose(uncertainty(clf), 1 - (shares[:, 1] - shares[:, 0]))
    assert np.argmax(uncertainty(clf)) == 4


@any_problem
def test_unreached_rows_come_first():
    X = np.concatenate([np.arange(30.0), 1e3 + np.arange(30.0)])[:, None]
    y = np.full(60, -1)
    y[[0, 1, 28, 29]] = 0, 0, 1, 1
    clf = ManifoldKNNClassifier(graph="union", graph_neighbors=2).fit(X, y)
    assert (uncertainty(clf)[30:] == 1).all()
    found = suggest(clf, 3)
    assert found.rows[0] >= 30
    assert "no labelled row reaches" in found.reasons[0]


def test_names_and_reasons():
    X = np.concatenate([np.arange(20.0), 40 + np.arange(20.0)])[:, None]
    y = np.array(["left"] + [""] * 38 + ["right"])
    frame = pd.DataFrame(X, index=[f"r{i}" for i in range(40)], columns=["x"])
    found = suggest(ManifoldKNNClassifier().fit(frame, y), 3)
    assert list(found) == [f"r{i}" for i in found.rows]
    assert all("left" in reason or "right" in reason for reason in found.reasons)
    table = pd.DataFrame(found.to_dict())
    assert list(table.columns) == ["id", "row", "uncertainty", "speaks_for", "reason"]


@any_problem
def test_odd_cases():
    X = np.arange(10.0)[:, None]
    nothing = suggest(ManifoldKNNClassifier(graph_neighbors=3).fit(X, [0, 1] * 5), 3)
    assert len(nothing) == 0
    assert len(suggest(X, 3, y=[0] * 10)) == 0
    matrix = sparse.csr_array(np.eye(10)[:, :4] + 1)
    assert len(suggest(ManifoldKNNClassifier(metric="cosine").fit(matrix, [0, 1] + [-1] * 8), 2))


@pytest.mark.parametrize("n", [0, -1, 2.5, "3", True])
def test_bad_number(n):
    clf = ManifoldKNNClassifier(graph_neighbors=2).fit(np.arange(6.0)[:, None], [0, 1] + [-1] * 4)
    with pytest.raises(ValueError, match="n="):
        suggest(clf, n)


def test_very_many_rows_are_sampled(monkeypatch):
    X, truth = load_digits(return_X_y=True)
    y = np.where(np.arange(len(X)) < 300, truth, -1)
    clf = ManifoldKNNClassifier().fit(X / 16, y)
    whole = suggest(clf, 10)
    monkeypatch.setattr("manifoldknn.insight.suggestions._STEPS", 1.0)
    monkeypatch.setattr("manifoldknn.insight.suggestions._FEWEST", 100)
    found = suggest(clf, 10)
    assert found.speaks_for.sum() == pytest.approx(whole.speaks_for.sum(), rel=0.5)
    assert not np.array_equal(found.rows, suggest(clf, 10, random_state=1).rows)
    many = suggest(clf, 130)  # more than were drawn
    np.testing.assert_array_equal(many.rows[:10], found.rows)
    assert len(set(many.rows.tolist())) == 130


def test_better_than_random_on_digits():
    X, truth = load_digits(return_X_y=True)
    X = X / 16
    errors = {"suggested": [], "random": []}
    for seed in range(3):
        start = np.full(len(X), -1)
        rng = np.random.default_rng(seed)
        for c in range(10):
            start[rng.choice(np.flatnonzero(truth == c), 3, replace=False)] = c
        for way, wrong in errors.items():
            y = start.copy()
            for _ in range(2):
                clf = ManifoldKNNClassifier().fit(X, y)
                rows = suggest(clf, 10).rows
                if way == "random":
                    rows = rng.choice(np.flatnonzero(y < 0), 10, replace=False)
                y[rows] = truth[rows]
            wrong.append((ManifoldKNNClassifier().fit(X, y).transduction_ != truth).mean())
    assert np.mean(errors["suggested"]) < 0.75 * np.mean(errors["random"])


@any_problem
@settings(max_examples=60, deadline=None)
@given(problems(), st.integers(1, 60), st.sampled_from(["pruned", "union", "full"]), st.booleans())
def test_as_many_as_there_are_distinct_rows(problem, n, graph, as_sparse):
    X, y = problem.X, problem.y
    data = sparse.csr_array(X) if as_sparse else X
    clf = ManifoldKNNClassifier(graph=graph, graph_neighbors=5).fit(data, y)
    found = suggest(clf, n)
    assert len(found) == min(n, len(np.unique(X[y == -1] + 0.0, axis=0)))
    assert len(np.unique(X[found.rows] + 0.0, axis=0)) == len(found)
    assert (y[found.rows] == -1).all()
    assert len(found.speaks_for) == len(found.uncertainty) == len(found)


@pytest.mark.parametrize("graph", ["pruned", "full"])
def test_reasons_are_true(graph):
    X = np.arange(60.0)[:, None]
    y = np.full(60, -1)
    y[[0, 59]] = 0, 1
    clf = ManifoldKNNClassifier(graph=graph, graph_neighbors=2, sigma=0.5).fit(X, y)
    found = suggest(clf, 58)
    linked = np.isfinite(
        clf.fitted_.graph.log_weights
        if graph == "full"
        else np.where(clf.fitted_.graph.log_weights.toarray() != 0, 1.0, np.inf)
    ).astype(float)
    steps = csgraph.shortest_path(linked, unweighted=True, indices=[0, 59]).min(axis=0)
    alone = [row for row, why in zip(found.rows, found.reasons) if "without a label nearby" in why]
    assert all(steps[row] > 2 for row in alone)
    assert bool(alone) == (graph == "pruned")


def test_without_any_label_rows_are_typical_and_far_apart():
    X, truth = load_digits(return_X_y=True)
    found = suggest(X / 16, 30)
    assert set(truth[found.rows[:15]]) == set(range(10))
    assert (found.uncertainty == 1).all()
    assert found.reasons[0] == f"typical of about {found.speaks_for[0]} rows around it"
    y = np.full(len(X), -1)
    same = suggest(X / 16, 30, y=y, estimator=ManifoldKNNClassifier())
    np.testing.assert_array_equal(same.rows, found.rows)
    y[found.rows] = truth[found.rows]
    wrong = (ManifoldKNNClassifier().fit(X / 16, y).transduction_ != truth).mean()
    assert wrong < 0.03  # 30 random rows: some 0.12


@any_problem
def test_with_one_class_it_looks_for_the_others():
    X, truth = load_digits(return_X_y=True)
    y = np.where(np.arange(len(X)) < 200, truth, -1)
    y[y != 3] = -1
    found = suggest(X, 9, y=y)
    assert len(set(truth[found.rows].tolist()) - {3}) >= 7
    assert "edges from the nearest label" in found.reasons[0]
    fitted = suggest(ManifoldKNNClassifier().fit(X, y), 9)
    assert fitted.to_dict() == found.to_dict()


def test_samples_with_labels_are_fitted_first():
    X, truth = load_digits(return_X_y=True)
    y = np.where(np.arange(len(X)) < 30, truth, -1)
    model = ManifoldKNNClassifier(graph_neighbors=8)
    found = suggest(X, 5, y=y, estimator=model)
    assert not hasattr(model, "classes_")
    assert found.to_dict() == suggest(model.fit(X, y), 5).to_dict()
    with pytest.raises(ValueError, match="go with samples"):
        suggest(model, 5, y=y)


@any_problem
def test_a_row_that_speaks_for_itself_only_is_told_so():
    ground = bare_ground(
        ManifoldKNNClassifier(),
        np.arange(9.0)[:, None],
        None,
        None,
        must_link=None,
        cannot_link=None,
    )
    told = reasons(ground, np.array([0, 1]), np.array([1, 2]))
    assert told == ["typical of no other row", "typical of about 2 rows around it"]
