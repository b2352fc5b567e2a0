"""Tables from files, pipes and standard input."""

import errno
import io
import os
import sys
import threading
from argparse import Namespace

import pytest

from manifoldknn.tables.inputs import input_format, is_stream, opened
from manifoldknn.tables.table import TableError

TEXT = b"a,b\n1,2\n3,4\n"
posix = pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")


def options(file, form=None):
    return Namespace(file=str(file), format=form, delimiter=None, encoding=None)


def test_streams_and_files(tmp_path):
    (tmp_path / "a.csv").write_bytes(TEXT)
    names = ["-", "/dev/stdin", "/dev/fd/63", tmp_path / "a.csv", tmp_path, tmp_path / "none"]
    assert [is_stream(str(name)) for name in names] == [True] * 3 + [False] * 3


def test_formats(tmp_path):
    assert input_format(options("-")) == "csv"
    assert input_format(options("-", "tsv")) == "tsv"
    assert input_format(options(tmp_path / "a.parquet")) == "parquet"
    assert input_format(options(tmp_path / "a")) is None


@posix
def test_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(TEXT,))
    writer.start()
    with opened(options(pipe)) as table:
        assert table.texts(["b"]) == {"b": ["2", "4"]}
        assert table.texts(["a"]) == {"a": ["1", "3"]}  # a second look
    writer.join()


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT)))
    with opened(options("-")) as table:
        assert table.names == ["a", "b"]


def test_a_full_disk_names_the_place(monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("shutil.copyfileobj", full)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT)))
    with pytest.raises(OSError, match="standard input"), opened(options("-")):
        pass


def test_closed_standard_input(monkeypatch):
    closed = io.TextIOWrapper(io.BytesIO())
    closed.close()
    for stdin in (None, closed):
        monkeypatch.setattr(sys, "stdin", stdin)
        with pytest.raises(TableError, match="standard input is closed"), opened(options("-")):
            pass
