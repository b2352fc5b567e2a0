"""Records found by a scan of bytes are those of the csv module."""

import csv
import io
from itertools import accumulate
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifoldknn.tables.formats import records
from manifoldknn.tables.formats.records import OddError, whole_records

pieces = st.sampled_from(["a", "é", ";", "\n", "\r\n", "\r", '"', '""', ';"', '";', '"\n'])


@given(st.lists(pieces, max_size=12).map("".join), st.integers(1, 12))
def test_where_records_end(text, size):
    content, lines, slow, at = text.encode(), [], [], 0

    def remembered():
        for line in io.StringIO(text, newline=""):
            lines.append(line.encode())
            yield line

    with patch.object(records, "BLOCK", size):
        try:
            blocks = list(whole_records(io.BytesIO(content), b";"))
        except OddError:
            return
    for record in csv.reader(remembered(), delimiter=";", strict=True):
        line = b"".join(lines)
        lines.clear()
        slow += [at + len(line.rstrip(b"\r\n"))] if record else []
        at += len(line)
    assert b"".join(block for block, _ in blocks) == content
    starts = accumulate((len(block) for block, _ in blocks), initial=0)
    assert [at + end for at, (_, ends) in zip(starts, blocks) for end in ends] == slow


@pytest.mark.parametrize("text", ['5" pipe;1\n', '"a"b;1\n', '"open\n', "no end of a record"])
def test_what_the_scan_does_not_know(text):
    with patch.object(records, "BLOCK", 12), pytest.raises(OddError):
        list(whole_records(io.BytesIO(text.encode() * 2), b";"))
    with pytest.raises(OddError):
        list(whole_records(io.BytesIO(b""), "é".encode()))
