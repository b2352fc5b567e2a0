"""Columns become features, the same ones again from what JSON kept."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifoldknn.tables.features import FeatureStep, Plan
from manifoldknn.tables.table import TableError, open_table

COLUMNS = {
    "x": ["1", "3", "NA", "2"],
    "ok": ["yes", "no", "no", ""],
    "day": ["2024-01-01", "2024-01-05", "2024-01-02", "2024-01-03"],
    "kind": ["a", "b", "", "a"],
    "text": ["p", "q", "r", "s"],
}


def table_of(tmp_path, columns):
    rows = [",".join(columns), *(",".join(row) for row in zip(*columns.values()))]
    (tmp_path / "a.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return open_table(tmp_path / "a.csv", "csv", delimiter=",")


def test_every_kind_of_column(tmp_path):
    step, X = FeatureStep.fit(table_of(tmp_path, COLUMNS), list(COLUMNS))
    assert step.features == [
        "x", "x is missing", "ok", "ok is missing", "day", "kind=a", "kind=b", "kind is missing"
    ]  # fmt: skip
    assert step.left_out == [("text", "text that differs in every row")]
    half = 0.25 / math.sqrt(2)
    expected = [
        [0.0, 0, 0.25, 0, 0.0, half, 0, 0],
        [1.0, 0, 0.0, 0, 1.0, 0, half, 0],
        [0.5, 0.25, 0.0, 0, 0.25, 0, 0, 0.25],  # x: the median
        [0.5, 0, 0.0, 0.25, 0.5, half, 0, 0],
    ]
    np.testing.assert_allclose(X, expected, atol=1e-6)
    assert X.dtype == np.float32


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.just(""), st.floats(-1e6, 1e6).map(repr)),
            st.sampled_from(["", "u", "v", "w"]),
        ),
        min_size=3,
        max_size=20,
    )
)
def test_the_written_step_makes_the_same_features(tmp_path_factory, rows):
    rows = [("1.0", "u"), ("2.0", "v"), *rows]
    columns = {"x": [a for a, _ in rows], "k": [b for _, b in rows]}
    table = table_of(tmp_path_factory.mktemp("f"), columns)
    step, X = FeatureStep.fit(table, ["x", "k"])
    assert (X >= 0).all()
    assert (X <= 1).all()
    again = FeatureStep.from_plain(json.loads(json.dumps(step.to_plain(), allow_nan=False)))
    Y, _, notes = again.transform(table)
    np.testing.assert_array_equal(X, Y)
    assert not notes


def test_without_scaling(tmp_path):
    _, X = FeatureStep.fit(table_of(tmp_path, COLUMNS), ["x", "day"], scale=False)
    assert X[:, 0].tolist() == [1, 3, 2, 2]
    assert X.dtype == np.float64
    assert X[1, 2] - X[0, 2] == 4


def test_a_matrix_keeps_its_geometry(tmp_path):
    M = np.random.default_rng(0).normal(size=(20, 3)) * [1, 10, 100]
    np.savez(tmp_path / "a.npz", M=M)
    _, X = FeatureStep.fit(open_table(tmp_path / "a.npz", "npz"), ["0", "1", "2"])
    np.testing.assert_allclose(X, (M - M.min()) / np.ptp(M), atol=1e-6)


def test_new_rows(tmp_path):
    step, _ = FeatureStep.fit(table_of(tmp_path, COLUMNS), ["x", "day", "kind"])
    new = COLUMNS | {"x": ["5", "", "1", "1"], "kind": ["z", "a", "", "b"], "more": list("1234")}
    new["day"] = ["", *COLUMNS["day"][1:]]
    X, _, notes = step.transform(table_of(tmp_path, new))
    assert X[0, 0] == 2.0  # beyond what was seen: not cut off
    assert X[1, 1] == 0.25
    assert any(
        "'kind': 1 of 4 rows hold a new category (the model knows 'a', 'b')" in note
        for note in notes
    )
    assert any("'day': 1 value missing" in note for note in notes)


def test_missing_categories_are_told_apart_from_new_ones(tmp_path):
    full = {"x": ["1", "2", "4"], "kind": ["a", "b", "a"]}
    step, _ = FeatureStep.fit(table_of(tmp_path, full), ["x", "kind"])
    new = {"x": ["1", "2", "4", "4"], "kind": ["", "NA", "z", "b"]}
    X, _, notes = step.transform(table_of(tmp_path, new))
    assert notes == [
        "'kind': 2 values missing, and none was before",
        "'kind': 1 of 4 rows hold a new category (the model knows 'a', 'b')",
    ]
    np.testing.assert_array_equal(X[:2, 1:], 0)
    assert X[3, 2] > 0
    X, _, notes = step.transform(table_of(tmp_path, new | {"kind": ["", "a", "b", "b"]}))
    assert notes == ["'kind': 1 value missing, and none was before"]


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("kinds", ["ababc", "aabbc "])
def test_a_new_category_is_far_from_all_and_changes_no_order(tmp_path, kinds, scale):
    rows = {"x": [str(i * i) for i in range(len(kinds))], "kind": list(kinds)}
    step, fitted = FeatureStep.fit(table_of(tmp_path, rows), ["x", "kind"], scale=scale)
    first = {"x": [*rows["x"], "3"], "kind": [*kinds, "zebra"]}
    X, _, _ = step.transform(table_of(tmp_path, first))
    np.testing.assert_array_equal(X[:-1], fitted)  # known ones, bit for bit
    nothing = np.append(X[-1, :1], np.zeros(X.shape[1] - 1))
    further = np.square(fitted - X[-1]).sum(axis=1) - np.square(fitted - nothing).sum(axis=1)
    np.testing.assert_allclose(further, 1 - 0.25**2 / 2, atol=1e-5)
    known = np.array([kind != " " for kind in kinds])
    np.testing.assert_allclose(np.linalg.norm((fitted - X[-1])[known, 1:], axis=1), 1, atol=1e-6)


def test_columns_of_new_rows_are_named(tmp_path):
    step, _ = FeatureStep.fit(table_of(tmp_path, COLUMNS), ["x", "kind"])
    renamed = {"x": COLUMNS["x"], "kindd": COLUMNS["kind"]}
    with pytest.raises(TableError, match=r"missing here: 'kind' \(is it 'kindd'\?\)"):
        step.transform(table_of(tmp_path, renamed))
    mistyped = COLUMNS | {"x": ["1", "2", "three", "4"]}
    _, (use, _), notes = step.transform(table_of(tmp_path, mistyped))
    assert use.how == "1 cell not read, so missing ('three')"
    assert use.warning.startswith("'x': 1 of 4 cells could not be read")
    assert notes == []
    words = {"x": [f"word {i}" for i in range(10)], "kind": ["a"] * 10}
    with pytest.raises(TableError, match=r"'x' must hold numbers, as when .* no cell does"):
        step.transform(table_of(tmp_path, words))


@pytest.mark.parametrize(
    ("columns", "names", "insist", "words"),
    [
        ({"a": ["1", "1", "1"]}, ["a"], False, "no column is left"),
        ({"a": ["", "", ""], "b": list("132")}, ["a", "b"], True, "only missing values"),
        ({"a": ["1", "1", "1"], "b": list("132")}, ["a", "b"], True, "'a' cannot be a feature"),
    ],
)
def test_bad_columns(tmp_path, columns, names, insist, words):
    with pytest.raises(TableError, match=words):
        FeatureStep.fit(table_of(tmp_path, columns), names, insist=insist)


@pytest.mark.parametrize(
    "change",
    [
        {"plans": []}, {"plans": None}, {"scale": 1}, {"plans": [{"name": "x"}]},
        {"plans": [{"name": 3, "kind": "number"}]}, {"plans": [{"name": "x", "kind": "magic"}]},
        {"plans": [{"name": "x", "kind": "number", "low": "0"}]},
        {"plans": [{"name": "x", "kind": "number", "extra": 0}]},
        {"plans": [{"name": "x", "kind": "category", "categories": [1]}]},
    ],
)  # fmt: skip
def test_other_descriptions_are_refused(tmp_path, change):
    step, _ = FeatureStep.fit(table_of(tmp_path, COLUMNS), ["x", "kind"])
    with pytest.raises(ValueError, match="no description"):
        FeatureStep.from_plain(step.to_plain() | change)


class Typed:
    """A table whose columns have types."""

    together = ()
    decimal = ""

    def __init__(self, kind, column):
        self.names, self.n_rows, self._kind, self._column = ["x"], len(column), kind, column

    def kind(self, _name):
        return self._kind

    def chunks(self, _names, _as_text=()):
        yield [self._column]


PLANS = {
    "number": {"high": 2.0},
    "boolean": {},
    "date": {"high": 2.0},
    "category": {"categories": ["3", "b"]},
}


@pytest.mark.parametrize("kind", PLANS)
@pytest.mark.parametrize(
    "found", ["number", "boolean", "date", "holds list<item: int64>", "holds binary"]
)
def test_mistyped_columns_are_named(kind, found):
    step = FeatureStep([Plan("x", kind, **PLANS[kind])], True)
    table = Typed(found, np.array([0.0, 1.0, 3.0]))
    if kind == found:
        assert step.transform(table)[0].shape == (3, 1)
    elif (kind, found) == ("category", "number"):
        X, _, notes = step.transform(table)
        np.testing.assert_array_equal(X[:, 0] > 0, [False, False, True])
        assert notes[0] == "'x': the model expects a category such as '3', 'b', and found numbers"
        assert "2 of 3 rows hold a new category" in notes[1]
    else:
        shown = found.removeprefix("holds ")
        with pytest.raises(TableError, match=rf"'x' must hold {kind[:6]}.* holds {shown}"):
            step.transform(table)


@pytest.mark.parametrize("scale", [True, False])
def test_values_outside_the_fitted_range(tmp_path, scale):
    columns = {"x": ["1", "3", "2"], "same": ["4", "4", ""], "kind": ["a", "b", "a"]}
    step, X = FeatureStep.fit(table_of(tmp_path, columns), list(columns), scale=scale)
    assert step.outside(X) == {}
    new = {"x": ["0.9", "3.1", "2", "1", "3"], "same": ["4", "5", "", "4", "3"], "kind": ["c"] * 5}
    X, _, _ = step.transform(table_of(tmp_path, new))
    assert step.outside(X) == {"x": 2, "same": 2}


@pytest.mark.parametrize(
    "change",
    [
        {"name": 3}, {"kind": "text"}, {"low": "0"}, {"low": True}, {"high": 10**400},
        {"low": 5.0}, {"categories": ["a"]}, {"kind": "category", "categories": ["a", "a"]},
        {"kind": "category", "categories": "ab"}, {"flag": 1}, {"more": 1}, {"name": "y"},
        {"knots": [1.0]}, {"knots": [2.0, 1.0], "ranks": [0.0, 1.0]}, {"knots": 1, "ranks": 1},
        {"knots": [0.0, "1"], "ranks": [0.0, 1.0]}, {"knots": [10**400], "ranks": [0.5]},
        {"knots": [0.0, 1.0], "ranks": [0.5, 0.5]},
    ],
    ids=str,
)  # fmt: skip
def test_bad_descriptions(change):
    plain = FeatureStep([Plan("x", "number"), Plan("y", "number")], True).to_plain()
    assert FeatureStep.from_plain(plain).features == ["x", "y"]
    plain["plans"][0] |= change
    with pytest.raises(ValueError, match="no description of features"):
        FeatureStep.from_plain(plain)


def test_zero_and_one_are_as_far_apart_as_no_and_yes(tmp_path):
    columns = {"n": ["0", "1", "1"], "ok": ["no", "yes", "yes"], "x": ["0", "1", "2"]}
    table = table_of(tmp_path, columns)
    step, X = FeatureStep.fit(table, ["n", "ok", "x"], insist=True)
    np.testing.assert_allclose(X[:, 0], X[:, 1])
    np.testing.assert_allclose(X[:, 2], [0, 0.5, 1])
    raw = FeatureStep.fit(table, ["n"], scale=False, insist=True)[1]
    np.testing.assert_allclose(raw[:, 0], [0, 1, 1])
    again = FeatureStep.from_plain(json.loads(json.dumps(step.to_plain())))
    np.testing.assert_array_equal(again.transform(table)[0], X)


def text_table(tmp_path, text, name="t.csv"):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return open_table(tmp_path / name, "csv")


def raw(tmp_path, fitted, new, column="x", **options):
    """Values of a column in another file, as a model that was written down reads them."""
    table = text_table(tmp_path, fitted)
    step = FeatureStep.fit(table, table.names, scale=False, insist=True, **options)[0]
    again = FeatureStep.from_plain(json.loads(json.dumps(step.to_plain())))
    X, _, notes = again.transform(text_table(tmp_path, new, "new.csv"))
    return X[:, again.features.index(column)].tolist(), notes


GERMAN = "x;y\n1.234;0,5\n999;1,5\n2.345;7,25\n"


@pytest.mark.parametrize(
    ("fitted", "new", "expected"),
    [
        (GERMAN, "x;y\n1.234;3\n", 1234),  # nothing in the new file tells
        (GERMAN, "x;y\n1.234;0,5\n", 1234),
        (GERMAN, 'x,y\n"1,234",0.5\n', 1234),  # a file of another country
        (GERMAN, "x,y\n1.234,0.5\n", 1.234),
        ('x,y\n"1,234",0.5\n999,2\n"2,345",3.5\n', "x;y\n1,234;3\n", 1234),
        ('x,y\n"1,234",0.5\n999,2\n"2,345",3.5\n', "x;y\n1,234;0,5\n", 1.234),
        ("x;y\n1,234;3\n5;2\n8;1\n", "x;y\n1,234;0\n", 1.234),
        ("x,y\n1 mg,1\n2 mg,3\n3,2\n", "x,y\n4 mg,1\n", 4),
        ("x,y\n1,1\n<2,3\n3,2\n", "x,y\n> 4,1\n", 4),
        ("x,y\n1/13/1970,1\n1/2/1970,3\n2/1/1970,2\n", "x,y\n2/1/1970,1\n", 31),
        ("x,y\n13/1/1970,1\n1/2/1970,3\n2/1/1970,2\n", "x,y\n2/1/1970,1\n", 1),
    ],
)
def test_a_cell_is_read_as_when_the_model_was_fitted(tmp_path, fitted, new, expected):
    values, notes = raw(tmp_path, fitted, new)
    assert values == [expected]
    assert notes == []


def test_odd_cells_of_new_rows(tmp_path):
    fitted = "x,y\n1 mg,1\n2 mg,3\nn.d.,2\n-9,5\nGone,7\n"
    values, notes = raw(tmp_path, fitted, "x,y\n1.2.3,1\n-9,2\ngone,3\n7,4\n", na=["gone", "-9"])
    assert values == [1.5, 1.5, 1.5, 7]
    assert notes == []  # but a warning, as there are many
    assert raw(tmp_path, fitted, "x,y\n5 mg,1\n5 g,1\n", na=["gone"])[0] == [5, 1]
    with pytest.raises(TableError, match="'x' must hold numbers with the unit mg"):
        raw(tmp_path, fitted, "x,y\n" + "5 g,1\n" * 10, na=["gone"])
    days = "d,ok\n13.1.1970,yes\n14.1.1970,no\n15.1.1970,no\n"
    for text in ("soon,maybe", "00.00.0000,7", "unbekannt,1.5"):
        new = "d,ok\n" + "31.1.1970,yes\n" * 30 + text + "\n"
        (*_, day), notes = raw(tmp_path, days, new, "d")
        assert day == 13  # the median
        assert len(notes) == 2
        assert raw(tmp_path, days, new, "ok")[0][-1] == 0


def test_steps_of_older_files_are_read(tmp_path):
    table = text_table(tmp_path, "x;y\n1,5;a\n2,5;b\n4;a\n")
    step, X = FeatureStep.fit(table, ["x", "y"])
    plain = step.to_plain()
    older = {"scale": plain["scale"], "plans": plain["plans"]}
    for plan in older["plans"]:
        del plan["mark"], plan["unit"], plan["order"]
    np.testing.assert_array_equal(FeatureStep.from_plain(older).transform(table)[0], X)


@pytest.mark.parametrize(
    "change",
    [
        {"na": "x"}, {"na": [1]}, {"decimal": ";"}, {"decimal": None},
        *({"plans": [{"name": "x", "kind": "number"} | wrong]}
          for wrong in ({"mark": "x"}, {"unit": 1}, {"order": "ydm"})),
    ],
    ids=str,
)  # fmt: skip
def test_bad_manners(change):
    with pytest.raises(ValueError, match="no description of features"):
        FeatureStep.from_plain(FeatureStep([Plan("x", "number")], True).to_plain() | change)


def test_words_for_no_number_may_be_categories(tmp_path):
    table = text_table(tmp_path, "s,x\nerror,1\nunknown,2\nerror,4\n")
    step, _ = FeatureStep.fit(table, ["s", "x"])
    assert step.features == ["s=error", "s=unknown", "x"]


def mid_ranks(values):
    """Return, one by one, the share of values that are less, and half of those that are equal."""
    n = len(values)
    return [sum((v < x) + (v == x) / 2 for v in values) / n for x in values]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, 2.5, 3.0]), min_size=30, max_size=60),
    st.sampled_from([-1e7, -40.0, 40.0, 1e9]),
)
def test_numbers_with_a_long_tail_become_ranks(tmp_path_factory, usual, far):
    values = [*usual, far]
    low, high = np.quantile(values, (0.05, 0.95))
    columns = {"x": list(map(repr, values))}
    step, X = FeatureStep.fit(table_of(tmp_path_factory.mktemp("f"), columns), ["x"])
    expected = (np.array(values) - min(values)) / (max(values) - min(values))
    if max(values) - min(values) > 8 * (high - low):
        expected = mid_ranks(values)
        assert "long tail, so scaled by rank" in step.uses[0].how
    np.testing.assert_allclose(X[:, 0], expected, atol=1e-6)
    assert step.outside(X) == {}


def tailed(n, seed=0):
    return np.round(np.random.default_rng(seed).pareto(0.8, n), 3)


def test_ranks_are_written_down_and_made_again(tmp_path):
    values = tailed(3000)
    columns = {"x": list(map(repr, values.tolist()))}
    step, X = FeatureStep.fit(table_of(tmp_path, columns), ["x"])
    np.testing.assert_allclose(X[:, 0], mid_ranks(values.tolist()), atol=1 / 256)
    again = FeatureStep.from_plain(json.loads(json.dumps(step.to_plain())))
    np.testing.assert_array_equal(again.transform(table_of(tmp_path, columns))[0], X)
    assert len(step.plans[0].knots) <= 256
    low, high = float(values.min()), float(values.max())
    beyond = {"x": [repr(2 * high), repr(low - 1), repr(high)]}
    new, _, _ = again.transform(table_of(tmp_path, beyond))
    assert new[0, 0] > X.max() + 0.9  # farther out is farther away
    assert new[1, 0] < X.min()
    assert again.outside(new) == {"x": 2}


def test_ranks_of_many_rows_come_from_some_of_them(tmp_path):
    values = tailed(25_000)
    values[7], values[8] = 1e9, -5.0  # hardly ever drawn
    columns = {"x": list(map(repr, values.tolist()))}
    step, X = FeatureStep.fit(table_of(tmp_path, columns), ["x"])
    assert step.plans[0].knots[0] == -5.0
    assert step.plans[0].knots[-1] == 1e9
    order = values.argsort(kind="stable")
    assert (np.diff(X[order, 0]) >= 0).all()
    np.testing.assert_allclose(X[order, 0], np.arange(25_000) / 25_000, atol=0.02)
    assert step.outside(X) == {}


def test_who_is_not_ranked(tmp_path):
    """Flags, what is not scaled, and columns of one matrix."""
    far = [*(["0"] * 39), "1"]
    wide = [*(map(str, range(1, 40))), "1e6"]
    columns = {"flag": far, "x": wide}
    table = table_of(tmp_path, columns)
    step, X = FeatureStep.fit(table, ["flag", "x"])
    assert [bool(plan.knots) for plan in step.plans] == [False, True]
    assert X[-1, 0] == 0.25
    step, X = FeatureStep.fit(table, ["flag", "x"], scale=False)
    assert not step.plans[1].knots
    assert X[-1, 1] == 1e6
    np.save(tmp_path / "a.npy", np.array([list(map(float, wide))] * 2).T)
    step, _ = FeatureStep.fit(open_table(tmp_path / "a.npy", "npy"), ["0", "1"])
    assert not step.plans[0].knots
