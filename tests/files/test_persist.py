"""A classifier that comes back from a file is the one that went in."""

import os
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_digits, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import NearestNeighbors

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.files import persist
from manifoldknn.files.archive import read_archive, write_archive
from manifoldknn.files.json_values import to_plain
from manifoldknn.files.persist import ModelFileError
from manifoldknn.search.inverted import InvertedIndex
from manifoldknn.vote.hidden import HiddenLabels

FITTED = (
    "classes_", "transduction_", "label_distributions_", "labeled_indices_", "sigma_",
    "unreached_", "n_iter_", "n_features_in_", "alpha_", "sharpness_", "class_prior_",
    "calibrated_", "n_walked_",
)  # fmt: skip


@pytest.fixture(scope="module")
def moons():
    X, truth = make_moons(120, noise=0.05, random_state=0)
    y = np.full(120, -1)
    for c in (0, 1):
        y[np.flatnonzero(truth == c)[:4]] = c
    return X, y


def there_and_back(clf, folder, **options):
    persist.save(clf, folder / "model.mknn", **options)
    return persist.load(folder / "model.mknn")


def assert_same(clf, again, Q):
    for name in FITTED:
        a, b = getattr(clf, name), getattr(again, name)
        np.testing.assert_array_equal(a, b)
        assert np.asarray(a).dtype == np.asarray(b).dtype
    assert (clf.hidden_labels_ is None) == (again.hidden_labels_ is None)
    if clf.hidden_labels_ is not None:
        for field in fields(HiddenLabels):
            a, b = (getattr(model.hidden_labels_, field.name) for model in (clf, again))
            np.testing.assert_array_equal(a, b)
        assert clf.hidden_labels_.interval() == again.hidden_labels_.interval()
    np.testing.assert_array_equal(clf.fitted_.links.must, again.fitted_.links.must)
    np.testing.assert_array_equal(clf.fitted_.links.cannot, again.fitted_.links.cannot)
    np.testing.assert_array_equal(clf.predict_proba(Q), again.predict_proba(Q))
    np.testing.assert_array_equal(clf.predict(Q), again.predict(Q))
    for a, b in zip(clf.kneighbors(Q), again.kneighbors(Q)):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(clf.kneighbors(), again.kneighbors()):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "params",
    [
        {}, {"graph": "union", "graph_neighbors": 4}, {"graph": "full"}, {"n_neighbors": 50},
        {"sigma": 0.2, "alpha": 0.9, "tree_depth": 0, "random_state": 7}, {"metric": "cosine"},
        {"class_prior": "labeled"}, {"class_prior": [0.3, 0.7]}, {"metric": "manhattan"},
        {"vote": "neighbors"}, {"vote": "neighbors", "graph": "full", "class_prior": [0.3, 0.7]},
        {"sharpness": 0.5},
        {"n_jobs": 1, "verbose": 0, "sigma": np.float32(0.3), "n_neighbors": np.int64(3)},
    ],
    ids=str,
)  # fmt: skip
def test_answers_are_the_same_bit_for_bit(moons, tmp_path, params):
    X, y = moons
    clf = ManifoldKNNClassifier(**params).fit(X + 3, y)
    again = there_and_back(clf, tmp_path)
    assert_same(clf, again, X[:40] + 3.01)
    for name, value in clf.get_params().items():
        np.testing.assert_array_equal(value, again.get_params()[name])


def test_a_forest_comes_back_as_arrays(tmp_path):
    """Bit for bit, after a second round trip too, and the model goes on learning."""
    X = np.random.default_rng(0).random((120, 8))
    y = np.where(np.arange(120) < 40, X[:, 0] > 0.5, -1)  # in one column, which distances hide
    clf = ManifoldKNNClassifier(partner="forest").fit(X, y)
    assert clf.partner_weight_ > 0
    clf.partial_fit(X[:10] + 0.02, refresh=False)
    again = there_and_back(clf, tmp_path)
    assert_same(clf, again, X[:20] + 0.01)
    assert_same(clf, there_and_back(again, tmp_path), X[:20] + 0.01)
    assert clf.partner_weight_ == again.partner_weight_
    assert again.partner == "forest"
    assert_same(clf.set_labels([40], [1]), again.set_labels([40], [1]), X[:20] + 0.01)


def test_files_without_a_partner_say_nothing_of_it(moons, tmp_path):
    persist.save(ManifoldKNNClassifier().fit(*moons), tmp_path / "a.mknn")
    arrays, data = contents(tmp_path / "a.mknn")
    assert "partner" not in data["params"]
    assert "partner_weight" not in data
    assert not any(name.startswith("forest") for name in arrays)


def test_other_partners_are_refused(moons, tmp_path):
    X, y = moons
    clf = ManifoldKNNClassifier(partner=GaussianNB()).fit(X, y)
    with pytest.raises(ValueError, match=r"partner is an object.*fit with partner='forest'"):
        persist.save(clf, tmp_path / "a.mknn")
    clf.set_params(partner=None)  # which takes effect with the next fit only
    with pytest.raises(ValueError, match="of type GaussianNB cannot be saved"):
        persist.save(clf, tmp_path / "a.mknn")
    assert not list(tmp_path.iterdir())


def test_a_partner_that_is_set_later_counts_later(moons, tmp_path):
    X, y = moons
    clf = ManifoldKNNClassifier().fit(X, y).set_params(partner="forest")
    again = there_and_back(clf, tmp_path)
    assert_same(clf, again, X[:9] + 0.01)
    assert again.partner_ is None
    clf = ManifoldKNNClassifier(partner="forest").fit(X, y).set_params(partner=None)
    assert_same(clf, there_and_back(clf, tmp_path), X[:9] + 0.01)


@pytest.mark.parametrize(
    "names",
    [
        np.array(["yes", "no", ""]), np.array(["ja", "nö\n\"", None], dtype=object),
        np.array([True, False, None], dtype=object), np.array([5, 2**40, -1]),
        np.array([2**80, 1, None], dtype=object), np.array([b"a", b"b", b""]),
        np.array([1.0, 2.0, np.nan]),
    ],
    ids=lambda a: a.dtype.str,
)  # fmt: skip
def test_labels_of_every_kind(moons, tmp_path, names):
    X, y = moons
    clf = ManifoldKNNClassifier().fit(X, names[y])
    assert_same(clf, there_and_back(clf, tmp_path), X[:9] + 0.01)


@pytest.mark.parametrize("graph", ["pruned", "full"])
def test_links_are_kept_and_hold(moons, tmp_path, graph):
    X, y = moons
    clf = ManifoldKNNClassifier(graph=graph)
    clf.fit(X, y, must_link=[[20, 30], [30, 40]], cannot_link=[[20, 50], [7, 60]])
    again = there_and_back(clf, tmp_path)
    assert_same(clf, again, X[:20] + 0.01)
    clf.partial_fit(X[:10] + 0.02, refresh=False)
    again = there_and_back(clf, tmp_path)
    assert_same(clf, again, X[:20] + 0.01)
    assert_same(clf.refresh(), again.refresh(), X[:20] + 0.01)
    with pytest.raises(ValueError, match="cannot_link"):
        again.set_labels([20, 50], [1, 1])


def test_links_that_contradict_are_refused(moons, tmp_path):
    X, y = moons
    path = tmp_path / "a.mknn"
    persist.save(ManifoldKNNClassifier().fit(X, y, must_link=[[20, 30]]), path)
    for pair in ([20, 20], [20, 120], [-1, 5], np.flatnonzero(y >= 0)[[0, -1]]):
        arrays, data = contents(path)
        arrays["links_must"][0] = pair
        altered(tmp_path / "b.mknn", arrays, data)
        with pytest.raises(ModelFileError, match="do not fit together"):
            persist.load(tmp_path / "b.mknn")


def test_islands_and_abstention(tmp_path):
    X = np.concatenate([np.arange(8.0), 1e3 + np.arange(8.0)])[:, None]
    y = np.array(["a", "b"] + [""] * 14)
    clf = ManifoldKNNClassifier(graph="union", graph_neighbors=2, on_unreached="abstain")
    with pytest.warns(UserWarning, match="connected to no labelled"):
        clf.fit(X, y)
    again = there_and_back(clf, tmp_path)
    np.testing.assert_array_equal(again.transduction_, clf.transduction_)
    assert again.unreached_.sum() == 8
    with pytest.warns(UserWarning, match="connected to no labelled"):
        assert again.predict([[1003.2]]).tolist() == [""]


def test_sparse_and_single_precision(moons, tmp_path):
    X, y = moons
    for data in (sparse.csr_array(X), X.astype(np.float32)):
        clf = ManifoldKNNClassifier().fit(data, y)
        again = there_and_back(clf, tmp_path)
        assert type(again.fitted_.index.X) is type(clf.fitted_.index.X)
        assert_same(clf, again, data[:20])


def test_column_names(moons, tmp_path):
    X, y = moons
    frame = pd.DataFrame(X, columns=["länge", "b,\n"])
    again = there_and_back(ManifoldKNNClassifier().fit(frame, y), tmp_path)
    assert again.feature_names_in_.tolist() == ["länge", "b,\n"]
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame.rename(columns={"länge": "x"}))


def test_neighbours_brought_along(moons, tmp_path):
    X, y = moons
    distances, indices = NearestNeighbors(n_neighbors=31).fit(X).kneighbors()
    clf = ManifoldKNNClassifier(neighbors=(indices, distances)).fit(X, y)
    assert_same(clf, there_and_back(clf, tmp_path), X[:20] + 0.01)


def test_approximate_search_is_built_again_the_same(tmp_path):
    X, truth = load_digits(return_X_y=True)
    X = np.tile(X, (3, 1)) + np.random.default_rng(0).normal(size=(3 * len(X), 64))
    y = np.full(len(X), -1)
    y[:60] = truth[:60]
    clf = ManifoldKNNClassifier(neighbors="inverted", random_state=3).fit(X, y)
    again = there_and_back(clf, tmp_path)
    assert isinstance(again.fitted_.index.first, InvertedIndex)
    assert_same(clf, again, X[:200] + 0.1)


def test_extra_is_kept(moons, tmp_path):
    clf = ManifoldKNNClassifier().fit(*moons)
    persist.save(clf, tmp_path / "a.mknn", extra={"columns": ["a", 1, None]})
    assert persist.load_with_extra(tmp_path / "a.mknn")[1] == {"columns": ["a", 1, None]}


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"metric": lambda a, b: abs(a - b).sum()}, "metric"),
        ({"neighbors": NearestNeighbors(n_neighbors=5)}, "neighbors"),
        ({"random_state": np.random.RandomState(0)}, "random_state"),
    ],
)
def test_what_cannot_be_saved_is_named(moons, tmp_path, params, words):
    clf = ManifoldKNNClassifier(**params).fit(*moons)
    with pytest.raises(ValueError, match=words):
        persist.save(clf, tmp_path / "a.mknn")
    assert not os.listdir(tmp_path)


def test_unfitted_and_existing(moons, tmp_path):
    with pytest.raises(NotFittedError):
        persist.save(ManifoldKNNClassifier(), tmp_path / "a.mknn")
    clf = ManifoldKNNClassifier().fit(*moons)
    persist.save(clf, tmp_path / "a.mknn")
    with pytest.raises(FileExistsError):
        persist.save(clf, tmp_path / "a.mknn", force=False)


def test_too_large(moons, tmp_path):
    persist.save(ManifoldKNNClassifier().fit(*moons), tmp_path / "a.mknn")
    with pytest.raises(ModelFileError, match="at most"):
        persist.load(tmp_path / "a.mknn", max_bytes=1000)


def contents(path):
    return read_archive(path, kind="manifoldknn model", version=persist._VERSION)


def altered(path, arrays, data):
    write_archive(path, arrays, data, kind="manifoldknn model", version=persist._VERSION)


def test_indices_that_compiled_code_would_trust(moons, tmp_path):
    """Valid checksums, hostile numbers: refused before any compiled code sees them."""
    path = tmp_path / "a.mknn"
    persist.save(ManifoldKNNClassifier().fit(*moons), path)
    for name in ("lists_indices", "beside_low", "beside_high", "hidden_rows", "codes", "answers"):
        for value in (np.inf, -2):
            arrays, data = contents(path)
            arrays[name].flat[0] = min(value, np.iinfo(arrays[name].dtype).max)
            altered(tmp_path / "b.mknn", arrays, data)
            with pytest.raises(ModelFileError, match="do not fit together"):
                persist.load(tmp_path / "b.mknn")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_jobs", {"type": "int", "value": "1000000"}), ("theta", None), ("more", {}),
        ("verbose", None),
    ],
)  # fmt: skip
def test_parameters_are_exactly_those_of_the_classifier(moons, tmp_path, name, value):
    path = tmp_path / "a.mknn"
    persist.save(ManifoldKNNClassifier().fit(*moons), path)
    arrays, data = contents(path)
    if value is None:
        del data["params"][name]
    else:
        data["params"][name] = value
    altered(path, arrays, data)
    with pytest.raises(ModelFileError, match="do not fit together"):
        persist.load(path)


@pytest.mark.parametrize("name", ["sigma", "sharpness", "alpha"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan, "auto", None, True])
def test_numbers_that_must_be_positive(moons, tmp_path, name, value):
    path = tmp_path / "a.mknn"
    persist.save(ManifoldKNNClassifier().fit(*moons), path)
    arrays, data = contents(path)
    data[name] = to_plain(value)
    altered(path, arrays, data)
    with pytest.raises(ModelFileError, match=f"its {name} cannot be"):
        persist.load(path)


@pytest.mark.filterwarnings("ignore::manifoldknn.exceptions.UnreachedWarning")
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_altered_part_gives_one_kind_of_error(tmp_path_factory, data):
    """With checksums made good again, still a classifier or ModelFileError, and nothing else."""
    path = tmp_path_factory.mktemp("fuzz") / "a.mknn"
    X = np.arange(24.0).reshape(12, 2) % 7
    y, vote = [0, 1, 0, 1] + [-1] * 8, data.draw(st.sampled_from(["classes", "neighbors"]))
    clf = ManifoldKNNClassifier(vote=vote, graph_neighbors=3).fit(X, y, must_link=[[5, 6]])
    persist.save(clf, path)
    arrays, plain = contents(path)
    strange = st.sampled_from(
        [None, -1, 10**9, 1.5, "x", [], {}, True, {"type": "int", "value": "9"}]
    )
    match data.draw(st.sampled_from(["array", "shape", "drop", "data", "params"])):
        case "array":
            name = data.draw(st.sampled_from(sorted(arrays)))
            flat = arrays[name].reshape(-1)
            values = st.sampled_from([-1, 1, 99, 2**31 - 1, np.nan, -np.inf, 1e300])
            with np.errstate(invalid="ignore", over="ignore"):
                value = np.array(data.draw(values)).astype(flat.dtype)
            if flat.size:
                flat[data.draw(st.integers(0, flat.size - 1))] = value
        case "shape":
            name = data.draw(st.sampled_from(sorted(arrays)))
            arrays[name] = arrays[name][: data.draw(st.integers(0, 3))]
        case "drop":
            del arrays[data.draw(st.sampled_from(sorted(arrays)))]
        case "data":
            plain[data.draw(st.sampled_from(sorted(plain)))] = data.draw(strange)
        case "params":
            params = plain["params"]
            params[data.draw(st.sampled_from([*params, "unknown"]))] = data.draw(strange)
    altered(path, arrays, plain)
    try:
        again = persist.load(path)
    except ModelFileError:
        pass
    else:
        assert again.predict_proba(X).shape == (12, 2)


def test_doubts_are_kept_and_older_files_have_none(moons, tmp_path):
    X, y = moons
    clf = ManifoldKNNClassifier(abstain_below=0.7).fit(X, y)
    clf.partial_fit(X[:3] + 5.0, refresh=False)
    far = X[:20] + np.linspace(0, 3, 20)[:, None]
    again = there_and_back(clf, tmp_path)
    assert again.abstain_below == 0.7
    assert again.fitted_.vote.usual == clf.fitted_.vote.usual
    np.testing.assert_array_equal(again.predict_proba(far), clf.predict_proba(far))
    assert again.predict(far).tolist() == clf.predict(far).tolist()
    arrays, data = contents(tmp_path / "model.mknn")
    del data["usual"], data["stream"]["belonging"], data["params"]["abstain_below"]
    del arrays["late_belonging"]
    altered(tmp_path / "old.mknn", arrays, data)
    old = persist.load(tmp_path / "old.mknn")
    assert old.abstain_below is None
    votes, doubted = old.fitted_.votes(
        old.fitted_.walk.similarities, None, np.ones(len(old.unreached_))
    )
    np.testing.assert_array_equal(votes, doubted)
    np.testing.assert_allclose(old.label_distributions_, votes)
    assert old.predict_proba(far).max(axis=1).min() > clf.predict_proba(far).max(axis=1).min()
