"""Write what was measured: CSV per case, one page of Markdown, one file to build both from.

``results.json`` keeps the cases of earlier runs, so that measuring one case again does not drop
the others from the page.
"""

from __future__ import annotations

import csv
import io
import json
import os
from contextlib import contextmanager
from pathlib import Path

from cases import CASES

# Columns in the order of the tables: key in the CSV, heading, form of the numbers.
COLUMNS = {
    "method": ("method", "{}"),
    "setting": ("setting", "{}"),
    "n": ("rows", "{:,}"),
    "share_pct": ("labelled, %", "{:g}"),
    "labelled": ("labelled", "{:,}"),
    "seconds": ("seconds, all", "{:.2f}"),
    "import_s": ("import, s", "{:.2f}"),
    "load_s": ("load, s", "{:.2f}"),
    "fit_s": ("fit, s", "{:.3f}"),
    "candidates": ("candidates", "{}"),
    "neighbours_s": ("neighbours, s", "{:.1f}"),
    "graph_s": ("graph, s", "{:.1f}"),
    "spanning_s": ("spanning tree, s", "{:.2f}"),
    "joining_s": ("joining, s", "{:.2f}"),
    "walk_s": ("walk, s", "{:.1f}"),
    "hidden_s": ("hidden labels, s", "{:.1f}"),
    "peak_mb": ("peak, MB", "{:,.0f}"),
    "error_pct": ("error, %", "{:.2f}"),
    "ratio": ("time / ours", "{:.2f}"),
    "net_seconds": ("net of import, s", "{:.2f}"),
    "net_mb": ("net of import, MB", "{:,.0f}"),
    "differs_pct": ("labels that differ, %", "{:.3f}"),
    "answer": ("sha256 of the labels", "{:.16}"),
    "status": ("status", "{}"),
}


def record(case, result, where, when):
    """Return a case in the form that ``results.json`` keeps."""
    targets = [
        {
            "what": target.what,
            "measured": target.measured,
            "target": target.wanted,
            "verdict": target.verdict,
        }
        for target in result.targets
    ]
    about = " ".join(CASES[case].__doc__.split())
    return {"about": about, "rows": result.rows, "targets": targets, "where": where, "when": when}


def read(folder):
    path = Path(folder) / "results.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(folder, records, quick=False):
    """Write everything anew from the records of all cases.

    Parameters
    ----------
    folder : path-like
        Made if it is not there.
    records : dict
        Case → what `record` returns.
    quick : bool
        Whether the page should say that sizes are small.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    records = {case: records[case] for case in CASES if case in records}
    write_text(folder / "results.json", json.dumps(records, indent=1) + "\n")
    for case, kept in records.items():
        write_text(folder / f"{case}.csv", csv_text(kept["rows"]))
    write_text(folder / "README.md", page(records, quick))


def page(records, quick=False):
    """Return the Markdown page."""
    newest = max(records.values(), key=lambda kept: kept["when"])
    command, above = ("make bench-quick", "../..") if quick else ("make bench", "..")
    lines = [
        "# Benchmark results",
        "",
        f"Written by `{command}`; [what is measured and how]({above}/README.md). Every",
        "measurement is a fresh process, timed from its start to its exit, import and loading",
        "included; peak memory is the largest resident size, 1 MB = 10⁶ bytes; error is that",
        "of the unlabelled rows.",
        "",
    ]
    if quick:
        lines += ["Sizes are small; the targets are those of the full sizes.", ""]
    lines += [f"Measured on {newest['when']}: {_where(newest)}.", "", "## Targets", ""]
    checks = [
        [case, check["what"], check["measured"], " / ".join(filter(None, _check(check)))]
        for case, kept in records.items()
        for check in kept["targets"]
    ]
    lines += [markdown_table(["case", "what", "measured", "target / met"], checks), ""]
    for case, kept in records.items():
        lines += [f"## {case}", "", kept["about"], ""]
        if (kept["when"], kept["where"]) != (newest["when"], newest["where"]):
            lines += [f"Measured on {kept['when']}: {_where(kept)}.", ""]
        lines += [rows_table(kept["rows"]), ""]
        if case == "growth":
            lines += ["![Time and memory against the number of rows](growth.png)", ""]
    return "\n".join(lines)


def summary(records):
    """Return every target, its value and the verdict as aligned text."""
    table = [["case", "what", "measured", "target", ""]]
    for case, kept in records.items():
        table += [
            [case, check["what"], check["measured"], *_check(check)] for check in kept["targets"]
        ]
    widths = [max(map(len, column)) for column in zip(*table)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in table
    )


def rows_table(rows):
    keys = columns(rows)
    cells = [[_cell(row.get(key), COLUMNS[key][1]) for key in keys] for row in rows]
    return markdown_table([COLUMNS[key][0] for key in keys], cells)


def markdown_table(heading, cells):
    lines = [heading, ["---"] * len(heading), *cells]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines
    )


def csv_text(rows):
    text = io.StringIO()
    writer = csv.DictWriter(text, columns(rows), extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        rounded = {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}
        writer.writerow(rounded)
    return text.getvalue()


def columns(rows):
    """Name the columns that hold something in at least one row."""
    return [key for key in COLUMNS if any(row.get(key) is not None for row in rows)]


@contextmanager
def atomic(path):
    """Yield a name beside `path` to write to; it takes the name once all is written."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.part")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path, text):
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _check(check):
    return check["target"], check["verdict"]


def _cell(value, form):
    return "" if value is None else form.format(value)


def _where(kept):
    where = kept["where"]
    machine = [where["processor"], f"{where['cores']} cores", where["memory"], where["system"]]
    versions = ", ".join(f"{k} {v}" for k, v in where["versions"].items())
    return "; ".join([f"commit {where.get('commit', 'unknown')}", ", ".join(machine), versions])
