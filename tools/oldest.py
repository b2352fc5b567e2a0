"""The oldest dependencies that pyproject.toml allows, as exact pins for pip.

Run as ``python tools/oldest.py pyproject.toml > oldest.txt``: each lower bound in
``project.dependencies`` and in the extras becomes one line, ``numpy>=1.26`` becoming
``numpy==1.26``.
The bounds are thus stated once, and `make test-oldest` tests what they promise.
"""

import re
import sys
import tomllib
from itertools import chain
from pathlib import Path

REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)\s*(\[[^]]*\])?\s*(?P<bounds>[^;]*?)\s*(?P<marker>;.*)?", re.ASCII
)


def oldest(requirement: str) -> str:
    """Return the pin to the lower bound of one requirement.

    Parameters
    ----------
    requirement : str
        A name with a ``>=`` bound. Extras and other bounds are dropped; an
        environment marker is kept.

    Returns
    -------
    str
        The same name with ``==`` the bound.

    Raises
    ------
    ValueError
        If the requirement has no ``>=`` bound.
    """
    match = REQUIREMENT.fullmatch(requirement.strip())
    bounds = match["bounds"].strip("()").split(",") if match else []
    lower = [bound.strip()[2:].strip() for bound in bounds if bound.strip().startswith(">=")]
    if match is None or len(lower) != 1:
        raise ValueError(f"no single lower bound in {requirement!r}: write it as 'name>=version'")
    return f"{match['name']}=={lower[0]}{match['marker'] or ''}"


def oldest_pins(pyproject: str) -> list[str]:
    """Return one pin for each dependency, also of extras, in the text of a pyproject.toml."""
    project = tomllib.loads(pyproject)["project"]
    extras = project.get("optional-dependencies", {}).values()
    return [oldest(requirement) for requirement in chain(project["dependencies"], *extras)]


if __name__ == "__main__":
    print("\n".join(oldest_pins(Path(sys.argv[1]).read_text(encoding="utf-8"))))
