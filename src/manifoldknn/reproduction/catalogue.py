"""The experiments in the paper's order and ours last, imported when they are wanted."""

import difflib
from collections.abc import Iterable
from pkgutil import resolve_name

from manifoldknn.reproduction.experiment import Experiment, read_toml

# Where each is found: module, and the name it has there.
PLACES = {
    name: f"{__package__}.{told['place']}"
    for name, told in read_toml("words.toml").items()
    if "place" in told
}
_HALVES = {"fig10": "fig10-11", "fig11": "fig10-11"}


def load(name: str) -> Experiment:
    """Import one of `PLACES`."""
    return resolve_name(PLACES[name])


def select(wanted: Iterable[str]) -> list[str]:
    """Return the names of the wanted experiments, each once, in the paper's order.

    "all" stands for every one, and so does nothing at all. A name that is none raises ValueError,
    which names the likeliest and all.

    >>> select(["tab5", "fig1", "tab5"])
    ['fig1', 'tab5']
    >>> select(["fig13"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: there is no experiment 'fig13' (is it 'fig...'?): choose from fig1, fig2, ...
    """
    plain = [name.strip().lower().replace("_", "-").replace("–", "-") for name in wanted]
    names = [_HALVES.get(name, name) for name in plain] or ["all"]
    for name in names:
        if name not in (*PLACES, "all"):
            near = difflib.get_close_matches(name, PLACES, 1, 0.5)
            hint = f" (is it {near[0]!r}?)" if near else ""
            raise ValueError(
                f"there is no experiment {name!r}{hint}: choose from {', '.join(PLACES)}, or all"
            )
    return [name for name in PLACES if name in names or "all" in names]
