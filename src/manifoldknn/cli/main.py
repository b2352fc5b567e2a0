"""The command ``manifoldknn``: a table with a few labels in, the whole table labelled out."""

from __future__ import annotations

import argparse
import csv
import errno
import io
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from manifoldknn import find_label_errors, inspect, persist
from manifoldknn.base.atomic import replaced_file, together
from manifoldknn.base.heap import return_large_arrays_at_once
from manifoldknn.base.progress import spoken
from manifoldknn.cli.json_text import SCHEMA, fail, json_text
from manifoldknn.cli.options import build_parser
from manifoldknn.cli.prediction import model_extra, predict_file
from manifoldknn.cli.screen import named, say, warn
from manifoldknn.device.memory import check_address_space
from manifoldknn.exceptions import UnreachedError
from manifoldknn.insight.inspection import GraphHealth
from manifoldknn.reporting.findings import findings
from manifoldknn.reporting.summary import (
    as_table,
    columns_data,
    columns_text,
    health_text,
    summary_data,
    summary_text,
)
from manifoldknn.tables.inputs import opened
from manifoldknn.tables.outputs import (
    check_format,
    check_targets,
    fills_stdout,
    new_names,
    spreadsheet_safe,
    table_target,
    write_table,
)
from manifoldknn.tables.session import Session, as_options, learn, noted, stage
from manifoldknn.tables.table import Table

_UNREAD = 141  # as a shell says that a reader has gone


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the options and `run`."""
    return run(build_parser().parse_args(arguments))


def run(options: argparse.Namespace) -> int:
    """Run the command and return its exit code.

    0 done, 1 something unforeseen, 2 input or options to correct, 130 interrupted.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):  # closed, or somebody's own
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    return_large_arrays_at_once()
    try:
        check_address_space()
        silent = options.quiet or (options.json and fills_stdout(options))
        with spoken(0 if silent else 1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what matters is told in the notes
            code = _COMMANDS[options.command](options) or 0
        if sys.stdout is not None and not sys.stdout.closed:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _UNREAD if getattr(options, "out", None) == "-" else 0  # files are there
    except (Exception, KeyboardInterrupt) as error:
        message, code = _said(error)
        if code == 1 and os.environ.get("MANIFOLDKNN_DEBUG"):
            raise
        fail(message, code, options.json, fills_stdout(options))
    return code


def _said(error: BaseException) -> tuple[str, int]:
    """Return what is said of an error, and the exit code."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted: nothing was written that is not whole", 130
    if isinstance(error, UnreachedError):
        return as_options(str(error)), 2
    if isinstance(error, FileExistsError):
        return f"{error}: choose another name, or replace it with --force", 2
    if isinstance(error, OSError):
        full = error.errno == errno.ENOSPC
        # Files are named where they are written, so what has no name is our output.
        name = error.filename or ("standard output" if full else "")
        place = f" ({name})" if name else ""
        remedy = (
            "free some space, or write elsewhere" if full else "check the place, or choose another"
        )
        return f"{error.strerror or error}{place}: {remedy}", 2
    bare = isinstance(error, MemoryError) and str(error) in ("", "std::bad_alloc")
    if bare or "can't start new thread" in str(error):
        error = MemoryError("Out of memory: use fewer rows, or raise the limits (ulimit -v, -u).")
    if isinstance(error, ValueError | ImportError | MemoryError):
        said = str(error) or type(error).__name__
        return (as_options(said) if "device=" in said else said), 2
    kind = type(error).__name__
    return f"unforeseen: {kind}: {error}; MANIFOLDKNN_DEBUG=1 shows where", 1


def _in_options(health: GraphHealth) -> GraphHealth:
    """Let advice speak of options of the command instead of parameters in Python."""
    return replace(health, advice=[as_options(line) for line in health.advice])


def _learned(table: Table, options: argparse.Namespace) -> Session:
    """Learn, and warn where everybody sees it."""
    session = learn(table, options)
    warn(session.warnings, options)
    return session


def _classify(options: argparse.Namespace) -> None:
    if options.scheduler:
        from manifoldknn.cli.cluster import classify_on_cluster

        _say(*classify_on_cluster(options), options)
        return
    if options.checkpoint or options.resume:
        raise ValueError("--checkpoint and --resume belong to --scheduler ADDRESS.")
    target = table_target(options)
    check_targets(options, {"--out": target, "--report": options.report, "--save": options.save})
    with opened(options) as table, together():
        check_format(target, options, table)
        names = new_names(table, options.prefix)
        session = _learned(table, options)
        clf = session.classifier
        found = findings(session, validate=options.validate)
        health, predicted = _in_options(found.health), clf.transduction_
        texts = spreadsheet_safe(predicted.tolist(), options, session.notes)
        column = table.like(options.label, texts)
        judged = found.confidence, found.margin, found.off_manifold, clf.unreached_
        added = dict(zip(names, (column, *judged)))
        if options.save:
            with stage(session.seconds, "saving"):
                extra = model_extra(session.step, table, options.label)
                persist.save(clf, options.save, extra=extra, force=options.force)
        data = summary_data(
            session, health, found.hidden, predicted, found.confidence, validated=options.validate
        )
        data["out"], data["report"], data["model"] = target, options.report, options.save
        data |= columns_data(table.manner, session.columns, session.warnings)
        if options.report:
            with stage(session.seconds, "report"):
                from manifoldknn.reporting.page import write_report

                write_report(
                    options.report, session, health, data, found.confidence, found.off_manifold,
                    n=options.n, label=options.label, force=options.force,
                    name="standard input" if options.file == "-" else Path(options.file).name,
                    id="none" if options.id is None else options.id or "the first column",
                )  # fmt: skip
        with stage(session.seconds, "writing"):
            write_table(table, target, added, options)
        data["seconds"] = {name: round(s, 2) for name, s in session.seconds.items()}
    # The table of columns says already what is left out, and warns.
    told = [note for note in data["notes"] if not note.startswith("left out ")]
    said = {"notes": [note for note in told if note not in data["warnings"]]}
    columns = columns_text(table.manner, session.columns, session.warnings)
    text = f"{columns}\n\n{summary_text(data | said)}\n\nwritten     {named(target)}"
    text += "".join(f", {named(name)}" for name in (options.report, options.save) if name)
    _say(data, text, options, table_on_stdout=target == "-")


def _predict(options: argparse.Namespace) -> None:
    data, text, on_stdout = predict_file(options)
    _say(data, text, options, table_on_stdout=on_stdout)


def _suggest(options: argparse.Namespace) -> None:
    check_targets(options, {"--out": options.out})
    with opened(options) as table:
        session = _learned(table, options)
        found = session.suggested(options.n)
    _list(found.to_dict(), ["id", "uncertainty", "reason"], session, options)


def _check(options: argparse.Namespace) -> None:
    check_targets(options, {"--out": options.out})
    with opened(options) as table:
        session = _learned(table, options)
        with stage(session.seconds, "validation"), noted(session.notes):
            found = find_label_errors(session.classifier, index=session.ids)
    table_of = {name: column[: options.n] for name, column in found.to_dict().items()}
    shown = ["id", "given", "suggested", "given_share", "suggested_share"]
    session.notes.append(f"{len(found)} of {found.n_judged} labels are contradicted")
    if found.n_judged < found.n_labeled:
        n_left = found.n_labeled - found.n_judged
        session.notes.append(f"{n_left} label(s) cannot be judged: alone in their class or cut off")
    _list(table_of, shown, session, options)


def _list(
    columns: dict[str, list[Any]], shown: list[str], session: Session, options: argparse.Namespace
) -> None:
    """Show or write a list of rows."""
    rows = [[_cell(columns[name][i]) for name in shown] for i in range(len(columns["id"]))]
    if options.out and options.out != "-":
        with replaced_file(options.out, force=options.force) as file:
            text = io.StringIO(newline="")
            cells = [cell for row in rows for cell in row]
            safe = iter(spreadsheet_safe(cells, options, session.notes))
            csv.writer(text).writerows([shown, *([next(safe) for _ in shown] for _ in rows)])
            file.write(text.getvalue().encode())
    listed = [dict(zip(columns, values)) for values in zip(*columns.values())]
    data = {
        "rows": listed,
        "notes": session.notes,
        "warnings": session.warnings,
        "seconds": session.seconds,
    }
    text_lines = as_table(shown, rows) if rows else "none"
    notes = "".join(f"\nnote        {note}" for note in session.notes)
    if options.out and options.out != "-":
        text_lines = f"written     {named(options.out)}"
    _say(data, text_lines + "\n" + notes, options)


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _inspect(options: argparse.Namespace) -> None:
    with opened(options) as table:
        session = _learned(table, options)
        with stage(session.seconds, "graph health"):
            health = _in_options(inspect(session.classifier, index=session.ids))
    notes = "".join(f"\nnote        {note}" for note in session.notes)
    data = asdict(health) | {"notes": session.notes, "warnings": session.warnings}
    _say(data, health_text(health) + notes, options)


def _label(options: argparse.Namespace) -> None:
    from manifoldknn.labelling.serve import serve

    serve(options)


def _reproduce(options: argparse.Namespace) -> int:
    from manifoldknn.reproduction.reproduce import reproduce

    return reproduce(options)


def _say(
    data: dict[str, Any], text: str, options: argparse.Namespace, *, table_on_stdout: bool = False
) -> None:
    out, data = sys.stderr if table_on_stdout else sys.stdout, {"schema": SCHEMA} | data
    said = json_text(data, encoding=getattr(out, "encoding", None)) if options.json else text
    say(said, out)


_COMMANDS: dict[str, Callable[[argparse.Namespace], int | None]] = {
    "classify": _classify,
    "predict": _predict,
    "suggest": _suggest,
    "label": _label,
    "check": _check,
    "inspect": _inspect,
    "reproduce": _reproduce,
}

if __name__ == "__main__":
    raise SystemExit(main())
