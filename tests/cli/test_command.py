"""The command from its very beginning: interruptions while it imports and while it writes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import manifoldknn
from manifoldknn.cli.command import main
from manifoldknn.cli.json_text import SCHEMA

SOURCE = Path(__file__).parents[2] / "src"
FLOWERS = SOURCE.parent / "examples" / "flowers.csv"
posix = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")

STOPPED = """
import builtins, os, signal, sys
real = builtins.__import__
def stopping(name, *rest, **named):
    if name.startswith("numpy"):
        os.kill(os.getpid(), signal.SIGINT)
    return real(name, *rest, **named)
builtins.__import__ = stopping
from manifoldknn.cli.command import main
sys.exit(main(["classify", "none.csv", "--label", "x", *sys.argv[1:]]))
"""

WRITING = """
import sys, time
from manifoldknn.tables.formats import textfile
def write(self, file, added):
    file.write(b"half")
    file.flush()
    print("writing", file=sys.stderr, flush=True)
    time.sleep(60)
textfile.TextTable.write = write
from manifoldknn.cli.command import main
sys.exit(main(sys.argv[1:]))
"""

SPARING = """
import sys
from manifoldknn.cli.command import main
code = main(sys.argv[1:])
assert "pandas" not in sys.modules
import pandas
sys.exit(code)
"""


def started(folder, code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], cwd=folder, stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(SOURCE)}, text=True,
    )  # fmt: skip


def test_no_file_needs_pandas(tmp_path):
    pytest.importorskip("pandas")
    learning = ["classify", str(FLOWERS), "--label", "species", "--quiet", "--out", "o.csv",
                "--report", "r.html", "--save", "m.mknn"]  # fmt: skip
    for arguments in (learning, ["predict", "m.mknn", str(FLOWERS), "--out", "p.csv", "--quiet"]):
        process = started(tmp_path, SPARING, *arguments)
        err = process.communicate(timeout=120)[1]
        assert process.returncode == 0, err


@posix
def test_interrupted_while_importing(tmp_path):
    process = started(tmp_path, STOPPED)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines() == ["manifoldknn: error: interrupted: nothing was written"]
    process = started(tmp_path, STOPPED, "--json", "--out", "-")
    _, err = process.communicate(timeout=60)
    error = {"error": "interrupted: nothing was written", "exit_code": 130}
    assert json.loads(err) == {"schema": SCHEMA} | error


@posix
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_ended_while_writing(tmp_path, number, code):
    (tmp_path / "f.csv").write_bytes(FLOWERS.read_bytes())
    process = started(tmp_path, WRITING, "classify", "f.csv", "--label", "species", "--quiet")
    assert process.stderr.readline() == "writing\n"
    time.sleep(0.1)
    assert len(os.listdir(tmp_path)) == 2  # the temporary file is there
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in err
    assert os.listdir(tmp_path) == ["f.csv"]


def test_nothing_heavy_is_imported_to_begin_with():
    code = "import sys, manifoldknn.cli.command; print('numpy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
    )  # fmt: skip
    assert done.stdout == "False\n"


@pytest.mark.parametrize("arguments", [["--help"], ["classify", "--help"], ["suggest"]])
def test_help_waits_for_nothing_heavy(arguments):
    code = (
        "import sys\nfrom manifoldknn.cli.command import main\ntry:\n    main(sys.argv[1:])\n"
        "except SystemExit:\n    pass\n"
        "print(sorted({'numpy', 'scipy', 'sklearn', 'pyarrow', 'jinja2'} & {*sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_public_name_is_there():
    for name in manifoldknn.__all__:
        assert getattr(manifoldknn, name).__name__ == name
        assert name in dir(manifoldknn)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        manifoldknn.nonsense  # noqa: B018


def test_codes_are_passed_on(capsys, monkeypatch):
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert main(["classify", "no such file.csv", "--label", "x"]) == 2
    assert "there is no file" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
@pytest.mark.parametrize("limit", [100_000_000, 230_000_000, 250_000_000, 600_000_000])
def test_no_room_even_for_the_libraries(limit):
    """It ended in a traceback, in a library's own exit, or never: OpenBLAS asks again and again."""
    import resource

    line = ["classify", str(FLOWERS), "--label", "species", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "manifoldknn", *line],
        capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(SOURCE)}, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)), timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("manifoldknn: error: the limit on address space leaves no room")
    assert done.stderr.count("\n") == 1
    assert json.loads(done.stdout)["error"] in done.stderr


def test_a_library_that_is_missing_is_no_question_of_memory(monkeypatch):
    monkeypatch.setitem(sys.modules, "manifoldknn.cli.main", None)
    with pytest.raises(ImportError):
        main(["classify", str(FLOWERS), "--label", "species"])
