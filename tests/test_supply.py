"""What is fetched to test this package is named exactly."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PIN = re.compile(r"^([\w.-]+)==([\w.]+)[^\\]*\\$", re.MULTILINE)
REQUIREMENT = re.compile(r"([\w.-]+)>=([\d.]+)")


def numbers(version):
    return [int(part) for part in re.findall(r"\d+", version)]


@pytest.mark.parametrize("path", sorted(ROOT.glob(".github/workflows/*.yml")), ids=lambda p: p.name)
def test_actions_are_pinned_by_commit(path):
    uses = re.findall(r"uses:\s*(\S+)(.*)", path.read_text("utf-8"))
    assert uses
    for name, comment in uses:
        assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", name), name
        assert re.fullmatch(r" # v[\d.]+", comment), name  # for people


def test_every_python_that_is_allowed_is_tested():
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    (listed,) = re.findall(r"python: \[(.*)\]", text)
    assert listed.replace('"', "").split(", ") == ["3.11", "3.12", "3.13", "3.14"]


def test_the_lock_holds_all_that_tests_need_with_hashes():
    lock = (ROOT / "tools" / "test.lock").read_text("utf-8")
    pinned = {}
    for name, version in PIN.findall(lock):
        pinned.setdefault(name, []).append(version)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["test"]]
    for name, bound in (REQUIREMENT.fullmatch(one).groups() for one in wanted):
        assert name in pinned, f"{name} is not in tools/test.lock: run make lock"
        assert all(numbers(version) >= numbers(bound) for version in pinned[name]), name
    for block in re.split(r"\n(?=\S)", lock.strip()):
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block[:60]
