"""What every experiment consists of: cells to measure, rows measured, tables and a figure.

They stand in the paper's order and ours last, and are imported when they are wanted.
"""

import difflib
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pkgutil import resolve_name
from typing import Any, Self

Scalar = Any  # a text, a number, a truth value or None
Row = dict[str, Scalar]
Lines = list[list[Scalar]]  # of a table


@dataclass(frozen=True)
class Plan:
    """How much is measured: if `quick`, less; run r of an experiment draws with `seed` + r."""

    quick: bool = False
    seed: int = 0


@dataclass(frozen=True)
class Cell:
    """The smallest piece of work that is measured and stored."""

    experiment: str  # "fig9"
    key: tuple[Scalar, ...]  # names the cell within it: ("usps", "kNN", 3)
    # Rough cost on one core, from which the time left is told.
    seconds: float = field(default=1.0, compare=False)
    # Whether nothing else may run beside it, because it is timed.
    alone: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Table:
    """A table of the report: header and rows as they are read; notes stand below it."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Scalar]]
    notes: Sequence[str] = ()

    @classmethod
    def told(
        cls, experiment: str, name: str, lines: Lines, columns: Sequence[str] = (), **values: Any
    ) -> Self:
        """Return a table with the words that ``words.toml`` has for it.

        In its header "*" stands for `columns`; in all its words, {name} for a value.
        """
        words = read_toml("words.toml")[experiment][name]
        header = [h for said in words["header"] for h in (columns if said == "*" else [said])]
        filled = [text.format_map(values) for text in (words["caption"], *words.get("notes", ()))]
        return cls(filled[0], [text.format_map(values) for text in header], lines, filled[1:])


Words = Sequence[str] | Callable[[list[Row]], Sequence[str]]


@dataclass(frozen=True)
class Experiment:
    """One table or figure."""

    name: str  # in the paper's order, "fig1" ... "tab7"
    columns: Sequence[str]  # of its CSV: every row that `measure` returns has exactly these
    cells: Callable[[Plan], list[Cell]]  # in the order of the CSV
    # Gives the rows of one cell. It runs in a process of its own, in any order, and gives the same
    # rows every time, timings aside.
    measure: Callable[[Cell, Plan], list[Row]]
    tables: Callable[[list[Row]], list[Table]]  # of the report, published numbers beside ours
    draw: Callable[[list[Row]], Any] | None = None  # a matplotlib figure
    timings: Sequence[str] = ()  # the columns that hold times, which no two runs agree on
    datasets: Sequence[str] = ()  # real ones, as `load_paper` names them; checked before all else
    headline: Callable[[list[Row]], Table] | None = None  # for the top of the report
    title: str = ""  # one line
    # What it shows and what differs from the paper, both told at the top of the report, and what
    # else a reader has to know. A callable makes sentences of the rows, so that they cannot
    # contradict them.
    findings: Words = ()
    differences: Words = ()
    notes: Words = ()

    @classmethod
    def told(cls, name: str, *parts: Any, **more: Any) -> Self:
        """Return an experiment of some parts, with the words that ``words.toml`` has for it."""
        return cls(name, *parts, **told(name) | more)


@cache
def read_toml(name: str) -> dict[str, Any]:
    """Return what a file beside this one holds."""
    return tomllib.loads((resources.files(__package__) / name).read_text("utf-8"))


def told(name: str) -> dict[str, Any]:
    """Return title, differences and notes of an experiment, as ``words.toml`` has them."""
    words, shared = read_toml("words.toml")[name], read_toml("words.toml")["shared"]
    said = {
        kind: [sentence.format_map(shared) for sentence in words.get(kind, ())]
        for kind in ("differences", "notes")
    }
    return {"title": words["title"], **said}


# Where each is found: module, and the name it has there.
PLACES = {
    name: f"{__package__}.{said['place']}"
    for name, said in read_toml("words.toml").items()
    if "place" in said
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
