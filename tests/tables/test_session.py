"""Labels and ids as they stand in files."""

import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning

from manifoldknn.exceptions import EverythingLabeledWarning, UnreachedWarning
from manifoldknn.tables.session import class_hints, clean_labels, column_ids, noted
from manifoldknn.tables.table import TableError


def test_labels_are_trimmed_and_told():
    notes = []
    labels = clean_labels(["a ", "b", " ", "\ta", ""], "y", None, notes)
    assert labels.tolist() == ["a", "b", "", "a", ""]
    assert notes == ["2 label(s) in 'y' had blanks around them, which were trimmed"]


def test_minus_one_among_whole_numbers():
    notes = []
    assert clean_labels(["1", "-1", "2"], "y", None, notes).tolist() == ["1", "", "2"]
    assert "-1 in 'y' counts as no label" in notes[0]
    assert clean_labels(["1", "-1", "x"], "y", None, []).tolist() == ["1", "-1", "x"]
    assert clean_labels(["1", "-1", ""], "y", "", []).tolist() == ["1", "-1", ""]


def test_minus_one_as_a_class():
    texts = ["1", "-1", "1", "-1"]
    with pytest.raises(TableError, match=r"one class only, '1': .*-1 was taken as no label: .*''"):
        clean_labels(texts, "y", None, [])
    for marker in ("", " "):
        notes = []
        assert clean_labels(texts, "y", marker, notes).tolist() == texts
        assert notes == []
    with pytest.raises(TableError, match=r"no labels: .*-1 was taken as no label"):
        clean_labels(["-1", "-1", ""], "y", None, [])
    with pytest.raises(TableError, match=r"another class too$"):
        clean_labels(["1", "1"], "y", "", [])


def test_marker():
    assert clean_labels(["a", "?", "b"], "y", "?", []).tolist() == ["a", "", "b"]
    with pytest.raises(TableError, match=r"--unlabeled '\?' does not occur"):
        clean_labels(["a", "b"], "y", "?", [])


@pytest.mark.parametrize(
    ("texts", "words"), [(["", " "], "no labels"), (["a", "a", ""], "one class only, 'a'")]
)
def test_too_few_classes(texts, words):
    with pytest.raises(TableError, match=words):
        clean_labels(texts, "y", None, [])


def test_ids():
    assert column_ids({}, None, 3).tolist() == [1, 2, 3]
    assert column_ids({"k": ["01", "1", " 1"]}, "k", 3).tolist() == ["01", "1", " 1"]
    with pytest.raises(TableError, match="'a' stands in rows 1 and 3"):
        column_ids({"k": ["a", "b", "a"]}, "k", 3)


def test_warnings_become_notes_once():
    notes = ["before"]
    with noted(notes):
        for _ in range(2):
            warnings.warn("the walk: raise max_iter", ConvergenceWarning, stacklevel=1)
        warnings.warn("use graph='pruned'", UnreachedWarning, stacklevel=1)
        warnings.warn("told in other words", EverythingLabeledWarning, stacklevel=1)
        warnings.warn("of no interest", DeprecationWarning, stacklevel=1)
    assert notes == ["before", "the walk: raise --max-iter", "use --graph pruned"]


@pytest.mark.parametrize(
    "word", ["NA", "nan", "null", "None", "?", "unknown", "n.d.", "Unlabelled"]
)
def test_words_for_missing_labels_are_told(word):
    notes = []
    labels = clean_labels(["a", word, word, ""], "y", None, notes)
    assert labels.tolist() == ["a", word, word, ""]
    (told,) = class_hints(labels, "y")
    quoted = "'?'" if word == "?" else word
    assert told.startswith(f"{word!r} in 'y' counts as a class (2 rows)")
    assert told.endswith(f"if it means no label, add --unlabeled {quoted}")
    assert class_hints(clean_labels(["a", "b", word], "y", word, notes), "y") == notes == []


def test_classes_that_differ_in_case_are_told():
    labels = clean_labels(["Cat", "cat", "CAT", "dog", "small  dog", "Small dog"], "y", None, [])
    assert len(set(labels)) == 6
    assert class_hints(labels, "y") == [
        "'CAT' and 'Cat' and 'cat' in 'y' are different classes; if they are one, write them alike",
        "'Small dog' and 'small  dog' in 'y' are different classes; if they are one, write them "
        "alike",
    ]


@pytest.mark.parametrize(
    ("labels", "refused"),
    [
        ([f"{i / 8}" for i in range(101)], True),
        ([f"{i},5" for i in range(101)] * 20, True),
        ([str(i) for i in range(300)], True),
        ([str(i) for i in range(300)] * 10, False),  # codes
        ([f"{i / 8}" for i in range(100)], False),
        ([f"c{i}" for i in range(300)], False),
    ],
)
def test_a_measurement_is_no_class(labels, refused):
    if refused:
        with pytest.raises(
            TableError, match=r"different numbers: is it a measurement\? Name a col"
        ):
            clean_labels(labels, "y", None, [])
    else:
        assert len(clean_labels(labels, "y", None, [])) == len(labels)
