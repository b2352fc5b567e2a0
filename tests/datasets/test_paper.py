"""The real sets: where they are looked for, and what is refused, by name and expectation."""

import os
from dataclasses import replace
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest
import sklearn.datasets

from manifoldknn.datasets import PAPER_SETS, load_paper
from manifoldknn.datasets.paper import Spec, row_means

FOLDER = os.environ.get("MANIFOLDKNN_DATA")
needs_folder = pytest.mark.skipif(
    not FOLDER or not all((Path(FOLDER) / s.files[-1]).is_file() for s in PAPER_SETS.values()),
    reason="MANIFOLDKNN_DATA names no folder with the six data sets",
)


def small_set():
    """24 rows of 3 classes, of which 4 are repeated."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 5)).astype(np.float32)
    y = np.arange(20) % 3
    again = np.array([0, 1, 2, 0])
    return np.concatenate([X, X[again]]).astype(np.float64), np.concatenate([y, y[again]])


@pytest.fixture
def spec(monkeypatch, tmp_path):
    """A small set under the name of a real one, and folders of its own."""
    X, y = small_set()
    means = row_means(X)
    spec = Spec(
        name="banknote",
        files=("banknote.npz", "other.npz"),
        openml=(7,),
        n_features=5,
        n_paper=20,
        classes_paper=3,
        drops_repeats=True,
        counts=tuple(np.bincount(y).tolist()),
        class_means=tuple((np.bincount(y, means) / np.bincount(y)).tolist()),
        deviation=float(means.std()),
    )
    monkeypatch.setitem(PAPER_SETS, "banknote", spec)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("sys.platform", "linux")
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("MANIFOLDKNN_DATA", str(tmp_path / "data"))
    return spec


@pytest.fixture
def data(spec, tmp_path):
    assert spec.name == "banknote"  # whose folders these are
    return tmp_path / "data"


@pytest.fixture
def offline(monkeypatch):
    def fail(**_):
        raise URLError("no network")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fail)


@pytest.fixture
def online(monkeypatch):
    """OpenML holds the small set, with classes named as there; returns the calls."""
    X, y = small_set()
    calls = []

    def fetch(*, data_id, **_):
        calls.append(data_id)
        return X, np.array(["1", "2", "10"], dtype=object)[y]

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    return calls


def refused(match):
    with pytest.raises(ValueError, match=match) as caught:
        load_paper("banknote")
    return str(caught.value)


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("file", ["banknote.npz", "other.npz"])
def test_a_file_is_read_cleaned_and_scaled(data, file):
    X, y = small_set()
    np.savez(data / file, X=X, y=y)
    found = load_paper("banknote")
    assert found.X.shape == (20, 5)
    assert found.n_removed == 4
    assert found.source == str(data / file)
    np.testing.assert_array_equal(found.y, y[:20])
    np.testing.assert_array_equal(found.X.min(axis=0), 0)
    np.testing.assert_array_equal(found.X.max(axis=0), 1)
    np.testing.assert_array_equal(load_paper("banknote", scale=False).X, X[:20])


@pytest.mark.usefixtures("offline")
def test_other_names_types_units_and_orders_are_the_same_set(data):
    X, y = small_set()
    order = np.random.default_rng(1).permutation(len(X))
    named = np.array(["1", "2", "10"])[y]
    np.savez(data / "banknote.npz", X=100 * X[order].astype(np.float32) + 3, y=named[order])
    assert np.bincount(load_paper("banknote").y).tolist() == np.bincount(y[:20]).tolist()


@pytest.mark.usefixtures("offline")
def test_the_folder_comes_before_the_cache(data, tmp_path):
    X, y = small_set()
    cache = tmp_path / "cache" / "manifoldknn"
    cache.mkdir(parents=True)
    np.savez(cache / "banknote.npz", X=X, y=y)
    assert load_paper("banknote").source == str(cache / "banknote.npz")
    np.savez(data / "banknote.npz", X=X, y=y)
    assert load_paper("banknote").source == str(data / "banknote.npz")


@pytest.mark.usefixtures("spec")
def test_a_download_is_checked_and_kept(tmp_path, online):
    first = load_paper("banknote")
    again = load_paper("banknote")
    assert online == [7]
    assert first.source == "OpenML 7"
    assert again.source == str(tmp_path / "cache" / "manifoldknn" / "banknote.npz")
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.y, again.y)


@pytest.mark.usefixtures("spec")
def test_a_wrong_download_is_refused_and_not_kept(tmp_path, monkeypatch):
    X, y = small_set()
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **_: (X[:-1], y[:-1]))
    assert "numpy.savez" in refused(r"OpenML 7 is not .*found X of shape \(23, 5\)")
    assert not (tmp_path / "cache").exists()


def test_parts_are_joined_side_by_side(spec, monkeypatch):
    X, y = small_set()
    monkeypatch.setitem(PAPER_SETS, "banknote", replace(spec, openml=(7, 8)))
    parts = {7: (X[:, :2], y), 8: (X[:, 2:], y)}
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda *, data_id, **_: parts[data_id])
    np.testing.assert_array_equal(load_paper("banknote", scale=False).X, X[:20])
    shuffled = np.random.default_rng(0).permutation(len(X))
    parts[8] = (X[shuffled, 2:], y[shuffled])
    monkeypatch.setenv("XDG_CACHE_HOME", "elsewhere")
    refused("OpenML 8 has its rows in another order")
    # The same labels, but rows shuffled within a class.
    within = np.arange(len(X))
    within[y == 0] = np.random.default_rng(2).permutation(within[y == 0])
    parts[8] = (X[within, 2:], y)
    refused("columns do not belong to one another")


@pytest.mark.usefixtures("spec", "offline")
def test_offline_without_data_says_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        load_paper("banknote")
    message = str(caught.value)
    for words in (
        "'banknote'",
        "no network",
        "banknote.npz",
        "(24, 5)",
        str(tmp_path / "cache" / "manifoldknn"),
        "MANIFOLDKNN_DATA",
    ):
        assert words in message


@pytest.mark.usefixtures("spec")
def test_a_download_can_be_forbidden(online):
    with pytest.raises(FileNotFoundError, match="download=False"):
        load_paper("banknote", download=False)
    assert online == []


@pytest.mark.usefixtures("spec", "offline")
def test_a_folder_that_is_none(monkeypatch):
    monkeypatch.setenv("MANIFOLDKNN_DATA", "nowhere-at-all")
    with pytest.raises(FileNotFoundError, match="MANIFOLDKNN_DATA=nowhere-at-all is not a folder"):
        load_paper("banknote")


@pytest.mark.usefixtures("offline")
class TestWrongFiles:
    """Each is refused with the name of the file and what was expected."""

    @pytest.fixture
    def write(self, data):
        def write(X, y, **more):
            np.savez(data / "banknote.npz", X=X, y=y, **more)
            return str(data / "banknote.npz")

        return write

    @pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99])
    def test_truncated(self, write, share):
        path = write(*small_set())
        whole = Path(path).read_bytes()
        Path(path).write_bytes(whole[: int(share * len(whole))])
        message = refused("cannot be read")
        assert path in message
        assert "expected an .npz file with arrays X and y" in message

    def test_one_bit_flipped(self, write):
        path = write(*small_set())
        whole = bytearray(Path(path).read_bytes())
        whole[len(whole) // 3] ^= 8
        Path(path).write_bytes(bytes(whole))
        assert path in refused("cannot be read|is not the data set")

    def test_something_else(self, data):
        (data / "banknote.npz").write_text("variance,skewness\n1,2\n")
        assert str(data / "banknote.npz") in refused("cannot be read")

    def test_without_labels(self, data):
        np.savez(data / "banknote.npz", X=small_set()[0])
        assert "arrays X and y" in refused("cannot be read")

    def test_pickled_objects(self, write):
        X, y = small_set()
        write(X.astype(object), y)
        assert "without pickled objects" in refused("cannot be read")

    def test_too_few_rows(self, write):
        X, y = small_set()
        path = write(X[:-2], y[:-2])
        assert path in refused(r"found X of shape \(22, 5\), expected X of shape \(24, 5\)")

    def test_another_set_under_that_name(self, write):
        write(np.zeros((9298, 256)), np.zeros(9298))
        refused("the shape of 'usps', expected X of shape")

    def test_labels_of_another_length(self, write):
        X, y = small_set()
        write(X, y[:-1])
        refused(r"found y of shape \(23,\), expected y of shape \(24,\)")

    def test_text(self, write):
        X, y = small_set()
        words = X.astype(str)
        words[0, 0] = "much"
        write(words, y)
        refused("expected numbers")

    def test_missing_values(self, write):
        X, y = small_set()
        X[3, 2] = np.nan
        write(X, y)
        refused("found 1 missing values in X, expected none")

    def test_one_label_changed(self, write):
        X, y = small_set()
        y[5] = (y[5] + 1) % 3
        path = write(X, y)
        message = refused("classes of .* rows, expected")
        assert path in message
        assert str(np.bincount(small_set()[1]).tolist()) in message

    def test_two_labels_swapped(self, write):
        X, y = small_set()
        y[4], y[5] = y[5], y[4]
        assert write(X, y) in refused("rows are mislabelled or values are changed")

    def test_classes_renamed(self, write):
        X, y = small_set()
        write(X, (y + 1) % 3)
        refused("mislabelled|classes of")

    def test_cleaned_to_another_number(self, write, spec, monkeypatch):
        monkeypatch.setitem(PAPER_SETS, "banknote", replace(spec, n_paper=19))
        write(*small_set())
        refused("found 20 rows without repetitions, expected 19 different rows")


@pytest.mark.parametrize("name", ["mnist", "USPS", None, 3, ["usps"]])
def test_unknown_names(name):
    with pytest.raises(ValueError, match="must be one of 'usps', 'segmentation'"):
        load_paper(name)


@needs_folder
@pytest.mark.parametrize("name", list(PAPER_SETS))
class TestRealSets:
    def test_as_in_the_table_of_the_paper(self, name):
        table = {  # n, d, C; segmentation has one class more than stated
            "usps": (9298, 256, 10),
            "segmentation": (2086, 19, 6 + 1),
            "banknote": (1348, 4, 2),
            "pendigits": (10992, 16, 10),
            "multifeature": (2000, 649, 10),
            "satlog": (6435, 36, 6),
        }
        found = load_paper(name, download=False)
        assert (*found.X.shape, found.y.max() + 1) == table[name]
        assert found.X.min() == 0
        assert found.X.max() == 1

    def test_swapped_labels_are_refused(self, name, tmp_path, monkeypatch):
        """Even where the class counts are the same: 20 random pairs of rows."""
        spec = PAPER_SETS[name]
        with np.load(Path(FOLDER) / spec.files[-1]) as file:
            X, y = file["X"], file["y"]
        monkeypatch.setenv("MANIFOLDKNN_DATA", str(tmp_path))
        rng = np.random.default_rng(0)
        ones, others = rng.choice(len(y), (2, 20), replace=False)
        y[ones], y[others] = y[others], y[ones]
        np.savez(tmp_path / spec.files[0], X=X, y=y)
        with pytest.raises(ValueError, match=spec.files[0]):
            load_paper(name, download=False)
