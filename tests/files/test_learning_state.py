import numpy as np
import pytest

from manifoldknn import ManifoldKNNClassifier, persist
from manifoldknn.files.archive import ModelFileError
from manifoldknn.files.learning_state import (
    restored_arrivals,
    restored_state,
    state_arrays,
    state_data,
)


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


def restored(clf, arrays, data):
    state = restored_state(clf, clf.fitted_.index, arrays, data)
    how = {"settings_hold": data["settings_hold"]}
    return state | {"arrivals": restored_arrivals(clf, clf.fitted_.walk, arrays, **how)}


def same_geometry(clf, state, width):
    """Lists as far as they are written, and all edges, to the last bit."""
    lists = clf.fitted_.lists
    np.testing.assert_array_equal(state["lists"].indices, lists.indices[:, :width])
    np.testing.assert_array_equal(state["lists"].distances, lists.distances[:, :width])
    for mine, theirs in zip(state["edges"], clf.fitted_.edges):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("graph", ["pruned", "union", "full"])
@pytest.mark.parametrize("neighbors", ["exact", "inverted"])
def test_short_lists_tell_every_edge(graph, neighbors):
    X = np.random.default_rng(0).normal(size=(300, 6))
    y = np.where(np.arange(300) < 9, X[:, 0] > 0, -1)
    clf = ManifoldKNNClassifier(graph=graph, neighbors=neighbors).fit(X, y)
    arrays = state_arrays(clf)
    assert arrays["lists_indices"].shape == (300, 10)
    assert ("lists_distances_squared" in arrays) == (neighbors == "inverted")
    if graph == "pruned":
        assert len(arrays["beside_low"]) < 0.3 * len(clf.fitted_.edges[0])
    same_geometry(clf, restored(clf, arrays, state_data(clf)), 10)


def test_lists_stay_whole_where_places_count():
    """Copies take the first places; other parameters or brought lists tell other edges."""
    X = np.random.default_rng(0).normal(size=(300, 2))
    y = np.where(np.arange(300) < 9, X[:, 0] > 0, -1)
    copied = np.concatenate([X[:250], X[:50]])
    changed = ManifoldKNNClassifier().fit(X, y).set_params(graph_neighbors=4)
    lists = changed.fitted_.lists.indices, changed.fitted_.lists.distances[:, ::-1].copy()
    brought = ManifoldKNNClassifier(neighbors=lists).fit(X, y)
    for clf in (ManifoldKNNClassifier().fit(copied, y), changed, brought):
        arrays, width = state_arrays(clf), clf.fitted_.lists.indices.shape[1]
        assert arrays["lists_indices"].shape[1] == width == 30
        same_geometry(clf, restored(clf, arrays, state_data(clf)), 30)
    assert "edges_low" in state_arrays(changed)


def test_files_of_older_versions_hold_all_edges():
    clf, _ = streamed()
    arrays, (low, high, length) = state_arrays(clf), clf.fitted_.edges
    arrays = {name: array for name, array in arrays.items() if "beside" not in name}
    lists = clf.fitted_.lists
    arrays |= {"lists_indices": lists.indices, "lists_distances": lists.distances}
    arrays |= {"edges_low": low, "edges_high": high, "edges_length": length}
    same_geometry(clf, restored(clf, arrays, state_data(clf)), 30)


def test_an_approximate_search_goes_on_after_a_file(tmp_path):
    clf, X = streamed(neighbors="inverted", late=15)
    clf.refresh()
    persist.save(clf, tmp_path / "model.mknn")
    again = persist.load(tmp_path / "model.mknn")
    for model in (clf, again):
        model.partial_fit(X[:9] + 0.1, [0] + [-1] * 8)
    np.testing.assert_array_equal(clf.label_distributions_, again.label_distributions_)
    same_geometry(clf, vars(again.fitted_), 30)


HARM = {
    "a neighbour that is not there": ("lists_indices", lambda a: a + 10_000),
    "neighbours of too few rows": ("lists_indices", lambda a: a[:-1]),
    "distances that are not numbers": ("lists_distances", lambda a: a * np.nan),
    "an edge to nowhere": ("beside_high", lambda a: a + 10_000),
    "an edge backwards": ("beside_low", lambda a: a + 100),
    "edges without length": ("beside_length", lambda a: a[:-1]),
    "a row that leans on later ones": ("late_indices", lambda a: np.full_like(a, 119)),
    "late rows out of order": ("late_seen", lambda a: a[::-1]),
    "weights of other shape": ("late_z", lambda a: a[:, :-1]),
    "flags that are numbers": ("late_off_manifold", lambda a: a.astype(float)),
    "rows that belong more than wholly": ("late_belonging", lambda a: a + 1),
    "residuals that are not numbers": ("late_residuals", lambda a: a + np.inf),
}


@pytest.mark.parametrize("what", HARM)
def test_what_cannot_be_is_refused(what):
    clf, _ = streamed()
    arrays, data = state_arrays(clf), state_data(clf)
    restored(clf, arrays, data)
    name, harm = HARM[what]
    with pytest.raises(ValueError, match="cannot be"):
        restored(clf, {**arrays, name: harm(arrays[name])}, data)


def test_late_rows_are_combined_of_as_many_as_further_ones_will_be():
    clf, _ = streamed()
    arrays, data = state_arrays(clf), state_data(clf)
    narrow = {name: arrays[name][:, :2] for name in ("late_z", "late_indices")}
    with pytest.raises(ValueError, match="late rows cannot be"):
        restored(clf, arrays | narrow, data)


def test_late_rows_must_be_there(tmp_path):
    clf, _ = streamed()
    arrays = {k: v for k, v in state_arrays(clf).items() if not k.startswith("late_")}
    with pytest.raises(ValueError, match="rows cannot be"):
        restored(clf, arrays, state_data(clf))
    persist.save(clf, tmp_path / "model.mknn")
    content = (tmp_path / "model.mknn").read_bytes()
    (tmp_path / "model.mknn").write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelFileError):
        persist.load(tmp_path / "model.mknn")
