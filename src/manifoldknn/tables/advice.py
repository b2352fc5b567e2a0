"""Advice about parameters of the classifier, said as options of the command line."""

from __future__ import annotations

import re

from manifoldknn.base.parameters import PARAMETERS

_SAID = (*PARAMETERS, "must_link", "cannot_link")
_SETTABLE = "|".join(_SAID)
_COMPOUND = "|".join(name for name in _SAID if "_" in name)  # no ordinary words


def as_options(text: str) -> str:
    """Return advice about parameters in Python as advice about options, rows counted from 1.

    >>> as_options("raise graph_neighbors, or use graph='pruned'")
    'raise --graph-neighbors, or use --graph pruned'
    """
    text = re.sub(r"first is row (\d+)", lambda found: f"first is row {int(found[1]) + 1}", text)
    text = re.sub(rf"\b({_SETTABLE})=(?:'([^']*)'|([\w.+-]*\w))", _as_setting, text)
    return re.sub(rf"(?<![\w-])({_COMPOUND})(?![\w-])", _as_setting, text)


def _as_setting(match: re.Match[str]) -> str:
    name, *values = match.groups()
    return " ".join([f"--{name.replace('_', '-')}", *(value for value in values if value)])
