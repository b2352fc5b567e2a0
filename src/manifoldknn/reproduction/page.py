"""One page of a run: every table and figure beside what the paper prints.

The page needs nothing but itself: no script, no font, no file beside it.
"""

import base64
import math
import os
import platform
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from joblib import cpu_count

from manifoldknn.base.atomic import replaced_file
from manifoldknn.base.render import rendered
from manifoldknn.reproduction.assemble import Assembled
from manifoldknn.reproduction.experiment import Lines, Scalar, Table
from manifoldknn.reproduction.methods import settings_table
from manifoldknn.reproduction.runner import duration
from manifoldknn.reproduction.store import Store, extras, version_of, versions

_NUMBER = re.compile(r"[-+−±≤<>~\s\d.,%×e()–—]*")
_NONE = "–"


def write_reproduction(
    parts: Sequence[Assembled], store: Store, *, jobs: int, command: str
) -> Path:
    """Write ``report.html`` into the folder of a run and return its path."""
    path = store.folder / "report.html"
    with replaced_file(path) as file:
        file.write(report_page(parts, store, jobs=jobs, command=command).encode("utf-8", "replace"))
    return path


def report_page(parts: Sequence[Assembled], store: Store, *, jobs: int, command: str) -> str:
    """Return the page as text, of the same things as `write_reproduction`."""
    main_first = sorted(parts, key=lambda part: part.headline is None)
    differences: dict[str, list[str]] = {}  # each sentence once, with the way to its experiments
    for part in parts:
        for sentence in part.differences:
            differences.setdefault(sentence, []).append(part.experiment.name)
    work: Lines = [[p.experiment.name, p.n_cells, round(p.seconds, 1)] for p in parts]
    return rendered(
        "manifoldknn.reproduction",
        "page.html",
        parts=parts,
        quick=store.plan.quick,
        seconds=sum(part.seconds for part in parts),
        duration=duration,
        base64=lambda data: base64.b64encode(data).decode(),
        headlines=[_shown(part.headline) for part in parts if part.headline is not None],
        findings=[(part.experiment.name, said) for part in main_first for said in part.findings],
        differences=differences,
        tables={part.experiment.name: [_shown(table) for table in part.tables] for part in parts},
        settings=_settings(parts, store, jobs, command),
        work=_shown(Table("Work by experiment", ["experiment", "cells", "seconds"], work)),
        methods=_shown(settings_table()),
    )


def _shown(table: Table) -> dict[str, Any]:
    """Return a table as text, and which of its columns are of numbers."""
    columns = [[row[i] for row in table.rows] for i in range(len(table.header))]
    forms = [_form(column) for column in columns]
    return {
        "caption": table.caption,
        "header": table.header,
        "numbers": [bool(column) and all(map(_is_number, column)) for column in columns],
        "rows": [[_text(value, form) for value, form in zip(row, forms)] for row in table.rows],
        "notes": table.notes,
    }


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


def _text(value: Scalar, form: str) -> str:
    if value is None or value == "":
        return _NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return format(value, form).replace("-", "−")
    return str(value)


def _settings(parts: Sequence[Assembled], store: Store, jobs: int, command: str) -> dict[str, str]:
    plan = store.plan
    extra = {"matplotlib": version_of("matplotlib")} | extras()
    return {
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


def _machine() -> str:
    """Describe the machine by what matters to the numbers."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text("utf-8"), re.MULTILINE)
        processor = found[1].strip() if found else processor
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
        memory = f", {size:.0f} GB of memory"
    except (AttributeError, OSError, ValueError):
        memory = ""
    return f"{processor}, {cpu_count()} cores{memory}, {platform.system()}"
