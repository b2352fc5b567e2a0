"""Whatever a run found, programs can read it."""

import json

from hypothesis import given
from hypothesis import strategies as st

from manifoldknn.cli.json_text import json_text

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
