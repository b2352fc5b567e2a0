import numpy as np
import pytest

from manifoldknn import ManifoldKNNClassifier, persist
from manifoldknn.files.archive import ModelFileError
from manifoldknn.files.learning_state import restored_state, state_arrays, state_data


def streamed(n=120, late=15, seed=0, **settings):
    """A model with rows that joined after its walk."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) + 4 * (np.arange(n) % 2)[:, None]
    y = np.where(np.arange(n) < 8, np.arange(n) % 2, -1)
    clf = ManifoldKNNClassifier(**settings).fit(X[:-late], y[:-late])
    half = late // 2
    clf.partial_fit(X[n - late : n - half], refresh=False)
    clf.partial_fit(X[n - half :], refresh=False)
    assert clf.fitted_.arrivals is not None
    return clf, X


@pytest.mark.parametrize("graph", ["pruned", "union", "full"])
@pytest.mark.parametrize("late", [0, 15])
def test_a_loaded_model_goes_on_as_the_saved_one_does(tmp_path, graph, late):
    if late:
        clf, X = streamed(graph=graph)
    else:
        clf, X = streamed(graph=graph)
        clf.refresh()
    persist.save(clf, tmp_path / "model.mknn")
    again = persist.load(tmp_path / "model.mknn")
    new = np.random.default_rng(1).normal(size=(9, 3))
    for step in (
        lambda model: model.partial_fit(new, refresh=False),
        lambda model: model.set_labels([50], [1]),
        lambda model: model.partial_fit(new + 0.1, [0] + [-1] * 8),
        lambda model: model.refresh(),
    ):
        step(clf)
        step(again)
        np.testing.assert_array_equal(clf.transduction_, again.transduction_)
        np.testing.assert_array_equal(clf.label_distributions_, again.label_distributions_)
        np.testing.assert_array_equal(clf.predict_proba(X), again.predict_proba(X))
        np.testing.assert_array_equal(clf.score_samples(), again.score_samples())
        assert clf.n_walked_ == again.n_walked_


def test_changed_settings_are_remembered(tmp_path):
    """Lists that no longer belong to the parameters are searched again, loaded or not."""
    clf, X = streamed()
    clf.set_params(graph_neighbors=4)
    persist.save(clf, tmp_path / "model.mknn")
    again = persist.load(tmp_path / "model.mknn")
    clf.refresh()
    again.refresh()
    np.testing.assert_array_equal(clf.predict_proba(X), again.predict_proba(X))


HARM = {
    "a neighbour that is not there": ("lists_indices", lambda a: a + 10_000),
    "neighbours of too few rows": ("lists_indices", lambda a: a[:-1]),
    "distances that are not numbers": ("lists_distances", lambda a: a * np.nan),
    "an edge to nowhere": ("edges_high", lambda a: a + 10_000),
    "an edge backwards": ("edges_low", lambda a: a + 100),
    "edges without length": ("edges_length", lambda a: a[:-1]),
    "a row that leans on later ones": ("late_indices", lambda a: np.full_like(a, 119)),
    "late rows out of order": ("late_seen", lambda a: a[::-1]),
    "weights of other shape": ("late_z", lambda a: a[:, :-1]),
    "flags that are numbers": ("late_off_manifold", lambda a: a.astype(float)),
    "residuals that are not numbers": ("late_residuals", lambda a: a + np.inf),
}


@pytest.mark.parametrize("what", HARM)
def test_what_cannot_be_is_refused(what):
    clf, _ = streamed()
    arrays, data = state_arrays(clf), state_data(clf)
    restored_state(clf, clf.fitted_.walk, arrays, data)
    name, harm = HARM[what]
    with pytest.raises(ValueError, match="cannot be"):
        restored_state(clf, clf.fitted_.walk, {**arrays, name: harm(arrays[name])}, data)


def test_late_rows_must_be_there(tmp_path):
    clf, _ = streamed()
    arrays = {k: v for k, v in state_arrays(clf).items() if not k.startswith("late_")}
    with pytest.raises(ValueError, match="rows cannot be"):
        restored_state(clf, clf.fitted_.walk, arrays, state_data(clf))
    persist.save(clf, tmp_path / "model.mknn")
    content = (tmp_path / "model.mknn").read_bytes()
    (tmp_path / "model.mknn").write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelFileError):
        persist.load(tmp_path / "model.mknn")
