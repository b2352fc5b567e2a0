import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "tools" / "oldest.py"
tool = runpy.run_path(str(SCRIPT))


def test_lower_bounds_become_pins_in_order():
    pyproject = """
    [project]
    dependencies = ["numpy>=1.26", "scikit-learn>=1.6"]
    [project.optional-dependencies]
    plots = ["matplotlib>=3.8"]
    """
    assert tool["oldest_pins"](pyproject) == ["numpy==1.26", "scikit-learn==1.6", "matplotlib==3.8"]


@pytest.mark.parametrize(
    ("requirement", "pin"),
    [
        ("numpy>=1.26", "numpy==1.26"),
        ("numpy >= 1.26", "numpy==1.26"),
        ("numpy>=1.26,<3", "numpy==1.26"),
        ("numpy<3, !=2.0.1, >=1.26", "numpy==1.26"),
        ("numpy (>=1.26)", "numpy==1.26"),
        ("ruamel.yaml[jinja2]>=0.18", "ruamel.yaml==0.18"),
        ("tomli>=2; python_version<'3.11'", "tomli==2; python_version<'3.11'"),
    ],
)
def test_form_of_a_requirement(requirement, pin):
    assert tool["oldest"](requirement) == pin


@pytest.mark.parametrize("requirement", ["numpy", "numpy<3", "numpy>1.26", "numpy>=1,>=2", ""])
def test_a_requirement_without_one_lower_bound_is_refused(requirement):
    with pytest.raises(ValueError, match="no single lower bound"):
        tool["oldest"](requirement)


def test_every_dependency_of_this_project_is_pinned():
    pyproject = ROOT / "pyproject.toml"
    run = subprocess.run(
        [sys.executable, str(SCRIPT), str(pyproject)], check=True, capture_output=True, text=True
    )
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(requirement for extra in extras for requirement in extra)]
    names = [re.match(r"[\w.-]+", requirement)[0] for requirement in wanted]
    assert [pin.split("==")[0] for pin in run.stdout.splitlines()] == names
