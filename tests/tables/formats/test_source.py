"""Encodings and compressions: read as text, written back byte for byte."""

import gzip
import io
import os
import tempfile
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifoldknn.tables.formats import source as module
from manifoldknn.tables.formats.source import Source
from manifoldknn.tables.table import TableError

PACK = {
    "": bytes,
    "gzip": gzip.compress,
    "zstd": lambda content: bytes(pa.Codec("zstd").compress(content)),
}


def unpacked(content, packing):
    if not packing:
        return content
    return pa.input_stream(pa.BufferReader(content), compression=packing).read()


@settings(max_examples=200, deadline=None)
@given(
    st.text("aé€\r\n,;1\U0001f600ß", min_size=1, max_size=40),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252", "mac-roman"]),
    st.sampled_from(sorted(PACK)),
    st.integers(1, 9),
)
def test_bytes_come_back(tmp_path_factory, text, encoding, packing, size):
    text = text.encode(encoding, "ignore").decode(encoding)
    content = text.encode(encoding)
    path = tmp_path_factory.mktemp("s") / "a.csv"
    path.write_bytes(PACK[packing](content))
    with patch.object(module, "_CHUNK", size):
        source = Source(path, encoding)
    plain = source.plain.read_bytes()
    assert plain.decode("utf-8-sig").removeprefix("\ufeff") == text
    assert source.packing == packing
    buffer = io.BytesIO()
    with source.written(buffer) as file:
        for start in range(0, len(plain), size):
            file.write(plain[start : start + size])
    assert unpacked(buffer.getvalue(), packing) == content


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a,b\n", "UTF-8"), ("é".encode(), "UTF-8"), ("é".encode("cp1252"), "Windows-1252"),
        ("\ufeffab".encode("utf-16-le"), "UTF-16"), ("\ufeffab".encode("utf-16-be"), "UTF-16"),
        ("a;b\r\n1;2\r\n".encode("utf-16-le"), "UTF-16"), ("a;b\n".encode("utf-16-be"), "UTF-16"),
        (b"", "UTF-8"),
    ],
)  # fmt: skip
def test_encodings_are_found_out(tmp_path, content, said):
    (tmp_path / "a.csv").write_bytes(content)
    assert Source(tmp_path / "a.csv").said == said


def test_a_letter_cut_in_two_by_a_chunk(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"a" * 9 + b"\xc3" + b"b" * 20)
    with patch.object(module, "_CHUNK", 10):
        assert Source(tmp_path / "a.csv").said == "Windows-1252"


def test_what_cannot_be_written_is_named(tmp_path):
    (tmp_path / "a.csv").write_bytes("é".encode("cp1252"))
    with (
        pytest.raises(TableError, match=r"'α' cannot be written in Windows-1252.*UTF-8 first"),
        Source(tmp_path / "a.csv").written(io.BytesIO()) as file,
    ):
        file.write("bα".encode())


@pytest.mark.parametrize(
    ("encoding", "content", "words"),
    [
        ("nonsense", b"a", "--encoding nonsense is not known"),
        ("rot13", b"a", "--encoding rot13 is not known"),
        ("utf-8", b"\xe9", "is not text in UTF-8"),
        ("ascii", "é".encode(), "is not text in ascii"),
        ("utf-7", b"+AGE-", "would not come back byte for byte"),
    ],
)
def test_wrong_encodings_are_refused(tmp_path, encoding, content, words):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(TableError, match=words):
        Source(tmp_path / "a.csv", encoding)


def test_no_temporary_file_stays(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_bytes(gzip.compress(b"\xe9"))
    (tmp_path / "t").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "t"))
    source = Source(tmp_path / "a.csv")
    assert source.plain.parent.parent == tmp_path / "t"
    del source
    assert os.listdir(tmp_path / "t") == []
