"""What columns hold, however they are cut into chunks."""

from unittest.mock import patch

import numpy as np
import pytest

from manifoldknn.tables.formats import records, textfile
from manifoldknn.tables.profile import MOST_CATEGORIES, profile_columns
from manifoldknn.tables.table import open_table


def profiled(tmp_path, columns, step=3):
    rows = ["\t".join(columns), *("\t".join(row) for row in zip(*columns.values()))]
    (tmp_path / "a.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    size = step * max(map(len, rows)) + 1
    with patch.object(textfile, "_CHUNK_ROWS", step), patch.object(records, "BLOCK", size):
        found = profile_columns(open_table(tmp_path / "a.tsv", "tsv"), list(columns))
    return {profile.name: profile for profile in found}


@pytest.mark.parametrize("step", [1, 2, 3, 100])
def test_kinds(tmp_path, step):
    found = profiled(
        tmp_path,
        {
            "counter": ["5", "6", "7", "8"],
            "number": ["1", "NA", "-2.5", "3"],
            "late": ["1", "2", "3", "x"],
            "truth": ["yes", "no", "?", "yes"],
            "always": ["yes", "yes", "yes", "yes"],
            "day": ["2024-01-01", "2024-01-03", "", "2024-01-02"],
            "colour": ["red", " red", "blue", "null"],
            "same": ["1", "1", "1", "1"],
            "name": ["a", "b", "c", "d"],
        },
        step,
    )
    kinds = {name: p.kind for name, p in found.items()}
    assert kinds == {
        "counter": "number", "number": "number", "late": "category", "truth": "boolean",
        "always": "boolean", "day": "date", "colour": "category", "same": "number",
        "name": "category",
    }  # fmt: skip
    assert (found["number"].low, found["number"].high) == (-2.5, 3)
    assert found["day"].high - found["day"].low == 2
    assert found["colour"].categories == {"red", "blue"}
    missing = {name: p.n_missing for name, p in found.items() if p.n_missing}
    assert missing == {"number": 1, "truth": 1, "day": 1, "colour": 1}
    why = {name: p.unusable(insist=False) for name, p in found.items()}
    assert "numbers the rows" in why["counter"]
    assert "same in all rows" in why["same"]
    assert "same in all rows" in why["always"]
    assert "differs in every row" in why["name"]
    assert not why["number"] + why["truth"] + why["day"] + why["colour"]
    assert found["counter"].unusable(insist=True) == ""


def test_many_texts_are_no_categories(tmp_path):
    found = profiled(tmp_path, {"t": [f"w{i % 31}" for i in range(62)]}, 10)
    assert found["t"].kind == "text"
    assert f"more than {MOST_CATEGORIES}" in found["t"].unusable(insist=False)
    assert profiled(tmp_path, {"t": [f"w{i % 30}" for i in range(62)]})["t"].kind == "category"


@pytest.mark.parametrize("gone", ["", "NA", "?"])
def test_only_missing_values(tmp_path, gone):
    found = profiled(tmp_path, {"gone": [gone] * 4, "x": list("1234")})
    assert found["gone"].unusable(insist=False) == "empty: it has only missing values"
    assert found["gone"].use(insist=False).plain


def test_columns_that_cannot_be_read(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.eye(3), z=np.array([1j, 2j, 3j]))
    (found,) = profile_columns(open_table(tmp_path / "a.npz", "npz"), ["z"])
    assert "complex" in found.unusable(insist=False)


def test_large_whole_numbers_are_not_called_the_same(tmp_path):
    found = profiled(
        tmp_path,
        {
            "long": ["12000000000000000001", "12000000000000000002", "12000000000000000009"],
            "same": ["12", "12", "12"],
        },
    )
    assert "the same as far as 15 digits tell; if it names" in found["long"].unusable(False)
    assert found["same"].unusable(False) == "the same in all rows"


def test_words_that_come_late_count_too(tmp_path):
    numbers = [str(i % 700) for i in range(3000)]
    columns = {"few": [*numbers, *["broken"] * 300], "many": [*numbers[300:], *["broken"] * 600]}
    found = profiled(tmp_path, columns, 10_000)
    assert (found["few"].kind, found["few"].count.n_odd) == ("number", 300)
    assert found["few"].use(insist=False).warning.startswith("'few': 300 of 3,300 cells could not")
    assert found["many"].kind == "text"
    assert "2,700 of 3,300 cells are numbers" in found["many"].use(insist=False).warning
