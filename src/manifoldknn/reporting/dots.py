"""What the map holds: a place, an answer and the cells of every row that is drawn.

Many rows are not all drawn, so that the page opens at once however long the table is.
"""

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.classifier import ManifoldKNNClassifier
from manifoldknn.tables.session import Session
from manifoldknn.vote.votes import normalized

MOST_DOTS = 30_000
_MOST_LABELED = MOST_DOTS // 3  # of them that are labelled
_MOST_COLUMNS = 12  # whose cells are shown
_LONGEST = 80  # characters
_MOST_DECISIONS = 1 << 22  # rows times labels; beyond, finding who decided takes too long
_FULL = 0xFFFF  # a place at the far side


def drawn_rows(clf: ManifoldKNNClassifier, listed: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the rows of the map, ascending: those that are listed, labelled ones, and a sample."""
    n, rng = len(clf.transduction_), np.random.default_rng(0)
    if n <= MOST_DOTS:
        return np.arange(n)
    labeled = clf.labeled_indices_
    first = np.union1d(listed, rng.permutation(labeled)[:_MOST_LABELED])
    others = rng.permutation(np.setdiff1d(np.arange(n), first))
    return np.union1d(first, others[: MOST_DOTS - len(first)])


def shown_cells(session: Session, rows: NDArray[np.intp]) -> dict[str, list[str]]:
    """Return cells of some rows as they stand in the file, of the first columns that say something.

    Rows are ascending.
    """
    table = session.table
    silent = {use.name for use in session.columns if use.plain or use.kind in ("label", "id")}
    names = [name for name in table.names if name not in silent and name not in table.index_names]
    columns = table.cells_at(names[:_MOST_COLUMNS], rows)
    return {name: [brief(cell) for cell in column] for name, column in columns.items()}


def brief(value: Any, length: int = _LONGEST) -> str:
    """Return a value as text on one line, cut if it is long."""
    text = " ".join(str(value).split())
    return text if len(text) <= length else text[: length - 1] + "…"


def numbered(session: Session) -> bool:
    """Tell whether rows are called by numbers, of four bytes."""
    ids = session.ids
    return bool(ids.dtype.kind == "i" and (abs(ids) < 1 << 31).all())


def voters_are_told(clf: ManifoldKNNClassifier) -> bool:
    """Tell whether it is known, or found out quickly, who decided every row."""
    n_decisions = len(clf.transduction_) * len(clf.labeled_indices_)
    return clf.sharpness_ is None or n_decisions <= _MOST_DECISIONS


def packed_dots(
    session: Session,
    rows: NDArray[np.intp],
    at: NDArray[np.float64],
    confidence: NDArray[np.float64],
    odd: NDArray[np.bool_],
    unsure: float,
) -> dict[str, Any]:
    """Return what the script needs, a few bytes per row; `at` are places of the drawn `rows`.

    Rows below `unsure` confidence need a look.
    """
    clf = session.classifier
    codes = clf.fitted_.labels.numbers(clf.transduction_)
    weights, voters = np.zeros((len(codes), 0)), np.zeros((len(codes), 0), dtype=np.intp)
    if voters_are_told(clf):
        weights, voters = clf.kneighbors()
    shares = normalized(weights) if clf.sharpness_ is None else weights
    dot_of = np.full(len(codes), -1)  # rows that are not drawn have none
    dot_of[rows] = np.arange(len(rows))
    by_number = numbered(session)
    return {
        "classes": [brief(name) for name in clf.classes_],
        "ids": None if by_number else [brief(name) for name in session.ids[rows]],
        "rows": _packed(session.ids[rows] if by_number else rows, "<i4"),
        "n_voters": int(voters.shape[1]),
        "places": _packed(np.round(_FULL * at), "<u2"),
        "predicted": _packed(codes[rows], "<i2"),
        "given": _packed(clf.fitted_.labels.codes[rows], "<i2"),
        "confidence": _packed(np.round(100 * confidence[rows]), "<u1"),  # in %, as in lists
        "flags": _packed(odd[rows] + 2 * (confidence[rows] < unsure), "<u1"),
        "voters": _packed(dot_of[voters[rows]], "<i2"),
        "shares": _packed(np.round(255 * shares[rows]), "<u1"),
    }


def _packed(array: NDArray[Any], dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array).astype(dtype).tobytes()).decode()
