"""One page of a run: every table and figure beside what the paper prints.

The page needs nothing but itself: no script, no font, no file beside it.
"""

from __future__ import annotations

import base64
import math
import os
import platform
import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from pathlib import Path

from manifoldknn.base.atomic import replaced_file
from manifoldknn.reproduction.assemble import Assembled
from manifoldknn.reproduction.experiment import Lines, Scalar, Table
from manifoldknn.reproduction.figures.bar import duration
from manifoldknn.reproduction.settings import settings_table
from manifoldknn.reproduction.store import Store, extras, version_of, versions

_NUMBER = re.compile(r"[-+−±≤<>~\s\d.,%×e()–—]*")
_NONE = "–"


def write_report(parts: Sequence[Assembled], store: Store, *, jobs: int, command: str) -> Path:
    """Write ``report.html`` into the folder of a run and return its path."""
    path = store.folder / "report.html"
    with replaced_file(path) as file:
        file.write(report_page(parts, store, jobs=jobs, command=command).encode("utf-8", "replace"))
    return path


def report_page(parts: Sequence[Assembled], store: Store, *, jobs: int, command: str) -> str:
    """Return the page as text, of the same things as `write_report`."""
    pieces = {
        "style": _resource("page.css"),
        "lead": _lead(parts, store),
        "problems": _problems(parts),
        "headline": _headline(parts),
        "contents": _contents(parts),
        "differences": _differences(parts),
        "experiments": "\n".join(_section(part) for part in parts),
        "settings": _settings(parts, store, jobs, command),
    }
    page = _resource("page.html").split("@@")  # text, name, text, name, ...
    page[1::2] = [pieces[name] for name in page[1::2]]
    return "".join(page)


def _resource(name: str) -> str:
    here = resources.files("manifoldknn.reproduction") / "templates"
    return (here / name).read_text(encoding="utf-8")


def _lead(parts: Sequence[Assembled], store: Store) -> str:
    whole = sum(not part.problems for part in parts)
    size = "a quick look: fewer runs and smaller sizes" if store.plan.quick else "the full run"
    work = duration(sum(part.seconds for part in parts))
    return escape(
        f"{whole} of {len(parts)} tables and figures, measured anew ({size}; {work} of work). "
        "Published numbers stand beside ours wherever the paper prints any; figures in the paper "
        "print none."
    )


def _advice(text: str) -> str:
    return f'<div class="advice">{text}</div>'


def _items(kind: str, items: Iterable[str]) -> str:
    listed = "".join(f"<li>{item}</li>" for item in items)
    return f'<ul class="{kind}">{listed}</ul>' if listed else ""


def _way(part: Assembled) -> str:
    name = escape(part.experiment.name)
    return f'<a class="id" href="#{name}">{name}</a>'


def _problems(parts: Sequence[Assembled]) -> str:
    lines = [f"{p.experiment.name}: {problem}" for p in parts for problem in p.problems]
    listed = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return _advice(f"<p><strong>Not complete.</strong></p>{listed}") if lines else ""


def _contents(parts: Sequence[Assembled]) -> str:
    items = [
        f'<li><a href="#{name}"><span class="id">{name}</span> {escape(title)}</a></li>'
        for name, title in ((escape(p.experiment.name), p.experiment.title) for p in parts)
    ]
    return f'<ol class="contents">{"".join(items)}</ol>'


def _headline(parts: Sequence[Assembled]) -> str:
    """Show the main numbers and what they say, where the run has them."""
    main_first = sorted(parts, key=lambda part: part.headline is None)
    tables = [_table(part.headline) for part in parts if part.headline is not None]
    items = [f"{_way(part)} {escape(text)}" for part in main_first for text in part.findings]
    shown = "".join(tables) + _items("differences", items)
    return f'<section id="headline"><h2>In short</h2>{shown}</section>' if shown else ""


def _differences(parts: Sequence[Assembled]) -> str:
    """Gather what differs, each sentence once, with the way to its experiments."""
    notes: dict[str, list[str]] = {}
    for part in parts:
        for note in part.differences:
            notes.setdefault(note, []).append(_way(part))
    items = [f"{' '.join(ways)} {escape(note)}" for note, ways in notes.items()]
    return _items("differences", items) or '<p class="none">Nothing to tell.</p>'


def _section(part: Assembled) -> str:
    name, title = escape(part.experiment.name), escape(part.experiment.title)
    pieces = [
        f'<section id="{name}">',
        f'<h2><span class="id">{name}</span> {title}</h2>',
        *(_advice(f"<p>{escape(text)}</p>") for text in part.problems),
    ]
    if part.png:
        data = base64.b64encode(part.png).decode()
        pieces.append(
            f'<figure><img alt="Figure: {title}" src="data:image/png;base64,{data}">'
            f"<figcaption>figures/{name}.png, figures/{name}.pdf</figcaption></figure>"
        )
    pieces += [_table(table) for table in part.tables]
    pieces.append(_items("notes", map(escape, (*part.differences, *part.notes))))
    cells = f"{part.n_cells} cell{'s' if part.n_cells != 1 else ''}"
    pieces.append(
        f'<p class="source">Every number: csv/{name}.csv · {cells}, {duration(part.seconds)} of '
        'work · <a href="#top">contents</a></p></section>'
    )
    return "\n".join(pieces)


def _table(table: Table) -> str:
    columns = [[row[i] for row in table.rows] for i in range(len(table.header))]
    classes = [' class="n"' if of and all(map(_is_number, of)) else "" for of in columns]
    forms = [_form(column) for column in columns]
    head = "".join(f"<th{c}>{escape(h)}</th>" for c, h in zip(classes, table.header))
    lines = (
        "".join(f"<td{c}>{_shown(v, form)}</td>" for c, v, form in zip(classes, row, forms))
        for row in table.rows
    )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    caption = escape(table.caption)
    return (
        f'<p class="caption">{caption}</p><div class="scroll"><table aria-label="{caption}">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        + _items("notes", map(escape, table.notes))
    )


def _is_number(value: Scalar) -> bool:
    if isinstance(value, str):
        return _NUMBER.fullmatch(value) is not None
    return not isinstance(value, bool)


def _form(column: Sequence[Scalar]) -> str:
    """Return the format of a column's floats: as many decimals as its smallest needs, if few."""
    sizes = [abs(v) for v in column if isinstance(v, float) and math.isfinite(v) and v]
    if not sizes:
        return ".1f"
    low, high = (math.floor(math.log10(size)) for size in (min(sizes), max(sizes)))
    decimals = max(0, min(2, 3 - high), min(1 - low, 4 - high))
    return f".{decimals}f" if decimals >= -low else ".4g"


def _shown(value: Scalar, form: str) -> str:
    if value is None or value == "":
        return _NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return escape(format(value, form)).replace("-", "−")
    return escape(str(value))


def _settings(parts: Sequence[Assembled], store: Store, jobs: int, command: str) -> str:
    plan = store.plan
    extra = {"matplotlib": version_of("matplotlib")} | extras()
    pairs = {
        "command": command,
        "size": "quick: fewer runs and smaller sizes" if plan.quick else "full",
        "seed": f"{plan.seed}; run r of an experiment draws with seed {plan.seed} + r",
        "cells": f"{sum(part.n_cells for part in parts)}, "
        f"of which {sum(part.n_missing for part in parts)} are missing",
        "work": f"{duration(sum(part.seconds for part in parts))} in all; {jobs} process"
        f"{'es' if jobs != 1 else ''} side by side, one thread each; what is timed ran alone",
        "begun": store.started,
        "versions": ", ".join(f"{name} {v}" for name, v in (versions() | extra).items()),
        "machine": _machine(),
    }
    rows = [
        f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in pairs.items()
    ]
    work: Lines = [[p.experiment.name, p.n_cells, round(p.seconds, 1)] for p in parts]
    return (
        f'<div class="scroll"><table class="pairs">{"".join(rows)}</table></div>'
        + _table(Table("Work by experiment", ["experiment", "cells", "seconds"], work))
        + _table(settings_table())
    )


def _machine() -> str:
    """Describe the machine by what matters to the numbers."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text("utf-8"), re.MULTILINE)
        processor = found[1].strip() if found else processor
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count()
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
        memory = f", {size:.0f} GB of memory"
    except (AttributeError, OSError, ValueError):
        memory = ""
    return f"{processor}, {cores} cores{memory}, {platform.system()}"
