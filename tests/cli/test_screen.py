"""Nothing that comes from a file does anything to the screen."""

import io
import json
import os
import subprocess
import sys
import unicodedata
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifoldknn.cli.json_text import json_text
from manifoldknn.cli.main import main
from manifoldknn.cli.screen import named, say, visible

ESCAPES = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e\x7f"
KEPT = "\n\t"


def unseen(text):
    return {c for c in text if unicodedata.category(c) == "Cc" and c not in KEPT} | (
        set("\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
        & set(text)
    )


@given(st.text())
def test_no_control_character_is_left_and_all_else_stays(text):
    shown = visible(text)
    assert not unseen(shown)
    if not unseen(text):
        assert shown == text
    assert "\n" not in named(text)
    assert json.loads(visible(json_text(text))) == text


def test_closed_streams_are_no_failure():
    stream = io.StringIO()
    stream.close()
    say("a", stream)
    say("a", None)


def hostile_table(folder):
    label = f"wet{ESCAPES}"
    lines = [f"id{ESCAPES},x{ESCAPES},y,class{ESCAPES}"]
    for i in range(20):
        name = (label if i % 2 else "dry") if i < 8 else ""
        lines.append(f"r{i}{ESCAPES},{i % 2 * 5 + i / 50},{i % 3},{name}")
    path = folder / f"t{ESCAPES}.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("how", [[], ["--json"]])
@pytest.mark.parametrize("command", ["classify", "suggest", "check", "inspect", "error", "options"])
def test_everything_printed_is_visible(command, how, tmp_path, capsys):
    path = hostile_table(tmp_path)
    asked = [f"--label=class{ESCAPES}", f"--id=id{ESCAPES}"]
    if command == "error":
        command, asked = "classify", [f"--label=none{ESCAPES}"]
    if command == "options":
        command, asked = "classify", [f"--graph={ESCAPES}"]
    with suppress(SystemExit):  # of wrong options
        main([command, str(path), *asked, *how])
    out, err = capsys.readouterr()
    assert not unseen(out + err)
    assert command in ("check", "inspect") or "\\u001b" in out + err or "\\x1b" in out + err


def started(folder, *arguments, **how):
    command = [sys.executable, "-m", "manifoldknn", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, check=False, stderr=subprocess.PIPE, **how)


@pytest.mark.skipif(os.name == "nt", reason="a shell of POSIX")
@pytest.mark.parametrize("how", [[], ["--json"]])
def test_closed_standard_output_is_no_failure(tmp_path, how):
    path = hostile_table(tmp_path)
    asked = ["classify", path, f"--label=class{ESCAPES}", "--out", "a.csv", "--force", *how]
    closed = started(tmp_path, *asked, preexec_fn=lambda: os.close(1))
    assert closed.returncode == 0, closed.stderr
    assert (tmp_path / "a.csv").read_text("utf-8").count("\n") == 21
    reader, writer = os.pipe()
    os.close(reader)  # who would read has gone
    (tmp_path / "a.csv").unlink()
    assert started(tmp_path, *asked, stdout=writer).returncode == 0
    assert (tmp_path / "a.csv").exists()
    asked[4] = "-"
    assert started(tmp_path, *asked, stdout=writer).returncode == 141
    os.close(writer)
    lost = started(tmp_path, *asked, preexec_fn=lambda: os.close(1))
    assert lost.returncode == 2
    assert b"standard output is closed" in lost.stderr
