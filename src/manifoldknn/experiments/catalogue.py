"""The experiments in the paper's order, found by name and imported when they are wanted."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec

from manifoldknn.experiments.experiment import Experiment

__all__ = ["MODULES", "load", "select"]

_NAMES = (
    "fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "fig8", "tab4", "tab5", "fig9", "tab6",
    "fig10-11", "fig12", "tab7",
)  # fmt: skip
MODULES = {name: f"{__package__}.{name.replace('-', '_')}" for name in _NAMES}


def load(name: str) -> Experiment:
    """Import an experiment.

    Parameters
    ----------
    name : str
        One of `MODULES`.

    Returns
    -------
    Experiment
        What the module calls ``EXPERIMENT``.

    Examples
    --------
    >>> from manifoldknn.experiments.catalogue import load
    >>> load("fig1").name
    'fig1'
    """
    found: Experiment = import_module(MODULES[name]).EXPERIMENT
    return found


def select(wanted: Iterable[str]) -> list[str]:
    """Return the names of the wanted experiments, each once, in the paper's order.

    Parameters
    ----------
    wanted : iterable of str
        Names; "all" stands for every one, and so does nothing at all.

    Returns
    -------
    list of str
        Names.

    Raises
    ------
    ValueError
        If there is no experiment of some name. The message names the likeliest and all.

    Examples
    --------
    >>> from manifoldknn.experiments.catalogue import select
    >>> select(["tab5", "fig1", "tab5"])
    ['fig1', 'tab5']
    >>> select(["fig13"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: there is no experiment 'fig13' (is it 'fig...'?): choose from fig1, fig2, ...
    """
    there = [name for name, module in MODULES.items() if find_spec(module) is not None]
    names = [_spelled(name) for name in wanted] or ["all"]
    for name in names:
        if name not in (*there, "all"):
            near = difflib.get_close_matches(name, there, 1, 0.5)
            hint = f" (is it {near[0]!r}?)" if near else ""
            raise ValueError(
                f"there is no experiment {name!r}{hint}: choose from {', '.join(there)}, or all"
            )
    return [name for name in there if name in names or "all" in names]


def _spelled(name: str) -> str:
    """Forgive capitals, other dashes, and half of a pair of figures."""
    plain = name.strip().lower().replace("_", "-").replace("–", "-")
    return {"fig10": "fig10-11", "fig11": "fig10-11"}.get(plain, plain)
