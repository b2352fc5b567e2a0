"""What the command line says about a run: as data, and as a short text."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.base.render import rendered
from manifoldknn.insight.inspection import GraphHealth
from manifoldknn.model.cautions import confidence_words
from manifoldknn.reporting.trust import SURE, found_words, trust_groups
from manifoldknn.tables.column_uses import grouped, manner_text
from manifoldknn.tables.profile import Use
from manifoldknn.tables.session import Session
from manifoldknn.vote.hidden import HiddenLabels

_MOST_CLASSES = 20  # that are listed


def summary_data(
    session: Session,
    health: GraphHealth,
    hidden: HiddenLabels | None,
    predicted: NDArray[Any],
    confidence: NDArray[np.float64],
    *,
    validated: bool,
) -> dict[str, Any]:
    """Return the summary of a run as data that JSON can hold.

    `hidden` is what hidden labels were called, if any could be hidden; `validated` whether the
    accuracy is wanted.
    """
    clf = session.classifier
    names, counts = np.unique(predicted.astype(str), return_counts=True)
    unlabeled = session.labels == ""
    sure, answers = confidence[unlabeled], clf.fitted_.labels.numbers(predicted)[unlabeled]
    return {
        "rows": health.n_rows,
        "labelled": health.n_labeled,
        "labels_per_class": {str(k): v for k, v in health.labels_per_class.items()},
        "predicted_per_class": dict(zip(names.tolist(), counts.tolist())),
        "mean_confidence": _number(sure.mean() if sure.size else math.nan),
        "abstained": int((answers < 0).sum()),
        "trust": trust_groups(clf.classes_, answers, sure, hidden, clf.abstain_below or SURE),
        "calibrated": clf.calibrated_,
        "confidence_is": confidence_words(clf),
        "unreached": int(clf.unreached_.sum()),
        "features": len(session.step.features),
        "intrinsic_dimension": _number(health.intrinsic),
        "graph": {
            "kind": clf.graph,
            "neighbours": min(int(clf.graph_neighbors), health.n_rows - 1),
            "edges": health.n_edges,
            "components": health.n_components,
            "islands_without_labels": health.n_unlabeled_islands,
            "sigma": _number(clf.sigma_),
            "farthest_hops": max(health.hops),
        },
        "vote": {
            "kind": clf.vote,
            "alpha": _number(clf.alpha_),
            "sharpness": None if clf.sharpness_ is None else _number(clf.sharpness_),
            "class_prior": {
                str(name): _number(share) for name, share in zip(clf.classes_, clf.class_prior_)
            },
        },
        "validation": _validation(hidden, clf.classes_) if validated else None,
        "advice": list(health.advice),
        "notes": list(session.notes),
        "seconds": {name: round(s, 2) for name, s in session.seconds.items()},
    }


def columns_data(
    manner: Mapping[str, str], columns: Sequence[Use], warnings: Sequence[str]
) -> dict[str, Any]:
    """Return how a file is written, what became of its columns, and warnings, for JSON."""
    shown = ("name", "used", "kind", "how")
    listed = [{key: getattr(use, key) for key in shown} for use in columns]
    return {"file": manner, "columns": listed, "warnings": warnings}


def columns_text(manner: Mapping[str, str], columns: Sequence[Use], warnings: Sequence[str]) -> str:
    """Return warnings, how a file is written, and the table of columns."""
    lines = [f"WARNING     {warning}" for warning in warnings]
    lines += [f"file        {manner_text(manner)}"] if manner else []
    table = as_table(["column", "used as", "how, or why not"], grouped(columns))
    return "\n".join([*lines, "", table]).lstrip("\n")


def _validation(hidden: HiddenLabels | None, classes: NDArray[Any]) -> dict[str, Any]:
    if hidden is None:
        none = {"labels_judged": 0, "labels_found": 0, "groups": 0}
        return {"accuracy": None, "interval": None, **none, "reliability": [], "per_class": []}
    names = ("from", "to", "answers", "right")
    return {
        "accuracy": _number(hidden.accuracy),
        "interval": [_number(end) for end in hidden.interval()],
        "labels_judged": len(hidden.rows),
        "labels_found": int(hidden.right.sum()),
        "groups": hidden.n_folds,
        "reliability": [dict(zip(names, tenth)) for tenth in hidden.reliability()],
        "per_class": _per_class(hidden, list(map(str, classes))),
    }


def _per_class(hidden: HiddenLabels, names: list[str]) -> list[dict[str, Any]]:
    """Return how many hidden labels of each class were found again, and what most others became."""
    pairs = np.zeros((len(names), len(names) + 1), dtype=np.intp)  # nobody's answer comes last
    np.add.at(pairs, (hidden.given, hidden.found), 1)
    right, judged = pairs.diagonal().copy(), pairs.sum(axis=1)
    np.fill_diagonal(pairs, 0)
    worst = pairs.argmax(axis=1)
    return [
        {
            "class": name,
            "labels_judged": int(judged[c]),
            "labels_found": int(right[c]),
            "mistaken_for": [*names, None][worst[c]] if pairs[c].any() else None,
            "mistaken": int(pairs[c, worst[c]]),
        }
        for c, name in enumerate(names)
    ]


def _number(value: Any) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


def known(value: float | None, form: str) -> str:
    """Return a number as text, or "unknown" where there is none.

    >>> known(2.25, ".1f"), known(float("nan"), ".1f"), known(None, ".1f")
    ('2.2', 'unknown', 'unknown')
    """
    return "unknown" if value is None or not math.isfinite(value) else format(value, form)


def summary_text(data: dict[str, Any]) -> str:
    """Return the summary, from `summary_data`, as a few aligned lines."""
    given, found = data["labels_per_class"], data["predicted_per_class"]
    groups = [{told["class"]: told for told in group["per_class"]} for group in data["trust"]]
    rows = [
        [
            name or "(none)", f"{given.get(name, 0):,}", f"{found.get(name, 0):,}",
            *(_told(group.get(name)) for group in groups),
        ]
        for name in given | found
    ]  # fmt: skip
    if len(rows) > _MOST_CLASSES:
        rows = [*rows[:_MOST_CLASSES], [f"and {len(rows) - _MOST_CLASSES} more", *[""] * 4]]
    header = ["class", "labelled", "predicted", *(group["name"] for group in data["trust"])]
    classes = as_table(header, rows)
    values = {"data": data, "classes": classes, "known": known, "found_words": found_words}
    return rendered("manifoldknn.reporting", "summary.txt", **values).rstrip("\n")


def _told(group: dict[str, Any] | None) -> str:
    """Return how many answers of a class a group has, and how many of its hidden labels were right.

    >>> _told({"rows": 1200, "labels_judged": 9, "labels_found": 8}), _told(None)
    ('1,200 (8 of 9 right)', '')
    """
    if group is None:
        return ""
    judged = f" ({group['labels_found']} of {group['labels_judged']} right)"
    return f"{group['rows']:,}{judged if group['labels_judged'] else ''}"


def as_table(header: list[str], rows: list[list[str]]) -> str:
    """Return rows as aligned text; cells of several lines are put on one.

    >>> print(as_table(["id", "n"], [["a", "10"], ["bb", "9"]]))
    id  n
    a   10
    bb  9
    """
    clean = [[" ".join(str(cell).split()) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[i]) for row in clean) for i in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in clean
    )


def health_text(health: GraphHealth) -> str:
    """Return the state of the graph as lines."""
    return rendered("manifoldknn.reporting", "health.txt", health=health, known=known).rstrip("\n")
