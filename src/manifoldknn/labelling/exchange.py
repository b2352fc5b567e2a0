"""Labels to and from other programs: CSV, Parquet, JSON lines, and the JSON of Label Studio."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from manifoldknn.labelling.board import Board, Mark, plain_name
from manifoldknn.labelling.learner import Answers

FORMATS = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "jsonl": "application/jsonl",
}
COLUMNS = ("row", "id", "label", "source", "labeller", "time", "confidence", "mark", "holds")
_KINDS = ("label", "skip", "unsure")


def records(ids: Sequence[str], board: Board, answers: Answers | None) -> Iterator[dict[str, Any]]:
    """Yield a record for everything that somebody said of a row; of other rows what the model says.

    Rows count from 1. Source is "person", "file" or "model"; `holds` tells which of several labels
    counts.
    """
    for row, name in enumerate(ids):
        base = dict.fromkeys(COLUMNS) | {"row": row + 1, "id": name}
        marks = [*board.marks.get(row, {}).values()]
        if row in board.settled:
            marks = [mark for mark in marks if mark.who != board.settled[row].who]
            marks.append(board.settled[row])
        for mark in marks:
            yield base | {
                "label": mark.label or None,
                "source": "person",
                "labeller": mark.who,
                "time": mark.at,
                "mark": mark.kind,
                "holds": mark.label == board.labels.get(row),
            }
        if any(mark.kind == "label" for mark in marks):
            continue
        if row in board.given:
            yield base | {"label": board.given[row], "source": "file", "holds": True}
        elif answers is not None:
            code = int(answers.codes[row])
            if code >= 0:
                share = round(float(answers.shares[row, code]), 4)
                yield base | {
                    "label": answers.classes[code], "source": "model", "confidence": share,
                }  # fmt: skip
        elif not marks:
            yield base


def written(found: Iterable[dict[str, Any]], form: str) -> bytes:
    """Return records in one of the `FORMATS`."""
    listed = list(found)
    if form == "jsonl":
        return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in listed).encode()
    if form == "csv":
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, COLUMNS)
        writer.writeheader()
        writer.writerows(listed)
        return text.getvalue().encode()
    if form != "parquet":
        raise ValueError(f"there is no format {form!r}: choose one of {', '.join(FORMATS)}")
    import pyarrow as pa
    from pyarrow import parquet

    kinds = {"row": pa.int64(), "confidence": pa.float64(), "holds": pa.bool_()}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in COLUMNS])
    buffer = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(listed, schema=schema), buffer)
    return buffer.getvalue()


def imported(
    content: bytes, ids: Sequence[str], who: str
) -> tuple[list[tuple[int, Mark]], list[str]]:
    """Return what people said of rows in a file of another program, and the items that were lost.

    The format is found out. Answers of a model are left out. Rows are found by their id, or by
    their number if they have none; `who` is said to have made what has no name.
    """
    place = {name: row for row, name in enumerate(ids)}
    marks, lost = [], []
    try:
        items = _items(content)
    except (ValueError, csv.Error, OSError, AttributeError, TypeError):
        items = []
    if not items:
        raise ValueError(
            "nothing to import was found: bring CSV, Parquet or JSON lines as exported, or the "
            "JSON of Label Studio"
        )
    for item in items:
        name, number = (_text(item.get(key)) for key in ("id", "row"))
        row = place.get(name, -1)
        if not name and number.isdecimal() and len(number) < 12:
            row = int(number) - 1
        label = _text(item.get("label")).strip()
        kind = str(item.get("mark") or (label and "label"))
        if not kind or (item.get("source") or "person") != "person":  # nobody said anything
            continue
        said_by, plain = plain_name(str(item.get("labeller") or who)), plain_name(label)
        sound = said_by and kind in _KINDS and (kind == "label") == bool(label) == bool(plain)
        if sound and 0 <= row < len(ids):
            marks.append((row, Mark(kind, plain, said_by, _text(item.get("time")))))
        else:
            lost.append(name or f"row {number}")
    return marks, lost


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _items(content: bytes) -> list[dict[str, Any]]:
    if content.startswith(b"PAR1"):
        from pyarrow import parquet

        return list(parquet.read_table(io.BytesIO(content)).to_pylist())
    text = content.decode("utf-8-sig")
    start = text.lstrip()[:1]
    if start == "[":
        return [item for task in json.loads(text) for item in _of_task(task)]
    if start == "{":
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    return list(csv.DictReader(io.StringIO(text, newline="")))


def _of_task(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what the annotations of a task of Label Studio say: their first choice."""
    data = task.get("data") or {}
    row = data.get("row") or task.get("inner_id")
    for annotation in task.get("annotations") or ():
        by = annotation.get("completed_by")
        by = (by.get("email") or by.get("id")) if isinstance(by, dict) else by
        choices = [
            choice
            for result in annotation.get("result") or ()
            for choice in (result.get("value") or {}).get("choices") or ()
        ]
        skipped = annotation.get("was_cancelled") or not choices
        yield {
            "id": data.get("id"),
            "row": row,
            "label": None if skipped else choices[0],
            "mark": "skip" if skipped else "label",
            "labeller": by,
            "time": annotation.get("created_at"),
        }
