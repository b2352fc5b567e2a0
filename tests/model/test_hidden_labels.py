"""The accuracy to expect: one number, whoever asks."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from manifoldknn import ManifoldKNNClassifier, TableEncoder, as_published
from manifoldknn.cli.main import main
from manifoldknn.model.hidden_labels import hidden_labels

FLOWERS = Path(__file__).parents[2] / "examples" / "flowers.csv"
X, TRUTH = load_iris(return_X_y=True)
Y = np.where(np.arange(150) % 10 > 0, -1, TRUTH)


def test_it_is_what_the_command_prints(tmp_path, capsys):
    wanted = ["classify", str(FLOWERS), "--label", "species", "--id", "id", "--json", "--quiet"]
    assert main([*wanted, "--out", str(tmp_path / "a.csv")]) == 0
    said = json.loads(capsys.readouterr().out)
    frame = pd.read_csv(FLOWERS, index_col="id")
    model = make_pipeline(TableEncoder(drop=["species"]), ManifoldKNNClassifier())
    clf = model.fit(frame, frame["species"].astype(object).fillna(""))[-1]
    expected = clf.expected_accuracy_
    assert expected.accuracy == pytest.approx(said["validation"]["accuracy"], rel=1e-5)
    assert expected[1:] == pytest.approx(said["validation"]["interval"], rel=1e-5)
    assert said["features"] == clf.n_features_in_
    labelled = pd.read_csv(tmp_path / "a.csv")
    assert labelled["predicted"].tolist() == clf.transduction_.tolist()
    confidence = clf.label_distributions_.max(axis=1)
    free = frame["species"].isna().to_numpy()
    np.testing.assert_allclose(labelled["confidence"][free], confidence[free], rtol=1e-5)


def test_the_fit_has_it_already(monkeypatch):
    clf = ManifoldKNNClassifier().fit(X, Y)

    def again(_):
        raise AssertionError("hidden twice")

    monkeypatch.setattr("manifoldknn.classifier.hidden_labels", again)
    found = clf.expected_accuracy_
    assert found == (clf.hidden_labels_.accuracy, *clf.hidden_labels_.interval())
    assert found.low <= found.accuracy <= found.high


@pytest.mark.parametrize("clf", [as_published(), ManifoldKNNClassifier(sharpness=1.0)], ids=str)
def test_where_the_fit_hid_nothing_it_is_hidden_once(clf, monkeypatch):
    expected = hidden_labels(clf.fit(X, Y))
    assert clf.hidden_labels_ is None
    assert clf.expected_accuracy_.accuracy == expected.accuracy
    monkeypatch.setattr("manifoldknn.classifier.hidden_labels", None)
    assert clf.expected_accuracy_ == expected.expected


def test_it_may_be_unknown():
    lonely = np.full(150, -1)
    lonely[[0, 50, 100]] = [0, 1, 2]
    assert ManifoldKNNClassifier().fit(X, lonely).expected_accuracy_ is None
    with pytest.raises(NotFittedError):
        ManifoldKNNClassifier().expected_accuracy_  # noqa: B018
    assert not hasattr(ManifoldKNNClassifier(), "expected_accuracy_")
