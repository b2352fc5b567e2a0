"""Text files: read right, given back byte for byte, and complained about in one line."""

import codecs
import csv
import io
import re
from contextlib import suppress
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import manifoldknn.tables.formats.textfile as module
from manifoldknn.tables.cells import is_missing, numbers
from manifoldknn.tables.features import FeatureStep
from manifoldknn.tables.formats import records
from manifoldknn.tables.table import TableError, format_of, named_columns, open_table

odd_cells = st.one_of(
    st.floats().map(repr),
    st.text("0123456789.+-eE_ \t\xa0٣naNAif(1)/?#x", max_size=5),
    st.sampled_from(
        ["", "NA", " na ", "N/A", "nAn", "-nan", "nan(1)", "1e400", " 1\t", "Infinity"]
    ),
)
cell = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)


def opened(tmp_path, content, form="csv", **options):
    path = tmp_path / f"a.{form}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return open_table(path, form, **options)


def blocks_of(size):
    return patch.object(records, "BLOCK", size)


def written(table, added):
    buffer = io.BytesIO()
    table.write(buffer, added)
    return buffer.getvalue().decode()


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(cell, cell, cell), min_size=1, max_size=12),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.booleans(),
    st.integers(1, 5),
)
def test_everything_survives(tmp_path_factory, rows, quoting, end, mark, last, step):
    """Any text, quoted any way: cells are read as they are and bytes given back as they were."""
    buffer = io.StringIO()
    if any("\r" in text or "\n" in text for row in rows for text in row):
        quoting = csv.QUOTE_ALL  # else the writer leaves line ends open that are not its own
    writer = csv.writer(buffer, quoting=quoting, lineterminator=end)
    writer.writerows([("id", "naïve", "x,y"), *rows])
    text = buffer.getvalue() if last else buffer.getvalue()[: -len(end)]
    content = (b"\xef\xbb\xbf" if mark else b"") + text.encode()
    table = opened(tmp_path_factory.mktemp("t"), content, delimiter=",")
    assert table.names == ["id", "naïve", "x,y"]
    with patch.object(module, "_CHUNK_ROWS", step), blocks_of(40 * step):
        columns = table.texts(table.names)
        assert list(zip(*columns.values())) == rows
        joined = [list(zip(*chunk)) for chunk in table.chunks(table.names, as_text=table.names)]
        assert [row for chunk in joined for row in chunk] == rows
        assert table.n_rows == len(rows)
        some = table.cells_at(["x,y", "id"], np.arange(1, len(rows), 2))
        assert list(zip(some["id"], some["x,y"])) == [(r[0], r[2]) for r in rows[1::2]]
        added = np.array([f'p"{i},\r\n' for i in range(len(rows))], dtype=object)
        out = written(table, {"new,": added})
    body = out.removeprefix("\ufeff")
    again = list(csv.reader(io.StringIO(body, newline=""), strict=True))
    assert again[0] == ["id", "naïve", "x,y", "new,"]
    assert [tuple(r[:3]) for r in again[1:]] == rows
    assert [r[3] for r in again[1:]] == added.tolist()
    # Without the appended cells every byte is what it was.
    for i, value in [(None, '"new,"'), *((i, f'"p""{i},\r\n"') for i in range(len(rows)))]:
        assert f",{value}" in body, i
        body = body.replace(f",{value}", "", 1)
    assert body == text


def slowly(content, delimiter, added, above=0):
    """The cells, and the bytes with a column added, by the csv module and one record at a time.

    So many records stand above the header.
    """
    text = content.decode()
    mark = "\ufeff" if content.startswith(codecs.BOM_UTF8) else ""
    lines, rows, out = [], [], [mark]

    def remembered():
        for line in io.StringIO(text.removeprefix(mark), newline=""):
            lines.append(line)
            yield line

    for record in csv.reader(remembered(), delimiter=delimiter, strict=True):
        line = "".join(lines)
        lines.clear()
        if above and any(cell.strip() for cell in record):
            above -= 1
            out.append(line)
        elif record and (rows or any(cell.strip() for cell in record)):
            if rows and len(record) != len(rows[0]):
                raise csv.Error("cells")
            body = line.rstrip("\r\n")
            out += [body, delimiter, added(len(rows)), line[len(body) :]]
            rows.append(record)
        else:
            out.append(line)
    return rows, "".join(out).encode()


def number(text):
    """What a cell means as a number, "" if nothing."""
    try:
        return "" if "_" in text else repr(float(text))
    except ValueError:
        return repr(np.nan) if is_missing(text) else ""


ugly = st.lists(
    st.sampled_from([*'",;\n\r a1é-', "\r\n", '""', ',"', '",', ";1", "1;2\n", '"\n"', "\ufeff"]),
    max_size=30,
)


@settings(max_examples=500, deadline=None)
@given(
    st.sampled_from(["", "\n", "\ufeff", "\ufeff \r\n"]),
    st.sampled_from(["a;b", '"a";b', "a", "é;", ""]),
    st.sampled_from(["\n", "\r\n", "\r"]),
    ugly.map("".join),
    st.sampled_from([";", ",", "é"]),
    st.sampled_from([3, 5, 8, 16, 1 << 22]),
)
@example("", "a;b", "\n", "\ufeff1;2\n" * 3, ";", 8)  # no mark of a file where a block begins
def test_ugly_files_are_read_as_the_csv_module_reads_them(
    tmp_path_factory, start, header, end, body, delimiter, size
):
    content = (start + header + end + body).encode()
    folder, expected, above = tmp_path_factory.mktemp("u"), None, 0
    with suppress(TableError):
        manner = opened(folder, content, delimiter=delimiter).manner
        above = int(manner.get("lines_above_header", 0))
    with suppress(csv.Error):
        expected, bytes_expected = slowly(content, delimiter, lambda row: f"n{row}", above)
    with patch.object(module, "_CHUNK_ROWS", 2), blocks_of(size):
        try:
            table = opened(folder, content, delimiter=delimiter)
            columns = table.texts(table.names[:1])
        except TableError as error:
            said = str(error)
        else:
            said = ""
        if said:
            if "column" in said or "is empty" in said:  # no name, or two the same
                return
            assert expected is None
            odd = patch.object(module, "whole_records", side_effect=records.OddError)
            with odd, pytest.raises(TableError, match=re.escape(said)):
                opened(folder, content, delimiter=delimiter).texts([])
            return
        assert expected is not None
        names, *rows = expected
        names = named_columns(names)
        assert table.names == names
        assert columns[names[0]] == [row[0] for row in rows]
        assert table.n_rows == len(rows)
        assert table.texts(names) == {n: [row[i] for row in rows] for i, n in enumerate(names)}
        for i, name in enumerate(names[1:], 1):
            found = [cell for (part,) in table.chunks([name]) for cell in part]
            if table.decimal == ".":
                texts = [row[i] for row in rows]
                parsed = list(map(number, texts))
                assert found == texts or list(map(repr, map(float, found))) == parsed
        added = np.array([f"n{row + 1}" for row in range(len(rows))], dtype=object)
        buffer = io.BytesIO()
        table.write(buffer, {"n0": added})
        assert buffer.getvalue() == bytes_expected


@pytest.mark.parametrize("late", ["x", "2024-01-01", "1_0", "nan(1)"])
def test_a_column_that_is_no_longer_numbers_is_read_again(tmp_path, late):
    rows = [f"{i:02},{i}.0,{'long text' * 9}{i}" for i in range(200)]
    content = "\n".join(["k,x,t", *rows, f"{late},7,t", ""])
    with patch.object(module, "BLOCK", 1000), blocks_of(1000):
        table = opened(tmp_path, content)
        assert table.texts(["k"])["k"] == [f"{i:02}" for i in range(200)] + [late]
        table.release()
        table = opened(tmp_path, content)
        chunks = list(table.chunks(["x", "k", "t"]))
        assert len(chunks) > 10
        assert [x for chunk in chunks for x in chunk[0]] == [*range(200), 7]
        assert [k for chunk in chunks for k in chunk[1]] == [f"{i:02}" for i in range(200)] + [late]
        assert chunks[0][2][0] == "long text" * 9 + "0"
        (x, *_), *_ = [chunk[0] for chunk in table.chunks(["x"], as_text=["x"])]
        assert x == "0.0"


def test_a_file_is_parsed_once(tmp_path):
    """Labels, features and answers need one look at the cells."""
    table = opened(tmp_path, "y,x,c\na,1,u\n,2,v\nb,5,u\n")
    parse = module.whole_records
    with patch.object(module, "whole_records", side_effect=parse) as parsed:
        assert table.texts(["y"], then=["x", "c"])["y"] == ["a", "", "b"]
        _, X = FeatureStep.fit(table, ["x", "c"])
        table.release()
        assert written(table, {"p": X[:, 0]}) == "y,x,c,p\na,1,u,0\n,2,v,0.25\nb,5,u,1\n"
    assert parsed.call_count == 1


def test_leading_zeros_big_integers_and_newlines(tmp_path):
    content = (
        'id,n,text\r\n007,12345678901234567890123,"two\nlines"\r\n\r\n008,1e5,"say ""hi"""\r\n'
    )
    out = written(opened(tmp_path, content), {"p": np.array([0.5, 1 / 3])})
    assert out == content.replace("n,text\r", "n,text,p\r").replace('lines"', 'lines",0.5').replace(
        'hi"""', 'hi""",0.333333'
    )


@pytest.mark.parametrize(
    ("header", "delimiter"), [("a;b;c,d", ";"), ("a,b", ","), ("a\tb,c\td", "\t"), ("a|b", "|")]
)
def test_delimiter_is_found(tmp_path, header, delimiter):
    table = opened(tmp_path, f"{header}\n{delimiter.join('12')}" + delimiter * header.count("d"))
    assert len(table.names) == header.count(delimiter) + 1


def test_tsv_and_truth_values(tmp_path):
    table = opened(tmp_path, "a\tb,c\n1\t2\n", form="tsv")
    assert table.names == ["a", "b,c"]
    assert written(table, {"u": np.array([True])}) == "a\tb,c\tu\n1\t2\ttrue\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b\n1,2\n3\n", "line 3 of a.csv has 1 cells and the header has 2"),
        ("a,b\n1,2,3\n", "line 2 of a.csv has 3 cells"),
        ("a,b,a\n1,2,3\n", "two columns named 'a'"),
        (" ,,\n , \n", "column 1 of a.csv has no name"),
        ('a,b\n1,"2\n3,4\n', "cannot be read"),
        ('a,b\n1,"2"x\n', "cannot be read"),
        (b"a,b\n1,2\n\x81\xfe,3\n", "is not text in Windows-1252 .byte 0x81.: name its --enc"),
        (b"a,b\n1,2\n\0,3\n", "is no text, by its zero bytes"),
        (b"PK\x03\x04etc", "say --format xlsx"),
        (b"\x1f\x8b\x08etc", "cannot be unpacked"),
    ],
)
def test_bad_files_are_named_in_one_line(tmp_path, content, words):
    with pytest.raises(TableError, match=words) as caught:
        opened(tmp_path, content).texts([])
    assert "\n" not in str(caught.value)


def test_formats_by_name():
    assert format_of("x.parquet") == "parquet"
    assert format_of("a.b/x.FEATHER") == "arrow"
    assert format_of("x") is None


def test_mark_before_a_quoted_header_of_two_lines(tmp_path):
    content = '\ufeff"a\nb",c\r\n1,2\r\n'.encode()
    (tmp_path / "a.csv").write_bytes(content)
    table = open_table(tmp_path / "a.csv", "csv", delimiter=",")
    assert table.names == ["a\nb", "c"]
    buffer = io.BytesIO()
    table.write(buffer, {"new": np.array([3])})
    assert buffer.getvalue() == '\ufeff"a\nb",c,new\r\n1,2,3\r\n'.encode()


def test_decimal_commas_where_commas_do_not_separate(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b;c\n1,5;x,1;-,25e1\n2;1.000,5; 3,0\n", encoding="utf-8")
    (chunk,) = open_table(path, "csv").chunks(["a", "b", "c"])
    assert [list(column) for column in chunk] == [[1.5, 2], ["x,1", "1.000,5"], [-2.5, 3]]
    (chunk,) = open_table(path, "csv").chunks(["a", "c"], as_text=["a", "c"])
    assert chunk == [["1,5", "2"], ["-,25e1", " 3,0"]]
    assert open_table(path, "csv").texts(["a"])["a"] == ["1,5", "2"]  # as it is written


@pytest.mark.parametrize(
    ("text", "written"),
    [("x;y\n1;2\n", "0,5"), ("x;y\n1.234;2\n", "0.5"), ("x;y\n1.234,5;2\n", "0,5"),
     ("x\ty\n1\t2\n", "0.5"), ("x;y\n1;2. Mai\n", "0,5")],
)  # fmt: skip
def test_the_mark_of_added_numbers(tmp_path, text, written):
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    with io.BytesIO() as file:
        open_table(tmp_path / "a.csv", "csv").write(file, {"new": np.array([0.5])})
        assert file.getvalue().decode().endswith(f"{written}\n")


def test_decimal_commas_in_quotes(tmp_path):
    table = opened(tmp_path, 'a,b\n"1,5",2\n"0,25",3\n')
    assert (table.decimal, [column.tolist() for column in next(table.chunks(["a", "b"]))]) == (
        ",",
        [[1.5, 0.25], [2, 3]],
    )
    assert written(table, {"p": np.array([0.5, 1.0])}) == 'a,b,p\n"1,5",2,"0,5"\n"0,25",3,1\n'


def test_columns_without_a_name_get_one(tmp_path):
    table = opened(tmp_path, "a;;c;\n1;2;3;\n")
    assert table.names == ["a", "column 2", "c", "column 4"]
    assert written(table, {"p": np.array([7])}) == "a;;c;;p\n1;2;3;;7\n"


@pytest.mark.parametrize("start", ["", "\n", "\r\n \n", ";;\n\n", "\ufeff\n\t\n"])
@pytest.mark.parametrize("name", ["", " ", '""'])
def test_blank_lines_and_a_first_column_without_a_name(tmp_path, start, name):
    """As a frame's index is written; both come back as they were."""
    content = f"{start}{name};a;b\n7;1,5;x\n\n8;2;y\n"
    table = opened(tmp_path, content)
    assert table.names == [name.strip('"'), "a", "b"]
    assert table.index_names == table.names[:1]
    assert table.n_rows == 2
    assert table.texts(table.names)[table.names[0]] == ["7", "8"]
    out = written(table, {"new": np.array([1, 2])})
    assert out == content.replace("a;b", "a;b;new").replace("x", "x;1").replace("y", "y;2")


def test_the_index_of_a_frame_written_by_pandas(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2]}, index=[5, 3])
    frame.to_csv(tmp_path / "a.csv")
    assert open_table(tmp_path / "a.csv", "csv").index_names == [""]
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert open_table(tmp_path / "a.csv", "csv").index_names == []


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(odd_cells, min_size=2, max_size=2), min_size=1, max_size=6))
def test_numbers_are_those_of_single_cells(tmp_path_factory, rows):
    """A column is numbers if all its cells are; else the text comes as it is written."""
    buffer = io.StringIO()
    csv.writer(buffer, quoting=csv.QUOTE_ALL).writerows([("x", "y"), *rows])
    table = opened(tmp_path_factory.mktemp("n"), buffer.getvalue(), delimiter=",")
    (chunk,) = table.chunks(["x", "y"])
    for found, texts in zip(chunk, zip(*rows)):
        expected = numbers(list(texts))
        if expected is None:
            assert found == list(texts)
        else:
            np.testing.assert_array_equal(found, expected)
