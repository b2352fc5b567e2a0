"""Numbers and tables of the documentation, read from the files that hold the measurements.

``measured.toml`` says where each stands. Pages take a number by ``:measured:`name``` and a table by
``.. measured:: name``, so that none is ever typed by hand.

    python docs/measured.py          after measuring: writes the tables of README.md anew, and the
                                     hashes of the files, so that no number in them changes unseen
"""

from __future__ import annotations

import csv
import hashlib
import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FOLDERS = (ROOT / "benchmarks" / "results", ROOT / "docs" / "reproduction" / "csv")
README = ROOT / "README.md"
HASHES = Path(__file__).with_suffix(".sha256")
MISSING = "–"  # in a cell: not measured


@cache
def told() -> dict[str, Any]:
    """Return what ``measured.toml`` says."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def path_of(name: str) -> Path:
    """Return where a file of results is."""
    return next(folder / name for folder in FOLDERS if (folder / name).exists())


@cache
def records(source: str) -> list[dict[str, Any]]:
    """Return the rows of a CSV file, or of ``file.json#case``.

    JSON without a case has a row for each; Markdown has one row, by its names.
    """
    name, _, case = source.partition("#")
    text = path_of(name).read_text(encoding="utf-8")
    if case:
        return json.loads(text)[case]["rows"]
    if name.endswith(".json"):
        return [{"case": key, **row} for key, row in json.loads(text).items()]
    if name.endswith(".md"):  # a table of names and numbers
        cells = (line.strip("| ").split(" | ") for line in text.splitlines() if line[:1] == "|")
        return [{pair[0]: pair[1].split()[0] for pair in cells if len(pair) == 2}]
    return list(csv.DictReader(text.splitlines()))


@cache
def commit(source: str) -> str:
    """Return at which commit a file was measured, as far as that is known."""
    name, _, case = source.partition("#")
    if (FOLDERS[1] / name).exists():
        return told()["reproduction_commit"]
    commits = sorted({row["commit"] for row in records(source) if "commit" in row})
    if commits:
        return ", ".join(commits)
    file = FOLDERS[0] / (name if case else "results.json")
    about = json.loads(file.read_text(encoding="utf-8")).get(case or name.removesuffix(".csv"), {})
    where = about.get("where") or about.get("machine") or {}
    return str(where["commit"]) if "commit" in where else "unknown"


def _number(text: Any) -> float:
    return float(str(text).replace(",", ""))


def _agrees(row: dict[str, Any], where: dict[str, Any]) -> bool:
    """Tell whether a row has what is wanted, or one of the things that are."""
    wanted = {key: one if isinstance(one, list) else [one] for key, one in where.items()}
    return all(str(row.get(key, "")) in map(str, those) for key, those in wanted.items())


def mean(source: str, where: dict[str, Any], column: str) -> float:
    """Return the mean of a column over the rows that agree with `where`."""
    rows = [
        row for row in records(source) if _agrees(row, where) and row.get(column) not in ("", None)
    ]
    if not rows:
        raise LookupError(f"{source} has no {column} where {where}")
    return sum(_number(row[column]) for row in rows) / len(rows)


def value(name: str) -> str:
    """Return a number of the documentation, formatted."""
    spec = told()["values"][name]
    number = mean(spec["file"], spec.get("where", {}), spec["column"]) * spec.get("scale", 1)
    if "over" in spec:
        over = spec["over"]
        number /= mean(over.get("file", spec["file"]), over.get("where", {}), over["column"])
    return format(number, spec.get("form", ".1f"))


def table(name: str) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of a table; the best number of a column is in ``**``."""
    spec = told()["tables"][name]
    if "lines" in spec:
        return _pivot(spec)
    rows = [row for row in records(spec["file"]) if _agrees(row, spec.get("where", {}))]
    columns = spec["columns"]
    cells = [[_cell(row.get(c[0]), *c[2:]) for c in columns] for row in rows]
    return [c[1] for c in columns], cells


def _cell(content: Any, form: str = "", scale: float = 1.0) -> str:
    if content in ("", None):
        return MISSING
    return format(_number(content) * scale, form) if form else str(content)


def _pivot(spec: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return one line for each of `lines`, one column for each of `columns`."""
    form, scale = spec.get("form", ".1f"), spec.get("scale", 1)
    body = []
    for line in spec["lines"]:
        numbers: list[float | None] = []
        for column in spec["columns"]:
            where = {spec["across"]: column, **spec.get("where", {}), **line.get("where", {})}
            try:
                if "published" in line:
                    numbers.append(_published(column, line["published"]))
                    continue
                source = line.get("file", spec["file"])
                numbers.append(scale * mean(source, where, line.get("column", spec.get("column"))))
            except LookupError:
                numbers.append(None)
        body.append([line["title"], numbers])
    best: list[str | None] = [None] * len(spec["columns"])
    if spec.get("best"):
        for i in range(len(best)):
            found = [line[1][i] for line in body if line[1][i] is not None]
            best[i] = format(min(found), form) if found else None
    rows = []
    for title, numbers in body:
        texts = [MISSING if number is None else format(number, form) for number in numbers]
        rows.append([title, *(f"**{t}**" if t == b else t for t, b in zip(texts, best))])
    names = spec.get("names", spec["columns"])
    return [spec.get("corner", ""), *map(str, names)], rows


def _published(data: str, method: str) -> float:
    path = ROOT / "src" / "manifoldknn" / "reproduction" / "published.toml"
    errors = tomllib.loads(path.read_text(encoding="utf-8"))["errors"]
    return errors["sets"][data][errors["methods"].index(method)][0]


def sources(name: str) -> list[str]:
    """Return the files of a table."""
    spec = told()["tables"][name]
    files = [line["file"] for line in spec.get("lines", []) if "file" in line]
    return list(dict.fromkeys([*([spec["file"]] if "file" in spec else []), *files]))


def origin(name: str) -> str:
    """Return in words where a table comes from."""
    parts = []
    for source in sources(name):
        path = path_of(source.partition("#")[0]).relative_to(ROOT)
        parts.append(f"{path} ({_at(source)})")
    return "; ".join(parts)


def _at(source: str) -> str:
    at = commit(source)
    return "commit not recorded" if at == "unknown" else f"commit {at}"


def markdown(name: str) -> str:
    """Return a table as Markdown."""
    head, rows = table(name)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def hashes() -> str:
    """Return the hashes of all files that are quoted, as ``sha256sum`` writes them."""
    quoted = [spec["file"] for spec in told()["values"].values()]
    quoted += [source for name in told()["tables"] for source in sources(name)]
    paths = sorted({path_of(source.partition("#")[0]) for source in quoted})
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(ROOT).as_posix()}\n"
        for path in paths
    ]
    return "".join(lines)


def readme() -> str:
    """Return README.md with its tables made anew."""
    text = README.read_text(encoding="utf-8")
    for name in told()["tables"]:
        begin, end = f"<!-- measured {name} -->\n", "<!-- end -->"
        if begin in text:
            before, _, rest = text.partition(begin)
            text = before + begin + markdown(name) + "\n" + end + rest.partition(end)[2]
    return text


if __name__ == "__main__":
    README.write_text(readme(), encoding="utf-8")
    HASHES.write_text(hashes(), encoding="utf-8")
