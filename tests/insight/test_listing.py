"""Findings are tables: for pandas, and for people who look at a notebook."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from manifoldknn import (
    ManifoldKNNClassifier,
    TableEncoder,
    find_label_errors,
    inspect,
    suggest,
)

HOSTILE = "<script>alert('x')</script>&\"<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def fitted():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", HOSTILE, "virginica"])[y].astype(object)
    names[np.arange(150) % 5 > 0] = None
    names[10] = "virginica"  # a setosa
    frame = pd.DataFrame(X, columns=list("abcd"), index=[f"{HOSTILE} {i}" for i in range(150)])
    return ManifoldKNNClassifier().fit(frame, names)


def test_to_frame(fitted):
    found = suggest(fitted, 4)
    frame = found.to_frame()
    assert frame["id"].tolist() == list(found)
    assert frame["row"].tolist() == found.rows.tolist()
    assert frame.columns.tolist() == list(found.to_dict())
    errors = find_label_errors(fitted)
    assert errors.to_frame()["suggested"].tolist() == errors.suggested.tolist()
    health = inspect(fitted)
    shown = health.to_frame().set_index("what")["value"]
    assert shown["n_rows"] == 150
    assert shown["labels_per_class"] == health.labels_per_class
    lines = health.to_frame().query("what == 'advice'")["value"].tolist()
    assert lines == (health.advice or ["none: the graph is healthy"])


def test_hostile_text_is_shown_as_text(fitted):
    columns = TableEncoder().fit(pd.DataFrame({HOSTILE: [1.0, 2.0, 4.0]})).columns_
    for found in (suggest(fitted, 4), find_label_errors(fitted), inspect(fitted), columns):
        page = found._repr_html_()
        assert "<table>" in page
        assert "<script" not in page
        assert "<img" not in page
        assert "&lt;script&gt;" in page


def test_long_lists_are_cut(fitted):
    page = suggest(fitted, 70)._repr_html_()
    assert page.count("<tr>") == 61
    assert "and 10 more" in page
    assert "more</p>" not in suggest(fitted, 2)._repr_html_()


def test_no_findings_are_an_empty_table():
    X, y = load_iris(return_X_y=True)
    y[np.arange(150) % 50 > 2] = -1
    found = find_label_errors(ManifoldKNNClassifier().fit(X, y))
    assert len(found.to_frame()) == len(found)
    assert "<table>" in found._repr_html_()


def test_without_pandas_it_is_said(fitted, monkeypatch):
    found = suggest(fitted, 2)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas, or use to_dict"):
        found.to_frame()
    assert "<table>" in found._repr_html_()


def test_moments_stay_moments():
    X, y = load_iris(return_X_y=True)
    y[np.arange(150) % 10 > 0] = -1
    days = pd.date_range("2024-01-01", periods=150)
    clf = ManifoldKNNClassifier().fit(pd.DataFrame(X, index=days, columns=list("abcd")), y)
    found = suggest(clf, 2)
    assert found.to_frame()["id"].tolist() == days[found.rows].tolist()
    clf.set_labels(found, [0, 1])
    assert set(found.rows) <= set(clf.labeled_indices_)
