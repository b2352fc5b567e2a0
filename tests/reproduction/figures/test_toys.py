"""The answers of figures 1 and 5 to 7, held against what the classifiers say by themselves."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from manifoldknn.baselines import GeodesicKNNClassifier
from manifoldknn.datasets import make_arch_and_s, make_circle_and_strip, make_knot, make_two_circles
from manifoldknn.reproduction.experiment import Plan
from manifoldknn.reproduction.figures.toys import (
    FIG1,
    FIG4,
    FIG5,
    FIG6,
    FIG7,
    METHODS,
    answer,
    error_percent,
)
from manifoldknn.reproduction.methods import DEFAULT, NEIGHBORS
from manifoldknn.reproduction.problems import SYNTHETIC

FIGURES = [(FIG5, make_two_circles), (FIG6, make_circle_and_strip), (FIG7, make_knot)]


def rows_of(experiment, plan):
    return [row for c in experiment.cells(plan) for row in experiment.measure(c, plan)]


@pytest.mark.parametrize(("figure", "make"), FIGURES)
def test_all_methods_on_one_set(figure, make):
    plan = Plan(seed=3)
    rows = rows_of(figure, plan)
    X, truth, labeled = make(random_state=3)
    assert len(rows) == 5 * len(X)
    assert all(set(row) == set(figure.columns) for row in rows)
    for place, method in enumerate(METHODS):
        own = rows[place * len(X) : (place + 1) * len(X)]
        assert {row["method"] for row in own} == {method}
        assert [(r["x"], r["y"]) for r in own] == [tuple(x) for x in X.tolist()]
        assert [i for i, r in enumerate(own) if r["labelled"]] == sorted(labeled.tolist())
        assert all(r[k] == r["class"] for r in own if r["labelled"] for k in ("k1", "k3", "k5"))
    plain = KNeighborsClassifier(3).fit(X[labeled], truth[labeled]).predict(X)
    unlabeled = np.setdiff1d(np.arange(len(X)), labeled)
    expected = 100 * np.mean(plain[unlabeled] != truth[unlabeled])
    (table,) = figure.tables(rows)
    assert table.rows[0][0] == "kNN"
    assert table.rows[0][2] == pytest.approx(expected)
    errors = {line[0]: line[1:4] for line in table.rows}
    assert errors[NEIGHBORS][2] < min(errors["kNN"])
    assert len(set(errors[DEFAULT])) == 1  # nobody counts voters there
    assert errors[DEFAULT][0] < min(errors["kNN"])
    panels = figure.draw(rows).axes
    assert all(ax.get_title().startswith(method) for ax, method in zip(panels, METHODS))
    assert panels[4].get_title() == f"{DEFAULT}: error {errors[DEFAULT][0]:.1f} %"


def test_geodesic_answers_see_the_unlabelled_rows():
    X, truth, labeled = make_knot(random_state=0)
    y = np.full(len(X), -1)
    y[labeled] = truth[labeled]
    expected = GeodesicKNNClassifier(1).fit(X, y).transduction_
    np.testing.assert_array_equal(answer("gkNN", 1, X, truth, labeled), expected)
    hidden = truth.copy()
    hidden[np.setdiff1d(np.arange(len(X)), labeled)] = 99  # nobody may look at these
    for method in METHODS:
        assert set(answer(method, 3, X, hidden, labeled)) <= {0, 1}


def test_figure_1_is_plain_knn():
    plan = Plan(seed=2)
    rows = rows_of(FIG1, plan)
    X, truth, labeled = make_arch_and_s(random_state=2)
    for k in (1, 2, 3):
        found = KNeighborsClassifier(k).fit(X[labeled], truth[labeled]).predict(X)
        rest = np.setdiff1d(np.arange(len(X)), labeled)
        assert error_percent(rows, k) == pytest.approx(100 * np.mean(found[rest] != truth[rest]))
    titles = [ax.get_title() for ax in FIG1.draw(rows).axes]
    assert titles[1:] == [f"k = {k}: error {error_percent(rows, k):.1f} %" for k in (1, 2, 3)]


def test_figure_4_shows_the_sets_themselves():
    rows = rows_of(FIG4, Plan())
    (table,) = FIG4.tables(rows)
    for line, (name, make) in zip(table.rows, SYNTHETIC.items()):
        X, y, labeled = make(random_state=0)
        assert name in line[0]
        assert list(line[1:]) == [len(X), int(np.sum(y == 0)), int(np.sum(y == 1)), len(labeled)]
    assert len(FIG4.draw(rows).axes) == 3
