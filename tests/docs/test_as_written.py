"""What README and the first page of the site tell a reader to type runs as it is written."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs" / "start.rst"]
OTHERS = ("python3", ".", "pip", "make")  # need an environment or a network
FOREVER = ("label",)  # serves until it is stopped


def blocks(text, kind):
    """Return the code blocks of a kind, of Markdown or reStructuredText, in order."""
    fenced = re.findall(rf"^```{kind}\n(.*?)^```", text, re.M | re.S)
    indented = re.findall(rf"^\.\. code-block:: {kind}\n\n((?:   .*\n|\n)+)", text, re.M)
    return fenced + [re.sub(r"^   ", "", block, flags=re.M) for block in indented]


def commands(text):
    """Return the commands of our own in the consoles of a page."""
    lines = "\n".join(blocks(text, "console")).replace("\\\n", " ").splitlines()
    typed = [shlex.split(line[2:], comments=True) for line in lines if line.startswith("$ ")]
    assert {words[0] for words in typed} <= {"manifoldknn", *OTHERS}
    return [words[1:] for words in typed if words[0] == "manifoldknn"]


@pytest.fixture
def folder(tmp_path):
    """Return a folder that has the examples, as a clone has."""
    shutil.copytree(
        ROOT / "examples", tmp_path / "examples", ignore=lambda *_: ["gallery", "tutorials"]
    )
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands(page, folder):
    found = commands(page.read_text(encoding="utf-8"))
    assert len(found) >= 4
    for words in found:
        if words[0] in FOREVER:
            words = [words[0], "--help"]
        call = [sys.executable, "-m", "manifoldknn", *words]
        done = subprocess.run(call, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, (words, done.stderr)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python(page, folder, monkeypatch):
    monkeypatch.chdir(folder)
    found = blocks(page.read_text(encoding="utf-8"), "python")
    assert found
    names = {}
    for block in found:
        exec(compile(block, str(page), "exec"), names)
