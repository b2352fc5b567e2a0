"""The command ``manifoldknn``: a table with a few labels in, the whole table labelled out."""

from __future__ import annotations

import argparse
import csv
import ctypes
import errno
import io
import json
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn import find_label_errors, inspect, persist, suggest
from manifoldknn.atomic import replaced_file
from manifoldknn.exceptions import UnreachedError
from manifoldknn.features import FeatureStep
from manifoldknn.hidden import hidden_votes
from manifoldknn.options import build_parser
from manifoldknn.progress import spoken
from manifoldknn.session import Session, learn, open_input, stage
from manifoldknn.summary import as_table, health_text, summary_data, summary_text
from manifoldknn.tables import Table, TableError

__all__ = ["main"]

_MODEL = "manifoldknn table"
_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of <malloc.h>
NEW_COLUMNS = ("predicted", "confidence", "margin", "off_manifold", "unreached")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Of the command line, without the name of the program.

    Returns
    -------
    int
        0 done, 1 something unforeseen, 2 input or options to correct, 130 interrupted.
    """
    options = build_parser().parse_args(arguments)
    _give_memory_back()
    try:
        with spoken(0 if options.quiet else 1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what matters is told in the notes
            _COMMANDS[options.command](options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _fail("interrupted: nothing was written that is not whole", 130)
    except BrokenPipeError:  # the reader of our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except UnreachedError as error:
        return _fail(str(error), 2)
    except FileExistsError as error:
        return _fail(f"{error}: choose another name, or replace it with --force", 2)
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        full = error.errno == errno.ENOSPC
        remedy = (
            "free some space, or write elsewhere" if full else "check the place, or choose another"
        )
        return _fail(f"{error.strerror or error}{place}: {remedy}", 2)
    except (ValueError, ImportError, MemoryError) as error:
        return _fail(str(error) or type(error).__name__, 2)
    except Exception as error:
        if os.environ.get("MANIFOLDKNN_DEBUG"):
            raise
        kind = type(error).__name__
        return _fail(f"unforeseen: {kind}: {error}; MANIFOLDKNN_DEBUG=1 shows where", 1)
    return 0


def _give_memory_back() -> None:
    """Let the C library return freed arrays at once: a quarter less at the peak of a big table."""
    with suppress(AttributeError, OSError, TypeError):  # other C libraries have no mallopt
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, 1 << 20)


def _fail(message: str, code: int) -> int:
    print(f"manifoldknn: error: {' '.join(message.split())}", file=sys.stderr)
    return code


@contextmanager
def _opened(options: argparse.Namespace) -> Iterator[Table]:
    """Open the input; standard input is kept in a temporary file."""
    if options.file != "-":
        yield open_input(Path(options.file), options.format, options.delimiter)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "standard input"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield open_input(path, options.format or "csv", options.delimiter)


def _target(options: argparse.Namespace) -> str:
    """Return where the table goes, "-" for standard output."""
    if options.out:
        return str(options.out)
    if options.file == "-":
        return "-"
    path = Path(options.file)
    suffix = ".npz" if path.suffix.lower() == ".npy" else path.suffix
    return str(path.with_name(f"{path.stem}-labelled{suffix}"))


def _check_targets(options: argparse.Namespace, names: Sequence[str | None]) -> None:
    """Say before the work begins that something cannot be written."""
    for name in names:
        if name is None or name == "-":
            continue
        path = Path(name)
        if path.is_dir():
            raise TableError(f"{path} is a folder: name a file in it")
        if not path.parent.is_dir():
            raise TableError(f"there is no folder {path.parent}: make it, or choose another place")
        if path.exists() and not options.force:
            raise FileExistsError(f"{path} exists already")
        if not os.access(path.parent, os.W_OK):
            raise TableError(f"nothing may be written in {path.parent}: choose another place")
        if options.file != "-" and path.exists() and path.samefile(options.file):
            raise TableError(f"{path} is the input itself: choose another name with --out")


def _write_table(
    table: Table, target: str, added: dict[str, NDArray[Any]], options: argparse.Namespace
) -> None:
    if target == "-":
        buffer = io.BytesIO()
        table.write(buffer, added)
        sys.stdout.buffer.write(buffer.getvalue())
        return
    with replaced_file(target, force=options.force) as file:
        table.write(file, added)


def _new_names(table: Table, prefix: str) -> list[str]:
    names = [prefix + name for name in NEW_COLUMNS]
    taken = [name for name in names if name in table.names]
    if taken:
        raise TableError(
            f"the file has a column {taken[0]!r} already: put something before the new names with "
            "--prefix new_"
        )
    return names


def _answers(shares: NDArray[np.float64], codes: NDArray[np.intp]) -> tuple[Any, Any]:
    """Return the share of the answer, and its lead over the next class."""
    confidence = shares[np.arange(len(shares)), np.maximum(codes, 0)]
    top = np.sort(shares, axis=1)
    margin = top[:, -1] - top[:, -2] if shares.shape[1] > 1 else np.ones(len(shares))
    return confidence, margin


def _codes(classes: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.intp]:
    place = {name: i for i, name in enumerate(classes.tolist())}
    return np.array([place.get(label, -1) for label in labels.tolist()], dtype=np.intp)


def _classify(options: argparse.Namespace) -> None:
    target = _target(options)
    _check_targets(options, [target, options.report, options.save])
    with _opened(options) as table:
        _check_format(target, options)
        names = _new_names(table, options.prefix)
        session = learn(table, options)
        clf = session.classifier
        with stage(session.seconds, "off manifold"):
            off = -clf.score_samples() / clf._limit()
        votes = None
        if options.validate:
            with stage(session.seconds, "validation"):
                votes = hidden_votes(clf)
        with stage(session.seconds, "graph health"):
            health = inspect(clf, index=session.ids)
        predicted = clf.transduction_
        confidence, margin = _answers(clf.label_distributions_, _codes(clf.classes_, predicted))
        column = table.like(options.label, predicted.tolist())
        added = dict(zip(names, (column, confidence, margin, off, clf.unreached_)))
        if options.save:
            with stage(session.seconds, "saving"):
                extra = {"kind": _MODEL, "label": options.label, **session.step.to_plain()}
                persist.save(clf, options.save, extra=extra, force=options.force)
        data = summary_data(session, health, votes, predicted, confidence)
        data["out"], data["report"], data["model"] = target, options.report, options.save
        if options.report:
            with stage(session.seconds, "report"):
                from manifoldknn.report import write_report

                write_report(options, session, health, data, confidence, off)
        with stage(session.seconds, "writing"):
            _write_table(table, target, added, options)
        data["seconds"] = {name: round(s, 2) for name, s in session.seconds.items()}
    text = summary_text(data) + f"\n\nwritten     {target}"
    text += "".join(f", {name}" for name in (options.report, options.save) if name)
    _say(data, text, options, table_on_stdout=target == "-")


def _check_format(target: str, options: argparse.Namespace) -> None:
    """Refuse an output whose suffix promises another format than the input has."""
    from manifoldknn.tables import format_of

    source = options.format or ("csv" if options.file == "-" else format_of(options.file))
    wanted = None if target == "-" else format_of(target)
    source = {"npy": "npz"}.get(str(source), source)
    if wanted is not None and wanted != source:
        raise TableError(
            f"--out {target} is {wanted} and the input is {source}: the format stays, so let the "
            f"name end in .{source}"
        )


def _predict(options: argparse.Namespace) -> None:
    target = _target(options)
    _check_targets(options, [target])
    seconds: dict[str, float] = {}
    with stage(seconds, "loading"):
        clf, extra = persist.load_with_extra(options.model)
        if not isinstance(extra, dict) or extra.get("kind") != _MODEL:
            raise TableError(f"{options.model} was not saved by manifoldknn classify --save")
        step = FeatureStep.from_plain(extra)
        if len(step.features) != clf.n_features_in_:
            raise TableError(f"{options.model} is no model that can be used: save it again")
    with _opened(options) as table:
        _check_format(target, options)
        names = _new_names(table, options.prefix)
        with stage(seconds, "features"):
            X, notes = step.transform(table)
        known = {plan.name for plan in step.plans} | {extra.get("label")}
        unknown = [name for name in table.names if name not in known]
        if unknown:
            notes.append(f"not used by the model: {', '.join(map(repr, unknown[:10]))}")
        with stage(seconds, "classifying"):
            rows = clf._new_rows(X)
            shares, codes, unreached = clf._answer(clf._reconstructed(rows), rows)
            off = -clf.score_samples(X) / clf._limit()
        confidence, margin = _answers(shares, codes)
        predicted = clf._labels.decode(codes)
        column = np.empty(len(predicted), dtype=object)
        column[:] = ["" if label is None else str(label) for label in predicted]
        added = dict(zip(names, (column, confidence, margin, off, unreached)))
        with stage(seconds, "writing"):
            _write_table(table, target, added, options)
    found, counts = np.unique(column.astype(str), return_counts=True)
    data = {
        "rows": len(column),
        "predicted_per_class": dict(zip(found.tolist(), counts.tolist())),
        "mean_confidence": round(float(confidence.mean()), 6),
        "unreached": int(unreached.sum()),
        "notes": notes,
        "seconds": {name: round(s, 2) for name, s in seconds.items()},
        "out": target,
    }
    rows_of = [[name or "(none)", f"{count:,}"] for name, count in zip(found, counts)]
    text = as_table(["class", "predicted"], rows_of)
    text += f"\n\nconfidence  {confidence.mean():.2f} on average\nwritten     {target}"
    text += "".join(f"\nnote        {note}" for note in notes)
    _say(data, text, options, table_on_stdout=target == "-")


def _suggest(options: argparse.Namespace) -> None:
    _check_targets(options, [options.out])
    with _opened(options) as table:
        session = learn(table, options)
        found = suggest(session.classifier, options.n, index=session.ids)
    _list(found.to_dict(), ["id", "uncertainty", "reason"], session, options)


def _check(options: argparse.Namespace) -> None:
    _check_targets(options, [options.out])
    with _opened(options) as table:
        session = learn(table, options)
        with stage(session.seconds, "validation"):
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
            csv.writer(text).writerows([shown, *rows])
            file.write(text.getvalue().encode())
    listed = [dict(zip(columns, values)) for values in zip(*columns.values())]
    data = {"rows": listed, "notes": session.notes, "seconds": session.seconds}
    text_lines = as_table(shown, rows) if rows else "none"
    notes = "".join(f"\nnote        {note}" for note in session.notes)
    if options.out and options.out != "-":
        text_lines = f"written     {options.out}"
    _say(data, text_lines + "\n" + notes, options)


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _inspect(options: argparse.Namespace) -> None:
    with _opened(options) as table:
        session = learn(table, options)
        with stage(session.seconds, "graph health"):
            health = inspect(session.classifier, index=session.ids)
    notes = "".join(f"\nnote        {note}" for note in session.notes)
    data = asdict(health) | {"notes": session.notes}
    _say(data, health_text(health) + notes, options)


def _say(
    data: dict[str, Any], text: str, options: argparse.Namespace, *, table_on_stdout: bool = False
) -> None:
    out = sys.stderr if table_on_stdout else sys.stdout
    print(json.dumps(data, ensure_ascii=False, default=str) if options.json else text, file=out)


_COMMANDS = {
    "classify": _classify,
    "predict": _predict,
    "suggest": _suggest,
    "check": _check,
    "inspect": _inspect,
}

if __name__ == "__main__":
    raise SystemExit(main())
