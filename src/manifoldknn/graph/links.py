"""Pairs of rows that the user links or cuts apart by hand.

They are to any two rows what Table 1 has for labelled ones: weight 1 for a must-link, 0 for a
cannot-link. Links and labels must not contradict each other, not even by way of others: rows
that must-links tie together are of one class, and so are all labelled rows of a class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from manifoldknn.base import Array, Bools, Ints
from manifoldknn.base.kernels import NUMPY, Kernels
from manifoldknn.base.tensors import as_numpy

__all__ = ["NO_LINKS", "HandLinks", "check_links", "hand_links", "row_pairs"]


@dataclass(frozen=True)
class HandLinks:
    """Must-links and cannot-links: pairs of row numbers, the smaller first, sorted, each once."""

    must: Ints
    cannot: Ints

    def __bool__(self) -> bool:
        return bool(len(self.must) or len(self.cannot))

    def names(self, low: Any, high: Any, kernels: Kernels = NUMPY) -> Any:
        """Tell which pairs are among these, of either kind; ``low < high``, in 64 bits."""
        named = np.concatenate([self.must, self.cannot]).astype(np.int64)
        n = 1 + max(int(named.max(initial=0)), int(high.max()) if len(high) else 0)
        return kernels.xp.isin(low * n + high, kernels.array(named[:, 0] * n + named[:, 1]))

    def without(self, rows: Ints) -> HandLinks:
        """Return the links that touch none of some rows: who hides a label hides these too."""
        if not self:
            return self
        kept = (pairs[~np.isin(pairs, rows).any(axis=1)] for pairs in (self.must, self.cannot))
        return HandLinks(*kept)

    def linked_beside(self, codes: Ints) -> tuple[Ints, Ints]:
        """Return both ends of the must-links that labels do not make as well."""
        one, other = self.must.T
        new = (codes[one] < 0) | (codes[other] < 0)
        return one[new], other[new]


NO_LINKS = HandLinks(np.empty((0, 2), dtype=np.intp), np.empty((0, 2), dtype=np.intp))


def hand_links(
    must: Any, cannot: Any, codes: Ints, classes: Array | None = None, names: Array | None = None
) -> HandLinks:
    """Return the user's links, each once, or raise ValueError.

    Wrong are a row that is not there, a row paired with itself, and contradictions. `classes`, and
    `names` of rows, are for messages.

    >>> hand_links([[2, 0], [0, 2]], None, np.array([-1, 0, -1])).must
    array([[0, 2]])
    """
    links = HandLinks(
        row_pairs("must_link", must, len(codes)), row_pairs("cannot_link", cannot, len(codes))
    )
    check_links(links, codes, classes, names)
    return links


def row_pairs(name: str, pairs: Any, n_samples: int) -> Ints:
    """Return pairs of row numbers, checked, the smaller first, sorted, each once."""
    if pairs is None:
        return NO_LINKS.must
    try:
        found = np.asarray(as_numpy(pairs))
    except ValueError:  # rows of different lengths
        found = np.empty(0, dtype=object)
    if found.size == 0 and found.dtype.kind != "O":
        return NO_LINKS.must
    if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must hold pairs of row numbers, such as [[0, 5], [2, 7]], not an array of "
            f"shape {found.shape} and type {found.dtype}."
        )
    outside = (found < 0) | (found >= n_samples)
    if outside.any():
        raise ValueError(
            f"{name} names row {found[outside][0]}, and there are rows 0 to {n_samples - 1}: name "
            "rows by their positions in X."
        )
    same = found[:, 0] == found[:, 1]
    if same.any():
        raise ValueError(
            f"{name} pairs row {found[same][0, 0]} with itself: a link needs two different rows."
        )
    return np.unique(np.sort(found, axis=1), axis=0).astype(np.intp)


def check_links(
    links: HandLinks, codes: Ints, classes: Array | None = None, names: Array | None = None
) -> None:
    """Raise ValueError if links contradict labels or each other, also through chains."""
    if not links:
        return
    n, n_classes = len(codes), int(codes.max(initial=-1)) + 1
    labeled = np.flatnonzero(codes >= 0)
    # A node more for every class ties its labelled rows together.
    one = np.concatenate([links.must[:, 0], labeled])
    other = np.concatenate([links.must[:, 1], n + codes[labeled]])
    size = n + n_classes
    ties = sparse.coo_array((np.ones(len(one)), (one, other)), shape=(size, size))
    _, part = csgraph.connected_components(ties.tocsr(), directed=False)

    def named(code: int) -> str:
        return repr(classes[code : code + 1].tolist()[0] if classes is not None else code)

    def called(row: int) -> str:
        return str(row) if names is None else repr(names[row : row + 1].tolist()[0])

    of_class = part[n:]
    for code in range(n_classes):
        twin = np.flatnonzero(of_class[:code] == of_class[code])
        if twin.size:
            rows = _some_rows(part == of_class[code], codes, (int(twin[0]), code))
            raise ValueError(
                f"must_link ties rows of the classes {named(int(twin[0]))} and {named(code)} "
                f"together, such as rows {called(rows[0])} and {called(rows[1])}: take one of the "
                "links, or one of the labels, back."
            )
    broken = np.flatnonzero(part[links.cannot[:, 0]] == part[links.cannot[:, 1]])
    if broken.size:
        low, high = links.cannot[broken[0]]
        more = f" (and {broken.size - 1} more)" if broken.size > 1 else ""
        if codes[low] >= 0 and codes[low] == codes[high]:
            why = f"both are labelled {named(int(codes[low]))}"
        else:
            why = "must-links and labels tie them together"
        raise ValueError(
            f"cannot_link cuts rows {called(low)} and {called(high)} apart{more}, but {why}: take "
            "one of these back."
        )


def _some_rows(together: Bools, codes: Ints, classes: tuple[int, int]) -> list[int]:
    """Return a labelled row of each of two classes that are tied together."""
    there = together[: len(codes)]
    return [int(np.flatnonzero(there & (codes == code))[0]) for code in classes]
