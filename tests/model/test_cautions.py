"""Warnings before a fit, each where it belongs and nowhere else."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.base.labels import encode_labels
from manifoldknn.exceptions import EverythingLabeledWarning, GraphSizeWarning, OneClassWarning
from manifoldknn.model.cautions import (
    confidence_words,
    label_advice,
    partner_words,
    usable_graph_neighbors,
    warn_about_labels,
)


def test_more_neighbours_than_rows():
    assert usable_graph_neighbors(9, 10) == 9
    with pytest.warns(GraphSizeWarning, match="only 9 rows: using 8"):
        assert usable_graph_neighbors(9, 9) == 8


def test_labels_that_leave_nothing_to_decide():
    with pytest.warns(OneClassWarning, match="Only the class 3"):
        warn_about_labels(encode_labels([3, -1]), everything=True)
    with pytest.warns(EverythingLabeledWarning):
        warn_about_labels(encode_labels([0, 1]), everything=True)


@pytest.mark.parametrize("graph", ["pruned", "union", "full"])
@pytest.mark.parametrize("vote", ["classes", "neighbors"])
def test_rows_that_are_too_far_for_their_logarithms_are_told(graph, vote):
    X = np.concatenate([np.arange(20.0), 1e5 + np.arange(20.0), [-1e6]])[:, None]
    y = np.full(41, -1)
    y[[0, 1, 21]] = 0, 1, 1
    model = ManifoldKNNClassifier(graph=graph, vote=vote, sigma=1.0, on_unreached="abstain")
    with pytest.warns(ConvergenceWarning, match=r"rows are so far from others.* Raise sigma"):
        model.fit(X, y)
    assert not model.fitted_.walk.converged
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.set_params(sigma=1e3).fit(X, y).fitted_.walk.converged


@pytest.mark.parametrize(("alpha", "told"), [(0.9997, False), (1 - 1e-7, True)])
def test_the_nearer_alpha_is_to_1_the_fewer_digits_logarithms_have(alpha, told):
    X = np.random.default_rng(1).integers(0, 5, (38, 4)).astype(float)
    y = np.where(np.arange(38) < 5, np.arange(38) % 3, -1)
    model = ManifoldKNNClassifier(graph="full", sigma=0.003, alpha=alpha, tol=1e-6)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert any("so far from others" in str(w.message) for w in heard) == told
    assert model.fitted_.walk.converged == (not told)


@pytest.mark.parametrize("graph", ["pruned", "union", "full"])
def test_rows_may_be_as_far_as_can_be(graph):
    """Where weights had no digits left, Cholesky's factorisation failed with a raw LinAlgError."""
    X = 1 + 1e-3 * np.random.default_rng(0).normal(size=(60, 3))
    model = ManifoldKNNClassifier(graph=graph, sigma=1e-12, alpha=1 - 1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OneClassWarning)
        with pytest.warns(ConvergenceWarning, match=r"rows are so far from others"):
            model.fit(X, np.where(np.arange(60) == 0, 0, -1))
    assert (model.label_distributions_ == 1).all()


def test_no_warning_without_a_reason():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_about_labels(encode_labels(np.array([0, 1, -1])), everything=True)
        warn_about_labels(encode_labels([0, 1]), everything=False)  # more rows may follow


def fitted(counts, **parameters):
    """A line of points; its classes have so many labels."""
    y = np.full(80, -1)
    y[: sum(counts)] = np.repeat(np.arange(len(counts)), counts)
    return ManifoldKNNClassifier(graph_neighbors=4, **parameters).fit(np.arange(80.0)[:, None], y)


def test_single_labels_are_told():
    assert label_advice(fitted([2, 2])) == []
    (told,) = label_advice(fitted([2, 1, 1]))
    assert told.startswith("Classes with one label only (1, 2): how often")
    assert "Label one more row of each" in told
    (told,) = label_advice(fitted([1] * 7))
    assert "(0, 1, 2, 3, 4 and 2 more)" in told


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({}, "count equally all the same. Only if the rows to label were drawn at random, set c"),
        ({"class_prior": "labeled"}, "which is right only if the rows to label were drawn at"),
        ({"class_prior": [0.2, 0.8]}, "is taken from class_prior all the same"),
        ({"vote": "neighbors"}, "With vote='neighbors' that favours it"),
    ],
)
def test_very_unequal_numbers_of_labels_are_told(parameters, words):
    assert label_advice(fitted([10, 2], **parameters)) == []  # five times, not more
    (told,) = label_advice(fitted([2, 11], **parameters))
    assert told.startswith("Class 1 has 11 labels and class 0 only 2. ")
    assert words in told


@pytest.mark.parametrize(
    ("counts", "parameters", "words"),
    [
        ([2, 2], {}, "a probability, calibrated"),
        ([1, 1], {}, "a guess, not calibrated: no class has two labels"),
        ([2, 2], {"sharpness": 2}, "a guess, not calibrated: the sharpness was given"),
        ([2, 2], {"vote": "neighbors"}, "the share of the vote, which is no probability"),
    ],
)
def test_what_a_confidence_is(counts, parameters, words):
    assert words in confidence_words(fitted(counts, **parameters))


@pytest.mark.parametrize(
    ("per_class", "said"),
    [(1, "a forest has no say: none was hidden"), (8, "a forest has no say: hidden labels are")],
)
def test_a_forest_without_a_say_is_told(per_class, said):
    X, truth = make_blobs(60, centers=2, random_state=0)
    X[truth == 1] += 100
    y = np.full(60, -1)
    for c in (0, 1):
        y[np.flatnonzero(truth == c)[:per_class]] = c
    assert partner_words(ManifoldKNNClassifier().fit(X, y)) == []
    (words,) = partner_words(ManifoldKNNClassifier(partner="forest").fit(X, y))
    assert words.startswith(said)
