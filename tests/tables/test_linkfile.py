"""Links by hand in files: what is read, and what is refused by its line."""

import numpy as np
import pytest

from manifoldknn.tables.linkfile import read_links
from manifoldknn.tables.table import TableError

NAMES = np.array(["a", "b", " c", "0007"], dtype=object)
NUMBERS = np.arange(1, 5)


def read(tmp_path, text, ids=NAMES, encoding="utf-8"):
    path = tmp_path / "links.csv"
    path.write_bytes(text.encode(encoding))
    notes = []
    return read_links(path, ids, notes).tolist(), notes


@pytest.mark.parametrize(
    ("text", "ids", "pairs"),
    [
        ("a,b\n\nb,0007\n", NAMES, [[0, 1], [1, 3]]),
        ('\ufeffa," c"\r\n b ,a', NAMES, [[0, 2], [1, 0]]),  # blanks: of the id, or around it
        ("1,4\n2,3\n", NUMBERS, [[0, 3], [1, 2]]),
    ],
)
def test_pairs(tmp_path, text, ids, pairs):
    assert read(tmp_path, text, ids) == (pairs, [])


@pytest.mark.parametrize("header", ["one,other", " ,other", "a1,b1"])
def test_a_header_may_be_there_and_is_told(tmp_path, header):
    pairs, notes = read(tmp_path, f"\n{header}\na,b\n")
    assert pairs == [[0, 1]]
    assert notes == [f"line 2 of links.csv is taken for a header: {', '.join(header.split(','))}"]


@pytest.mark.parametrize(
    ("text", "ids", "words"),
    [
        ("a,b\na,x\n", NAMES, "line 2 of links.csv: no row has the id 'x'"),
        ("a,x\n", NAMES, "line 1 of links.csv: no row has the id 'x'"),
        ("one,other\nx,y\n", NAMES, "line 2 of links.csv: no row has the id 'x'"),
        ("0,5\n", NUMBERS, "line 1 of links.csv: no row has the id '0'"),
        ("5,6\n", NUMBERS, "line 1 of links.csv: no row has the id '5'"),
        ("a,b\na\n", NAMES, "line 2 of links.csv must have two cells"),
        ("a;b\n", NAMES, "line 1 of links.csv must have two cells"),
        ("a,b,a\n", NAMES, "line 1 of links.csv must have two cells"),
        ("a,b\nb,b\n", NAMES, "line 2 of links.csv pairs 'b' with itself"),
        ("x,y\n", NAMES, "names no two rows; line 1 of links.csv is taken for a header: x, y"),
        ("\n", NAMES, "links.csv names no two rows"),
        ('a,b\n"a,b\n', NAMES, "line 2 of links.csv cannot be read"),
    ],
)
def test_bad_lines(tmp_path, text, ids, words):
    with pytest.raises(TableError, match=words):
        read(tmp_path, text, ids)


def test_another_encoding(tmp_path):
    with pytest.raises(TableError, match=r"links.csv cannot be read .* UTF-8"):
        read(tmp_path, "é,b\n", encoding="latin-1")
