"""One page for somebody who has to decide: how good, where not, what next; and a map of all rows.

The page needs nothing but itself. Without scripts all is there but the moving map, in whose place
stands a picture.
"""

import base64
import os
import platform
from collections.abc import Iterable
from importlib import metadata
from itertools import islice
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

import manifoldknn
from manifoldknn import find_label_errors, suggest
from manifoldknn.base.atomic import replaced_file
from manifoldknn.base.heap import return_freed_memory
from manifoldknn.base.parameters import PARAMETERS
from manifoldknn.base.render import COLORS, SHAPES, rendered
from manifoldknn.insight.inspection import GraphHealth
from manifoldknn.insight.layout import framed_places
from manifoldknn.reporting.dots import (
    MOST_DOTS,
    brief,
    drawn_rows,
    numbered,
    packed_dots,
    shown_cells,
    voters_are_told,
)
from manifoldknn.reporting.raster import draw_points, png
from manifoldknn.reporting.summary import known, summary_text
from manifoldknn.reporting.trust import found_words
from manifoldknn.tables.column_uses import grouped
from manifoldknn.tables.session import Session

_GRAY = "#8a8f96"  # of rows without an answer
_SIDE, _MARGIN = 900, 16  # of the picture
_SMALL, _LARGE = 3.0, 8.0
_MOST_LISTED = 200
_MOST_IN_LEGEND = 40
_BARS = 20
_NEIGHBORS_SHOWN = 3
_LEVEL = (0.025, 0.975)
_NOT_JUDGED = {"labels_judged": 0}


def write_report(
    path: str | os.PathLike[str],
    session: Session,
    health: GraphHealth,
    data: dict[str, Any],
    confidence: NDArray[np.float64],
    off_manifold: NDArray[np.float64],
    *,
    n: int,
    name: str,
    label: str,
    id: str = "none",
    force: bool,
) -> None:
    """Write the report of a run with `n` suggestions, `data` coming from `summary_data`.

    ``columns`` and ``warnings`` may be missing. `name`, `label` and `id` are what the page calls
    the table, its labels and the column that names rows.
    """
    clf, unsure = session.classifier, data["trust"][0]["from"]
    found = suggest(clf, n, index=session.ids)
    errors = find_label_errors(clf, index=session.ids) if data["validation"] else None
    return_freed_memory()
    suspects = np.empty(0, dtype=np.intp) if errors is None else errors.rows[:_MOST_LISTED]
    far = np.argsort(-off_manifold, kind="stable")[:5]
    rows = drawn_rows(clf, np.concatenate([found.rows, suspects, far]))
    at = framed_places(clf.fitted_.lists.indices, clf.n_jobs)[rows]
    return_freed_memory()
    cells = shown_cells(session, rows)
    dots = packed_dots(session, rows, at, confidence, off_manifold > 1, unsure)
    dots |= {"columns": list(cells), "cells": list(cells.values())}
    dot_of = {int(row): dot for dot, row in enumerate(rows)}
    unlabeled = session.labels == ""
    classes = _classes(session, data, confidence)
    page = rendered(
        "manifoldknn.reporting",
        "page.html",
        name=name,
        label=label,
        data=data,
        columns=grouped(session.columns),
        summary=summary_text(data | {"advice": [], "notes": []}),
        marks=[_mark(i) for i in range(len(clf.classes_))],
        most_in_legend=_MOST_IN_LEGEND,
        picture=_picture(at, rows, session),
        n_drawn=len(rows) if len(rows) == MOST_DOTS else 0,
        voters_are_told=voters_are_told(clf),
        histogram=np.histogram(confidence[unlabeled], _BARS, (0.0, 1.0))[0].tolist(),
        chance=chance,
        found_words=found_words,
        classes=classes,
        weakest=sorted(filter(_mistakes, classes), key=_mistakes, reverse=True)[:3],
        vaguest=min(
            (c for c in classes if c["mean"] is not None and c["number"] >= 0),
            key=itemgetter("mean"),
            default=None,
        ),
        n_unsure=data["trust"][1]["rows"],
        n_odd=int((off_manifold[unlabeled] > 1).sum()),
        unsure=unsure,
        shown=list(cells),
        suggestions=[
            {"why": why} | _row(session, row, cells, dot_of)
            for row, why in zip(found.rows, found.reasons)
        ],
        suspicious=None if errors is None else _suspicious(errors, session, cells, dot_of),
        n_suspicious=0 if errors is None else len(errors),
        health=health,
        known=known,
        short=brief,
        farthest=[_row(session, i, cells, dot_of) | {"far": off_manifold[i]} for i in far],
        settings=_settings(session, label, id),
        dots=dots | {"shapes": SHAPES, "colors": COLORS, "gray": _GRAY},
    )
    with replaced_file(path, force=force) as file:
        file.write(page.encode("utf-8", "replace"))


def _mark(number: int) -> dict[str, str]:
    """Return colour and shape of a class: ninety pairs before one comes again."""
    return {"color": COLORS[number % len(COLORS)], "shape": SHAPES[number % len(SHAPES)]}


def _picture(at: NDArray[np.float64], rows: NDArray[np.intp], session: Session) -> str:
    """Return the map as a still picture, by class, labelled rows large."""
    clf = session.classifier
    marks = [_mark(i)["color"] for i in range(len(clf.classes_))] + [_GRAY]
    colors = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in marks], dtype=np.uint8)
    of_dots = colors[clf.fitted_.labels.numbers(clf.transduction_)[rows]]
    picture = np.full((_SIDE, _SIDE, 3), 255, dtype=np.uint8)
    pixels = np.round(_MARGIN + at * (_SIDE - 1 - 2 * _MARGIN)).astype(np.intp)
    draw_points(picture, pixels, of_dots, _SMALL if len(rows) < 20_000 else 1.5)
    labeled = np.flatnonzero(clf.fitted_.labels.codes[rows] >= 0)
    if len(labeled) <= 5000:  # more of them would cover everything
        black = np.zeros((len(labeled), 3), dtype=np.uint8)
        draw_points(picture, pixels[labeled], black, _LARGE)
        draw_points(picture, pixels[labeled], of_dots[labeled], _LARGE - 2.5)
    return "data:image/png;base64," + base64.b64encode(png(picture)).decode()


def chance(right: int, answers: int) -> tuple[float, float]:
    """Return between which shares answers may be right, if some were by chance.

    >>> [round(end, 2) for end in chance(9, 10)]
    [0.62, 0.99]
    """
    low, high = beta.ppf(_LEVEL, right + 0.5, answers - right + 0.5)
    return float(low), float(high)


def _classes(
    session: Session, data: dict[str, Any], confidence: NDArray[np.float64]
) -> list[dict[str, Any]]:
    """Return what is known of each class, the one with most answers first."""
    clf, n = session.classifier, len(session.classifier.classes_)
    given, answers = clf.fitted_.labels.codes, clf.fitted_.labels.numbers(clf.transduction_)
    judged = (data["validation"] or {}).get("per_class") or [_NOT_JUDGED] * n
    sizes, told = np.bincount(answers + 1, minlength=n + 1), []  # no answer is -1
    largest = np.argsort(-sizes[1:], kind="stable")[:_MOST_LISTED]
    for code in [*largest.tolist(), *([-1] if sizes[0] else [])]:
        sure = confidence[(answers == code) & (given < 0)]
        told.append({
            "name": "(none)" if code < 0 else brief(clf.classes_[code]),
            "number": code,
            "given": int((given == code).sum()) if code >= 0 else 0,
            "found": int(sizes[code + 1]),
            "groups": [group["per_class"][code] for group in data["trust"]] if code >= 0 else [],
            "mean": float(sure.mean()) if sure.size else None,
            "hidden": judged[code] if code >= 0 else _NOT_JUDGED,
        })  # fmt: skip
    return told


def _mistakes(told: dict[str, Any]) -> float:
    """Return the share of a class's hidden labels that was not found again."""
    judged = told["hidden"]["labels_judged"]
    return 1.0 - told["hidden"]["labels_found"] / judged if judged else 0.0


def _row(
    session: Session, row: int, cells: dict[str, list[str]], dot_of: dict[int, int]
) -> dict[str, Any]:
    """Return name, dot, cells and neighbours of a row."""
    near = session.classifier.fitted_.lists.indices[row, :_NEIGHBORS_SHOWN]
    answers, dot = session.classifier.transduction_, dot_of[int(row)]
    beside = (f"{brief(session.ids[i], 24)} ({brief(answers[i], 24) or 'none'})" for i in near)
    return {
        "id": ("row " if numbered(session) else "") + brief(session.ids[row], 60),
        "dot": dot,
        "cells": [column[dot] for column in cells.values()],
        "near": ", ".join(beside),
    }


def _suspicious(
    errors: Any, session: Session, cells: dict[str, list[str]], dot_of: dict[int, int]
) -> list[dict[str, Any]]:
    """Return the labels that look wrong, most suspicious first."""
    columns: Iterable[Any] = zip(
        errors.rows, errors.given, errors.suggested, errors.suggested_share
    )
    return [
        {"given": brief(given, 60), "better": brief(better, 60), "share": share}
        | _row(session, row, cells, dot_of)
        for row, given, better, share in islice(columns, _MOST_LISTED)
    ]


def _settings(session: Session, label: str, id: str) -> dict[str, str]:
    scaled = "scaled to [0, 1]" if session.step.scale else "not scaled"
    wanted = ("numpy", "scipy", "scikit-learn", "faiss-cpu")
    versions = [f"manifoldknn {manifoldknn.__version__}", f"Python {platform.python_version()}"]
    versions += [f"{name} {metadata.version(name)}" for name in wanted]
    return {name: str(getattr(session.classifier, name)) for name in PARAMETERS} | {
        "columns": f"label {label}, id {id}, {scaled}",
        "versions": ", ".join(versions),
    }
