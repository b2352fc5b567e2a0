"""The table features of the command line in Python: the same numbers, whatever the frame."""

import datetime as dt
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from frames import NAMED_POLARS
from manifoldknn import ManifoldKNNClassifier, TableEncoder, suggest
from manifoldknn.exceptions import ColumnWarning
from manifoldknn.tables import features
from manifoldknn.tables.features import FeatureStep
from manifoldknn.tables.table import open_table


@pytest.mark.filterwarnings("ignore::manifoldknn.exceptions.ColumnWarning")
@parametrize_with_checks([TableEncoder()])
def test_sklearn_check(estimator, check):
    check(estimator)


def mixed(n=60, seed=0):
    """Return a table of every kind of column, as lists with None where a value is missing."""
    rng = np.random.default_rng(seed)
    columns = {
        "size": np.round(rng.normal(5, 1, n), 3).tolist(),
        "tail": [*np.round(rng.pareto(0.7, n - 1), 3).tolist(), 1e6],
        "text": [f"<{x:.1f}" if x < 0.2 else f"{x:.3f}" for x in rng.uniform(0, 1, n)],
        "site": rng.choice(["a", "b", "c"], n).tolist(),
        "ok": rng.choice([True, False], n).tolist(),
        "day": [dt.date(2024, 1, 1) + dt.timedelta(int(d)) for d in rng.integers(0, 200, n)],
        "name": [f"row {i}" for i in range(n)],
    }
    for name in ("size", "site", "ok", "day"):
        for row in rng.choice(n, 4, replace=False):
            columns[name][row] = None
    return columns


@pytest.mark.parametrize("frame_of", [pd.DataFrame, NAMED_POLARS, pa.table])
def test_the_features_are_those_of_the_command_line(tmp_path, frame_of):
    columns = mixed()
    pd.DataFrame(columns).to_csv(tmp_path / "a.csv", index=False)
    pd.DataFrame(columns).to_parquet(tmp_path / "a.parquet")
    encoder = TableEncoder()
    made = encoder.fit_transform(frame_of(columns))
    for form in ("csv", "parquet"):
        step, X = FeatureStep.fit(open_table(tmp_path / f"a.{form}", form), list(columns))
        np.testing.assert_array_equal(made, X)
        assert encoder.get_feature_names_out().tolist() == step.features
    assert made.dtype == np.float32
    assert encoder.columns_.to_dict()["used_as"][-1] == "left out"
    assert "long tail, so scaled by rank" in encoder.columns_.to_dict()["how_or_why_not"]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(10, 40), st.booleans())
def test_transform_repeats_what_fit_transform_made(seed, n, scale):
    frame = pd.DataFrame(mixed(n, seed))
    encoder = TableEncoder(scale=scale)
    made = encoder.fit_transform(frame)
    np.testing.assert_array_equal(encoder.transform(frame), made)
    rows = np.random.default_rng(seed).permutation(n)[: n // 2]
    np.testing.assert_array_equal(encoder.transform(frame.iloc[rows]), made[rows])
    assert np.isfinite(made).all()


def test_new_cells_are_read_as_those_of_the_fit():
    fitted = pd.DataFrame({"x": ["1,5", "2,5", "4,0", None], "kind": ["a", "b", "b", "a"]})
    encoder = TableEncoder().fit(fitted)
    new = pd.DataFrame({"x": ["3,5", None], "kind": ["b", "zebra"]})
    with pytest.warns(ColumnWarning, match="'kind': 1 of 2 rows hold a new category") as caught:
        X = encoder.transform(new)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert X[0, 0] == pytest.approx(0.8)
    assert X[1, :2].tolist() == pytest.approx([0.4, 0.25])
    assert X[1, 2] == X[1, 3] < 0
    with pytest.warns(ColumnWarning, match="'kind': 1 value missing, and none was before"):
        encoder.transform(pd.DataFrame({"x": ["3,5"], "kind": [None]}))
    with pytest.warns(ColumnWarning, match=r"'x': 1 of 1 cell could not be read.*'tall'"):
        X = encoder.transform(pd.DataFrame({"x": ["tall"], "kind": ["a"]}))
    assert X[0, :2].tolist() == pytest.approx([0.4, 0.25])
    with pytest.raises(ValueError, match=r"must hold numbers, as when .* \('tall'\)"):
        encoder.transform(pd.DataFrame({"x": ["tall"] * 10, "kind": ["a"] * 10}))


def test_what_is_lost_is_told():
    odd = [*map(str, range(9)), "1.2.3.4"]
    with pytest.warns(ColumnWarning, match=r"'x': 1 of 10 cells could not be read.*'1.2.3.4'"):
        TableEncoder().fit(pd.DataFrame({"x": odd, "y": np.arange(10) % 3}))
    words = [*map(str, range(34)), *["tall"] * 7]
    with pytest.warns(ColumnWarning, match="name those that mean missing with na=$"):
        TableEncoder().fit(pd.DataFrame({"x": words, "y": np.arange(41) % 3}))
    encoder = TableEncoder(na=["tall"]).fit(pd.DataFrame({"x": words, "y": np.arange(41) % 3}))
    assert encoder.get_feature_names_out().tolist() == ["x", "x is missing", "y"]


def test_output_is_as_set():
    frame = pd.DataFrame(mixed(), index=[f"r{i}" for i in range(60)])
    made = TableEncoder().set_output(transform="pandas").fit_transform(frame)
    assert made.index.equals(frame.index)
    assert made.columns[:2].tolist() == ["size", "size is missing"]
    assert isinstance(
        TableEncoder().set_output(transform="polars").fit_transform(frame), pl.DataFrame
    )


def test_chosen_columns():
    frame = pd.DataFrame(mixed())
    few = TableEncoder(features=["size", "tail"], drop=["tail"]).fit(frame)
    assert few.get_feature_names_out().tolist() == ["size", "size is missing"]
    assert clone(few).features == ["size", "tail"]
    for option in ("features", "drop"):
        with pytest.raises(ValueError, match=f"{option}: no column 'sise'; the columns are: size"):
            TableEncoder(**{option: ["sise"]}).fit(frame)
    with pytest.raises(ValueError, match=r"column 'name' cannot be a feature \(text with more"):
        TableEncoder(features=["name"]).fit(frame)


def test_labels_among_the_columns_are_refused():
    frame = pd.DataFrame(mixed())
    frame["class"] = [None, "u", "v", *([None] * 57)]
    for columns in (frame, pl.from_pandas(frame)):
        with pytest.raises(ValueError, match=r"column 'class' of X is called like y.*drop="):
            TableEncoder().fit(columns, columns["class"])
        made = TableEncoder(drop=["class"]).fit(columns, columns["class"])
        assert "class=u" not in made.get_feature_names_out()


@pytest.mark.parametrize("frame_of", [pd.DataFrame, NAMED_POLARS])
def test_a_pipeline_learns_from_unlabelled_rows(frame_of):
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 60)
    columns = {
        "x": (truth + rng.normal(0, 0.1, 120)).tolist(),
        "site": np.where(truth ^ (rng.random(120) < 0.1), "north", "south").tolist(),
    }
    columns["x"][5] = columns["site"][7] = None
    frame = frame_of(columns)
    y = np.full(120, -1)
    y[[0, 1, 60, 61]] = truth[[0, 1, 60, 61]]
    model = make_pipeline(TableEncoder(), ManifoldKNNClassifier()).fit(frame, y)
    assert (model[-1].transduction_ == truth).mean() > 0.95
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (model.predict(frame[:5]) == 0).all()
    with pytest.warns(ColumnWarning, match="new category"):
        model.predict(frame_of({"x": [0.0], "site": ["elsewhere"]}))


@pytest.mark.parametrize("partner", [None, "forest"])
@pytest.mark.parametrize("n_numbers", [0, 3, 20])
def test_an_unseen_category_takes_confidence_and_no_answer(n_numbers, partner, monkeypatch):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 400)
    columns = {f"x{j}": truth + rng.normal(0, 0.7, 400) for j in range(n_numbers)}
    for name in ("site", "kind", "maker", "batch"):
        words = rng.choice(list("abcde"), (3, 5))
        columns[name] = [words[c, rng.integers(0, 5)] for c in truth]
    frame = pd.DataFrame(columns)
    frame.loc[::17, "site"] = None
    y = np.where(np.arange(300) < 60, truth[:300], -1)
    clf = ManifoldKNNClassifier(partner=partner, random_state=0)
    model = make_pipeline(TableEncoder(), clf).fit(frame[:300], y)
    known, new = frame[300:], frame[300:].assign(site="elsewhere")
    usual = model.predict_proba(known).max(axis=1)
    with pytest.warns(ColumnWarning, match="hold a new category"):
        doubted, answers = model.predict_proba(new).max(axis=1), model.predict(new)
    assert (doubted < usual).all()
    assert doubted.mean() < usual.mean() - 0.2
    monkeypatch.setattr(features, "_unseen", lambda _: 0.0)  # as if the cell told nothing
    with pytest.warns(ColumnWarning):
        untold = model.predict(new)
    assert (answers == untold).mean() > 0.97  # equal distances may be rounded differently


def test_rows_keep_their_names_through_a_pipeline():
    frame = pd.DataFrame(mixed(), index=[f"r{i}" for i in range(60)])
    y = np.full(60, -1)
    y[:6] = [0, 1] * 3
    named = make_pipeline(TableEncoder().set_output(transform="pandas"), ManifoldKNNClassifier())
    ids = suggest(named.fit(frame, y)[-1], 2).ids
    assert set(ids) <= set(frame.index)
    named[-1].set_labels(ids, [0, 1])
    assert named[-1].labeled_indices_.tolist() == sorted(
        [*range(6), *frame.index.get_indexer(ids).tolist()]
    )


def test_names_of_the_input_are_checked():
    encoder = TableEncoder().fit(pd.DataFrame(mixed()))
    with pytest.raises(ValueError, match="not equal to feature_names_in_"):
        encoder.get_feature_names_out(["a"])
    plain = TableEncoder().fit(np.random.default_rng(0).normal(size=(5, 2)))
    assert plain.get_feature_names_out(["a", "b"]).tolist() == ["x0", "x1"]
    with pytest.raises(ValueError, match="length equal to number of features"):
        plain.get_feature_names_out(["a"])
