"""Rows that may be suggested: labels that come later, one by one or very many at once."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.insight import candidates
from manifoldknn.insight.candidates import Candidates
from manifoldknn.insight.ground import walked_ground


@pytest.fixture(scope="module")
def ground():
    X, truth = load_digits(return_X_y=True)
    y = np.full(len(X), -1)
    y[[0, 1, 2]] = truth[[0, 1, 2]]
    fitted = ManifoldKNNClassifier().fit(X / 16, y)
    return walked_ground(fitted, lambda _: np.ones(len(X)), None)


def test_labels_that_come_later_count_as_those_before(ground):
    drawn = Candidates(ground, 300, 0)
    first, _ = drawn.ranked(ground, 30)
    later = replace(ground, labeled=np.append(ground.labeled, first[:20]))
    rows, _ = drawn.ranked(later, 10)
    assert len(np.intersect1d(rows, first[20:])) >= 9  # greedy, but for rounding


def test_of_very_many_labels_at_once_some_are_walked_from(ground, monkeypatch):
    drawn, columns = Candidates(ground, 300, 0), []
    walk = candidates.Nearness._walked

    def counted(self, sources):
        columns.append(len(sources))
        return walk(self, sources)

    monkeypatch.setattr(candidates.Nearness, "_walked", counted)
    labeled = np.arange(3, 1500)
    rows, _ = drawn.ranked(replace(ground, labeled=labeled), 10)
    assert not np.isin(rows, labeled).any()
    assert sum(columns) == candidates._LATER
