"""The summary holds together in odd cases too."""

from types import SimpleNamespace

import numpy as np
import pytest

from manifoldknn import ManifoldKNNClassifier, as_published, inspect
from manifoldknn.model.hidden_labels import hidden_labels
from manifoldknn.reporting.summary import as_table, summary_data, summary_text
from manifoldknn.reporting.trust import trust_groups
from manifoldknn.tables.session import Session
from manifoldknn.vote.hidden import hidden_groups

DATA = {
    "rows": 1000, "labelled": 3, "labels_per_class": {"a": 1, "b": 2},
    "predicted_per_class": {"a": 400, "b": 590, "": 10}, "mean_confidence": 0.5, "unreached": 10,
    "features": 4, "intrinsic_dimension": 2.2,
    "graph": {"kind": "union", "neighbours": 10, "edges": 5000, "components": 2,
              "islands_without_labels": 1, "sigma": 0.1, "farthest_hops": 7},
    "calibrated": True, "confidence_is": "a probability",
    "vote": {"kind": "classes", "alpha": 0.9985, "sharpness": 1.234, "class_prior": {}},
    "validation": {"accuracy": 0.5, "interval": [0.1, 0.9], "labels_judged": 2, "labels_found": 1,
                   "groups": 3, "reliability": []},
    "advice": ["Do this."],
    "notes": ["Mind that."], "seconds": {"reading": 0.1},
    "trust": trust_groups(
        np.array(["a", "b"]), np.repeat([0, 1, -1], [400, 590, 10]),
        np.repeat([0.9, 0.5, 0.0], [400, 590, 10]), None,
    ),
    "abstained": 10,
}  # fmt: skip


def test_every_fact_is_told():
    text = summary_text(DATA)
    words = [
        "1,000",
        "2 dimensions",
        "2 components",
        "1 island without",
        "50.0%: when hidden, 1 of 2 labels were found again, classes weighted by how many rows",
        "so 10% to 90% (95 % interval)",
        "classes, alpha 0.9985, sharpness 1.23",
        "trusted     400 answers can be trusted, with at least 80% confidence",
        "to look at  600 answers need a look, with less than 80% confidence",
        "10 rows are left without an answer",
    ]
    words += [
        "(none)",
        "Do this.",
        "Mind that.",
        "reading 0.1 s",
        "0.50 on average, unlabelled rows; it is a probability",
    ]
    for word in words:
        assert word in text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mean_confidence": None}, "every row is labelled"),
        ({"validation": None}, "not estimated"),
        ({"validation": DATA["validation"] | {"accuracy": None}}, "no class has two"),
        ({"vote": DATA["vote"] | {"kind": "neighbors", "sharpness": None}}, "alpha 0.9985\n"),
        ({"intrinsic_dimension": None}, "features    4\n"),
        ({"predicted_per_class": {str(i): i for i in range(30)}}, "and 12 more"),
    ],
)
def test_odd_cases(change, words):
    assert words in summary_text(DATA | change)


def problem(per_class):
    """Two half-circles that touch, each with so many labels."""
    rng = np.random.default_rng(0)
    angle = np.pi * rng.random(120)
    side = np.arange(120) % 2
    X = np.column_stack([np.cos(angle) + side, np.where(side, -1, 1) * np.sin(angle)])
    y = np.full(120, -1)
    for code, count in enumerate(per_class):
        y[np.flatnonzero(side == code)[:count]] = code
    return X + 0.35 * rng.normal(size=X.shape), y


def data_of(clf, X, y, *, validated=True):
    labels = np.where(y < 0, "", y.astype(str)).astype(object)
    step = SimpleNamespace(features=[None] * X.shape[1])
    session = Session(None, np.arange(len(X)), labels, step, clf.fit(X, y))
    hidden = hidden_labels(clf) if validated else None
    sure = clf.label_distributions_.max(axis=1)
    return summary_data(session, inspect(clf), hidden, clf.transduction_, sure, validated=validated)


def test_the_estimate_is_that_of_the_fit(monkeypatch):
    X, y = problem([12, 5])
    clf = ManifoldKNNClassifier()
    monkeypatch.setattr("manifoldknn.vote.hidden.hidden_groups", None)  # nobody hides labels again
    data = data_of(clf, X, y)
    valid = data["validation"]
    assert valid["accuracy"] == pytest.approx(clf.hidden_labels_.accuracy, rel=1e-5)
    assert valid["interval"] == pytest.approx(clf.hidden_labels_.interval(), rel=1e-5)
    assert (valid["labels_judged"], valid["groups"]) == (17, 5)
    assert valid["labels_found"] == clf.hidden_labels_.right.sum() < 17
    assert sum(tenth["answers"] for tenth in valid["reliability"]) == 17
    assert sum(tenth["right"] for tenth in valid["reliability"]) == valid["labels_found"]
    hidden = clf.hidden_labels_
    for code, told in enumerate(valid["per_class"]):
        became = hidden.found[hidden.given == code].tolist()
        assert told["class"] == str(code)
        assert told["labels_judged"] == len(became) == (12, 5)[code]
        assert told["labels_found"] == became.count(code)
        assert told["mistaken"] == became.count(1 - code)
        assert told["mistaken_for"] == (str(1 - code) if 1 - code in became else None)
    assert data["calibrated"] is True
    assert data["vote"]["sharpness"] == pytest.approx(clf.sharpness_, rel=1e-5)
    assert data["vote"]["class_prior"] == {"0": 0.5, "1": 0.5}
    assert data_of(clf, X, y, validated=False)["validation"] is None


def test_a_given_sharpness_is_estimated_as_a_learned_one():
    X, y = problem([12, 5])
    learned = ManifoldKNNClassifier().fit(X, y)
    given = ManifoldKNNClassifier(sharpness=learned.sharpness_)
    data = data_of(given, X, y)
    assert given.hidden_labels_ is None
    assert data["calibrated"] is False
    assert "the sharpness was given" in summary_text(data)
    hidden = hidden_labels(given)
    np.testing.assert_allclose(hidden.shares, learned.hidden_labels_.shares, rtol=1e-9)
    np.testing.assert_array_equal(hidden.class_weights, learned.hidden_labels_.class_weights)
    assert data["validation"]["accuracy"] == pytest.approx(learned.hidden_labels_.accuracy)


@pytest.mark.parametrize("graph", ["pruned", "full"])
def test_the_vote_of_neighbours_is_estimated_as_by_fits_without_the_labels(graph):
    X, y = problem([12, 5])
    clf = as_published(graph=graph, n_neighbors=3).fit(X, y)
    hidden = hidden_labels(clf)
    assert hidden.n_folds == 5
    learned = ManifoldKNNClassifier().fit(X, y).hidden_labels_
    np.testing.assert_array_equal(hidden.rows, learned.rows)
    for group in hidden_groups(y):
        without = y.copy()
        without[group] = -1
        again = as_published(graph=graph, n_neighbors=3, sigma=clf.sigma_).fit(X, without)
        at = np.searchsorted(hidden.rows, group)
        np.testing.assert_allclose(hidden.shares[at], again.label_distributions_[group], atol=5e-3)
    assert (hidden.given == y[hidden.rows]).all()
    counts = np.bincount(clf.transduction_)
    np.testing.assert_allclose(hidden.class_weights, counts / 120)


@pytest.mark.parametrize("parameters", [{}, {"vote": "neighbors"}, {"sharpness": 2.0}])
def test_nothing_to_hide(parameters):
    X, y = problem([1, 1])
    data = data_of(ManifoldKNNClassifier(**parameters), X, y)
    assert data["validation"]["accuracy"] is None
    assert data["validation"]["labels_judged"] == 0
    assert data["calibrated"] is False
    text = summary_text(data)
    assert "cannot be estimated: no class has two labels" in text
    assert ("a guess, not calibrated" in text) == ("vote" not in parameters)
    assert "one label only (0, 1)" in text


def test_rows_that_the_graph_has_not_yet_are_no_part_of_an_estimate():
    X, y = problem([4, 4])
    clf = ManifoldKNNClassifier(vote="neighbors").fit(X[:118], y[:118])
    clf.partial_fit(X[118:], y[118:])
    with pytest.raises(ValueError, match=r"call refresh\(\) first"):
        hidden_labels(clf)


def test_cells_of_several_lines_stay_on_one():
    assert as_table(["a"], [["x\ny"]]) == "a\nx y"
