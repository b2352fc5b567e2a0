"""What the command line says about a run: as data, and as a short text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.insight.inspection import GraphHealth
from manifoldknn.model.cautions import confidence_words
from manifoldknn.tables.session import Session
from manifoldknn.vote.hidden import HiddenLabels

__all__ = ["as_table", "health_text", "known", "summary_data", "summary_text"]


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
    sure = confidence[unlabeled]
    return {
        "rows": health.n_rows,
        "labelled": health.n_labeled,
        "labels_per_class": {str(k): v for k, v in health.labels_per_class.items()},
        "predicted_per_class": dict(zip(names.tolist(), counts.tolist())),
        "mean_confidence": _number(sure.mean() if sure.size else math.nan),
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
        "validation": _validation(hidden) if validated else None,
        "advice": list(health.advice),
        "notes": list(session.notes),
        "seconds": {name: round(s, 2) for name, s in session.seconds.items()},
    }


def _validation(hidden: HiddenLabels | None) -> dict[str, Any]:
    if hidden is None:
        none = {"labels_judged": 0, "labels_found": 0, "groups": 0, "reliability": []}
        return {"accuracy": None, "interval": None, **none}
    names = ("from", "to", "answers", "right")
    return {
        "accuracy": _number(hidden.accuracy),
        "interval": [_number(end) for end in hidden.interval()],
        "labels_judged": len(hidden.rows),
        "labels_found": int(hidden.right.sum()),
        "groups": hidden.n_folds,
        "reliability": [dict(zip(names, tenth)) for tenth in hidden.reliability()],
    }


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
    graph, vote = data["graph"], data["vote"]
    given, found = data["labels_per_class"], data["predicted_per_class"]
    dimension = data["intrinsic_dimension"]
    lines = [
        ("rows", f"{data['rows']:,}, {data['labelled']:,} of them labelled"),
        (
            "features",
            f"{data['features']:,}; the rows lie on a surface of about {dimension:.0f} dimensions"
            if dimension
            else f"{data['features']:,}",
        ),
        (
            "graph",
            f"{graph['kind']}, {graph['neighbours']} neighbours, {graph['edges']:,} edges, "
            f"{_count(graph['components'], 'component')}, sigma {known(graph['sigma'], '.3g')}",
        ),
        (
            "reach",
            f"at most {graph['farthest_hops']} edges to a label, "
            f"{_count(graph['islands_without_labels'], 'island')} without labels, "
            f"{data['unreached']:,} rows unreached",
        ),
        (
            "vote",
            f"{vote['kind']}, alpha {known(vote['alpha'], '.6g')}"
            + (f", sharpness {vote['sharpness']:.3g}" if vote["sharpness"] else ""),
        ),
        ("confidence", _mean(data)),
        ("accuracy", _accuracy(data["validation"])),
        ("time", ", ".join(f"{name} {s:.1f} s" for name, s in data["seconds"].items())),
    ]
    text = [f"{name:11s} {value}" for name, value in lines]
    text += ["", as_table(["class", "labelled", "predicted"], _class_rows(given, found))]
    remarks = [f"advice      {line}" for line in data["advice"]]
    remarks += [f"note        {line}" for line in data["notes"]]
    text += ["", *remarks] if remarks else []
    return "\n".join(text)


def _class_rows(given: dict[str, int], found: dict[str, int]) -> list[list[str]]:
    names = list(given) + [name for name in found if name not in given]
    rows = [
        [name or "(none)", f"{given.get(name, 0):,}", f"{found.get(name, 0):,}"] for name in names
    ]
    if len(rows) > 20:
        rows = [*rows[:20], [f"and {len(rows) - 20} more", "", ""]]
    return rows


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _mean(data: dict[str, Any]) -> str:
    mean = data["mean_confidence"]
    words = "every row is labelled" if mean is None else f"{mean:.2f} on average, unlabelled rows"
    return f"{words}; it is {data['confidence_is']}"


def _accuracy(valid: dict[str, Any] | None) -> str:
    if valid is None:
        return "not estimated (--no-validate)"
    if valid["accuracy"] is None:
        return "cannot be estimated: no class has two labels"
    low, high = valid["interval"]
    return (
        f"{valid['accuracy']:.1%}: when hidden, {valid['labels_found']} of "
        f"{valid['labels_judged']} labels were found again, classes weighted by how many rows are "
        f"answered with them; so {low:.0%} to {high:.0%} (95 % interval)"
    )


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
    low, middle, high = health.edges_per_row
    hops = ", ".join(
        f"{n if n >= 0 else 'none'}: {c:,}" for n, c in sorted(health.hops.items())[:15]
    )
    rows = [
        f"rows        {health.n_rows:,}, {health.n_labeled:,} labelled",
        f"edges       {health.n_edges:,}; per row {low:.0f} to {high:.0f}, typically {middle:.0f}",
        f"components  {health.n_components:,}",
        f"islands     {len(health.islands)} listed, {health.n_unlabeled_islands:,} without labels",
        *(
            f"            {i['size']:,} rows, {i['n_labeled']} labels, such as {i['example']}"
            for i in health.islands
        ),
        f"hops        edges to the nearest label and number of rows: {hops}",
        f"hubs        {', '.join(str(h['id']) for h in health.hubs) or 'none'}",
        f"sigma       {known(health.sigma, '.4g')}; a row's best edge typically weighs "
        f"{known(health.typical_weight, '.2g')}",
        f"dimension   {known(health.intrinsic, '.1f')} of {health.ambient} columns",
        f"duplicates  {health.n_duplicates:,} rows repeat an earlier one",
        *(f"advice      {line}" for line in health.advice),
    ]
    if not health.advice:
        rows.append("advice      none: the graph is healthy")
    return "\n".join(rows)
