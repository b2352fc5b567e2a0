"""Answers that can be trusted, and those that somebody should look at, and how good each are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.vote.hidden import HiddenLabels

SURE = 0.8  # confidence from which an answer is trusted, unless the user names another
NAMES = ("can be trusted", "need a look")
_ENOUGH = 20  # hidden labels, for a share of them to say something


def trust_groups(
    classes: NDArray[Any],
    answers: NDArray[np.intp],
    confidence: NDArray[np.float64],
    hidden: HiddenLabels | None,
    limit: float = SURE,
) -> list[dict[str, Any]]:
    """Return two groups of answers, those of at least `limit` confidence first.

    Each tells how many rows it has, how many hidden labels fell into it and how many of these were
    right, all in all and by the class that was answered. The accuracy weighs classes by how many
    rows are answered with them, as `HiddenLabels.accuracy` does; it is None where no label fell
    into the group. `answers` are class numbers of unlabelled rows, -1 for none, with their
    `confidence`.

    >>> answers, confidence = np.array([0, 1, 1, -1]), np.array([0.9, 0.9, 0.5, 0.1])
    >>> groups = trust_groups(np.array(["a", "b"]), answers, confidence, None)
    >>> [(group["name"], group["rows"], group["accuracy"]) for group in groups]
    [('can be trusted', 2, None), ('need a look', 2, None)]
    """
    sure = (answers >= 0) & (confidence >= limit)
    found = np.empty(0, dtype=np.intp) if hidden is None else hidden.found
    certain = np.empty(0) if hidden is None else hidden.shares.max(axis=1, initial=0.0)
    trusted = (found >= 0) & (certain >= limit)
    return [
        {"name": name, "from": low, "to": high}
        | _counted(classes, answers[rows], hidden, found, judged)
        for name, low, high, rows, judged in (
            (NAMES[0], limit, 1.0, sure, trusted),
            (NAMES[1], 0.0, limit, ~sure, ~trusted),
        )
    ]


def _counted(
    classes: NDArray[Any],
    answers: NDArray[np.intp],
    hidden: HiddenLabels | None,
    found: NDArray[np.intp],
    judged: NDArray[np.bool_],
) -> dict[str, Any]:
    n = len(classes)
    right = np.zeros(0, dtype=bool) if hidden is None else hidden.right
    accuracy = None
    if hidden is not None and judged.any():
        weights = hidden.class_weights[hidden.given] / np.bincount(hidden.given)[hidden.given]
        weights = weights[judged] if weights[judged].any() else np.ones(judged.sum())
        accuracy = float(f"{np.average(right[judged], weights=weights):.6g}")
    numbers = (
        np.bincount(some[some >= 0], minlength=n)
        for some in (answers, found[judged], found[judged & right])
    )
    per_class = zip(map(str, classes), *(counts.tolist() for counts in numbers))
    names = ("class", "rows", "labels_judged", "labels_found")
    return {
        "rows": len(answers),
        "labels_judged": int(judged.sum()),
        "labels_found": int(right[judged].sum()),
        "accuracy": accuracy,
        "per_class": [dict(zip(names, told)) for told in per_class],
    }


def found_words(group: dict[str, Any]) -> str:
    """Return how good the answers of a group are, as far as hidden labels tell.

    >>> group = {"labels_judged": 20, "labels_found": 19, "accuracy": 0.93}
    >>> found_words(group), found_words(group | {"labels_judged": 1, "labels_found": 1})
    (': about 93% right, by 19 of 20 hidden labels', ': 1 of 1 hidden labels right')
    """
    found = f"{group['labels_found']} of {group['labels_judged']} hidden labels"
    if group["labels_judged"] < _ENOUGH:
        return f": {found} right" if group["labels_judged"] else ""
    return f": about {group['accuracy']:.0%} right, by {found}"
