"""Short runs of the attacks in `fuzz`; `make fuzz` makes the long ones."""

import ast
import contextlib
import random
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[2] / "fuzz"


@pytest.mark.parametrize(
    ("script", "count"),
    [
        ("files", 140),
        pytest.param("kills", 6, marks=[pytest.mark.slow, pytest.mark.long]),
        ("pages", 2),
        ("mutations", 1),
    ],
)
def test_no_findings(script, count):
    if script == "kills":
        pytest.importorskip("distributed", reason="needs manifoldknn[dask]")
        pytest.importorskip("uvicorn", reason="needs manifoldknn[label]")
        if sys.platform == "win32":
            pytest.skip("needs fork")
    if script == "pages":
        pytest.importorskip("playwright", reason="needs playwright")
        pytest.importorskip("uvicorn", reason="needs manifoldknn[label]")
        if not shutil.which("chromium"):
            pytest.skip("needs chromium")
    more = ["--only", "base/render"] if script == "mutations" else []
    done = subprocess.run(
        [sys.executable, FUZZ / f"{script}.py", "--count", str(count), "--seed", "3", *more],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{script}: ")
    assert done.stdout.count("\n") == 1


def test_a_mutation_changes_one_thing():
    turned = runpy.run_path(str(FUZZ / "mutations.py"))["turned"]
    source = "def f(a: int | None) -> bool:\n    return a + 1 < 2 and True\n"
    found = {turned(source, random.Random(seed))[0] for seed in range(50)}
    plain = ast.unparse(ast.parse(source)) + "\n"
    expected = {
        plain.replace("+", "-"), plain.replace("<", ">="), plain.replace("True", "False"),
        plain.replace("and", "or"),
    }  # fmt: skip
    assert found == expected
    assert turned("x = 1", random.Random(0)) is None


@pytest.mark.parametrize("script", ["files", "pages"])
def test_a_finding_is_told(script, monkeypatch, capsys):
    """With a check that lets everything pass, or a page that escapes nothing."""
    main = runpy.run_path(str(FUZZ / f"{script}.py"))["main"]
    inside = main.__globals__
    if script == "files":
        monkeypatch.setitem(inside, "MOST_MB", -1)
        # It limits the memory of its own process, which is that of all tests here.
        monkeypatch.setattr("resource.setrlimit", lambda *_: None)
    else:
        if inside["BROWSER"] is None:
            pytest.skip("needs chromium")

        @contextlib.contextmanager
        def raw(payload, folder):
            (folder / "raw.html").write_text(f"<html><body>{payload}</body></html>", "utf-8")
            yield (folder / "raw.html").as_uri()

        monkeypatch.setitem(inside, "PAGES", {"raw": raw})
        monkeypatch.setitem(inside, "FORMS", inside["FORMS"][:3])
    assert main(["--count", "3"]) == 1
    assert "findings" in capsys.readouterr().out
