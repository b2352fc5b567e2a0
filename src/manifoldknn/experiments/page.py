"""One page of a run: every table and figure beside what the paper prints.

The page needs nothing but itself: no script, no font, no file beside it.
"""

from __future__ import annotations

import base64
import html
import math
import os
import platform
import re
from collections.abc import Sequence
from importlib import metadata, resources
from pathlib import Path

from manifoldknn.atomic import replaced_file
from manifoldknn.experiments.assemble import Assembled
from manifoldknn.experiments.bar import duration
from manifoldknn.experiments.experiment import Scalar, Table
from manifoldknn.experiments.settings import settings_table
from manifoldknn.experiments.store import Store, extras, versions

__all__ = ["report_page", "write_report"]

_NUMBER = re.compile(r"[-+−±≤<>~\s\d.,%×e()–—]*")
_NONE = "–"


def write_report(parts: Sequence[Assembled], store: Store, *, jobs: int, command: str) -> Path:
    """Write ``report.html`` into the folder of a run.

    Parameters
    ----------
    parts : sequence of Assembled
        In the order of the page.
    store : Store
        The run.
    jobs : int
        Processes that measured side by side.
    command : str
        What was typed.

    Returns
    -------
    Path
        The page.
    """
    path = store.folder / "report.html"
    with replaced_file(path) as file:
        file.write(report_page(parts, store, jobs=jobs, command=command).encode("utf-8", "replace"))
    return path


def report_page(parts: Sequence[Assembled], store: Store, *, jobs: int, command: str) -> str:
    """Return the page as text.

    Parameters
    ----------
    parts, store, jobs, command
        As in `write_report`.

    Returns
    -------
    str
        HTML.
    """
    pieces = {
        "style": _resource("reproduction.css"),
        "lead": _lead(parts, store),
        "problems": _problems(parts),
        "headline": _headline(parts),
        "contents": _contents(parts),
        "differences": _differences(parts),
        "experiments": "\n".join(_section(part) for part in parts),
        "settings": _settings(parts, store, jobs, command),
    }
    page = _resource("reproduction.html").split("@@")  # text, name, text, name, ...
    page[1::2] = [pieces[name] for name in page[1::2]]
    return "".join(page)


def _resource(name: str) -> str:
    return (resources.files("manifoldknn") / "page" / name).read_text(encoding="utf-8")


def _lead(parts: Sequence[Assembled], store: Store) -> str:
    whole = sum(not part.problems for part in parts)
    size = "a quick look: fewer runs and smaller sizes" if store.plan.quick else "the full run"
    work = duration(sum(part.seconds for part in parts))
    return html.escape(
        f"{whole} of {len(parts)} tables and figures, measured anew ({size}; {work} of work). "
        "Published numbers stand beside ours wherever the paper prints any; figures in the paper "
        "print none."
    )


def _problems(parts: Sequence[Assembled]) -> str:
    lines = [f"{p.experiment.name}: {problem}" for p in parts for problem in p.problems]
    if not lines:
        return ""
    listed = "".join(f"<p>{html.escape(line)}</p>" for line in lines)
    return f'<div class="advice"><p><strong>Not complete.</strong></p>{listed}</div>'


def _contents(parts: Sequence[Assembled]) -> str:
    items = [
        f'<li><a href="#{_anchor(p)}"><span class="id">{html.escape(p.experiment.name)}</span> '
        f"{html.escape(p.experiment.title)}</a></li>"
        for p in parts
    ]
    return f'<ol class="contents">{"".join(items)}</ol>'


def _headline(parts: Sequence[Assembled]) -> str:
    """Show the main numbers and what they say, where the run has them."""
    tables = [_table(part.headline) for part in parts if part.headline is not None]
    items = [
        f'<li><a class="id" href="#{_anchor(part)}">{html.escape(part.experiment.name)}</a> '
        f"{html.escape(text)}</li>"
        for part in sorted(parts, key=lambda part: part.headline is None)  # the main ones first
        for text in part.findings
    ]
    if not tables and not items:
        return ""
    listed = f'<ul class="differences">{"".join(items)}</ul>' if items else ""
    return f'<section id="headline"><h2>In short</h2>{"".join(tables)}{listed}</section>'


def _anchor(part: Assembled) -> str:
    return html.escape(part.experiment.name, quote=True)


def _differences(parts: Sequence[Assembled]) -> str:
    """Gather what differs, each sentence once, with the way to its experiments."""
    notes: dict[str, list[str]] = {}
    for part in parts:
        way = f'<a class="id" href="#{_anchor(part)}">{html.escape(part.experiment.name)}</a>'
        for note in part.differences:
            notes.setdefault(note, []).append(way)
    if not notes:
        return '<p class="none">Nothing to tell.</p>'
    items = [f"<li>{' '.join(ways)} {html.escape(note)}</li>" for note, ways in notes.items()]
    return f'<ul class="differences">{"".join(items)}</ul>'


def _section(part: Assembled) -> str:
    name = html.escape(part.experiment.name)
    title = html.escape(part.experiment.title)
    pieces = [
        f'<section id="{_anchor(part)}">',
        f'<h2><span class="id">{name}</span> {title}</h2>',
        *(f'<div class="advice"><p>{html.escape(text)}</p></div>' for text in part.problems),
    ]
    if part.png:
        data = base64.b64encode(part.png).decode()
        alt = html.escape(f"Figure: {part.experiment.title}", quote=True)
        pieces.append(
            f'<figure><img alt="{alt}" src="data:image/png;base64,{data}">'
            f"<figcaption>figures/{name}.png, figures/{name}.pdf</figcaption></figure>"
        )
    pieces += [_table(table) for table in part.tables]
    if part.differences or part.notes:
        notes = "".join(f"<li>{html.escape(n)}</li>" for n in (*part.differences, *part.notes))
        pieces.append(f'<ul class="notes">{notes}</ul>')
    cells = f"{part.n_cells} cell{'s' if part.n_cells != 1 else ''}"
    pieces.append(
        f'<p class="source">Every number: csv/{name}.csv · {cells}, {duration(part.seconds)} of '
        'work · <a href="#top">contents</a></p></section>'
    )
    return "\n".join(pieces)


def _table(table: Table) -> str:
    numeric = [
        all(_is_number(row[i]) for row in table.rows) and len(table.rows) > 0
        for i in range(len(table.header))
    ]
    classes = [' class="n"' if flag else "" for flag in numeric]
    head = "".join(f"<th{c}>{html.escape(h)}</th>" for c, h in zip(classes, table.header))
    forms = [_form([row[i] for row in table.rows]) for i in range(len(table.header))]
    body = "".join(
        "<tr>"
        + "".join(f"<td{c}>{_shown(v, form)}</td>" for c, v, form in zip(classes, row, forms))
        + "</tr>"
        for row in table.rows
    )
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in table.notes)
    return (
        f'<p class="caption">{html.escape(table.caption)}</p><div class="scroll">'
        f'<table aria-label="{html.escape(table.caption, quote=True)}">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        + (f'<ul class="notes">{notes}</ul>' if notes else "")
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
        return html.escape(format(value, form)).replace("-", "−")
    return html.escape(str(value))


def _settings(parts: Sequence[Assembled], store: Store, jobs: int, command: str) -> str:
    plan = store.plan
    extra = {"matplotlib": _installed("matplotlib")} | extras()
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
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
        for name, value in pairs.items()
    ]
    work = "".join(
        f'<tr><td>{html.escape(p.experiment.name)}</td><td class="n">{p.n_cells}</td>'
        f'<td class="n">{p.seconds:.1f}</td></tr>'
        for p in parts
    )
    return (
        f'<div class="scroll"><table class="pairs">{"".join(rows)}</table></div>'
        '<p class="caption">Work by experiment</p><div class="scroll"><table><thead><tr>'
        '<th>experiment</th><th class="n">cells</th><th class="n">seconds</th></tr></thead>'
        f"<tbody>{work}</tbody></table></div>" + _table(settings_table())
    )


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


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
