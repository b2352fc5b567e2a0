"""Whatever a run found, programs can read it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifoldknn.cli.json_text import SCHEMA, json_text
from manifoldknn.cli.main import main

numbers = st.floats() | st.integers()
words = st.text(st.characters(exclude_categories=[]), max_size=5)  # lone surrogates too
anything = st.recursive(
    numbers | words | st.none() | st.booleans(),
    lambda inner: st.lists(inner) | st.dictionaries(words, inner),
    max_leaves=20,
)


def refuse(word):
    raise AssertionError(word)


def same(found, value):
    if isinstance(value, float) and value - value != 0:
        return found is None
    if isinstance(value, list):
        return len(found) == len(value) and all(map(same, found, value))
    if isinstance(value, dict):
        return found.keys() == value.keys() and all(same(found[k], v) for k, v in value.items())
    return found == value


@given(anything, st.sampled_from([None, "utf-8", "ascii", "latin-1", "cp1252"]))
def test_strict_json_that_the_stream_can_hold(value, encoding):
    text = json_text(value, encoding=encoding).encode(encoding or "utf-8")
    found = json.loads(text.decode(encoding or "utf-8"), parse_constant=refuse)
    assert same(found, value)


def test_what_json_does_not_know_becomes_text():
    assert json.loads(json_text({"a": (1, float("inf")), "b": b"x"})) == {
        "a": [1, None],
        "b": "b'x'",
    }


def test_errors_are_json_with_a_schema(capsys):
    assert main(["classify", "none.csv", "--label", "y", "--json"]) == 2
    out, err = capsys.readouterr()
    data = json.loads(out)
    assert data == {"schema": SCHEMA, "error": data["error"], "exit_code": 2}
    assert data["error"] in err
    assert main(["classify", "none.csv", "--label", "y", "--json", "--out", "-"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert json.loads(err) == data


def test_beside_a_table_there_is_one_object(tmp_path, capsysbinary):
    """No progress and no warning: the stream is read by a program."""
    rows = "".join(f"{i},{i % 2 * 9 + i / 50},{'aA?'[i % 3] if i < 9 else ''}\n" for i in range(30))
    (tmp_path / "t.csv").write_text(f"i,x,y\n{rows}")
    line = ["classify", str(tmp_path / "t.csv"), "--label", "y", "--json", "--out", "-"]
    assert main(line) == 0
    out, err = capsysbinary.readouterr()
    assert out.startswith(b"i,x,y,predicted")
    assert len(json.loads(err)["warnings"]) == 2


@pytest.mark.parametrize("arguments", [["--label"], ["--label", "y", "--nonsense"], []])
def test_errors_of_options_are_json_too(capsys, arguments):
    with pytest.raises(SystemExit):
        main(["classify", "none.csv", "--json", *arguments])
    out, err = capsys.readouterr()
    assert "--help" in json.loads(out)["error"]
    assert err.startswith("manifoldknn: error: ")
    for place in (["none.csv", "--out", "-"], ["none.csv", "--out=-"], ["-"]):
        with pytest.raises(SystemExit):
            main(["classify", *place, "--json", *arguments])
        out, err = capsys.readouterr()
        assert (out, json.loads(err)["schema"]) == ("", SCHEMA)
