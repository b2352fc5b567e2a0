"""Which labels walkers meet first, label by label, where many labels count for a row.

The same as `first_hits` by other means: columns of H are solved in full, a block of labels at a
time, and then searched for entries that count. That is n·l numbers, but each of them costs a
small part of an entry of a sparse product.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldknn.csr import row_maxima, without_small_entries
from manifoldknn.first_hits import INNER, HitProblem, Negligible
from manifoldknn.progress import countdown
from manifoldknn.threads import in_threads

_COLUMNS = 256  # of H at a time
_ENTRIES = 1 << 22  # but not more entries than this
_RUN = 4  # blocks that use the same memory: fresh memory costs as much as writing it twice
_SAMPLE = 32  # rows that tell how sparse H is
_DEARER = 24.0  # an entry of a sparse product, in entries of a dense one


def columns_are_cheaper(problem: HitProblem, negligible: Negligible) -> bool:
    """Tell whether whole columns are solved sooner than the entries that count.

    Parameters
    ----------
    problem : HitProblem
        The factor and the right-hand side.
    negligible : Negligible
        What may be left out.

    Returns
    -------
    bool
        Whether more than a 24th of some evenly spaced rows counts.
    """
    return _DEARER * share_that_counts(problem, negligible) > 1.0


def share_that_counts(problem: HitProblem, negligible: Negligible) -> float:
    """Return how much of some evenly spaced rows of H counts while others are made from them.

    Costs as much as so many columns, in double precision.
    """
    n, n_labels = problem.down.shape
    rows = np.flatnonzero(problem.log_scale > -np.inf)
    if not len(rows):
        return 0.0
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, _SAMPLE).astype(np.intp))]
    x = np.zeros((n, len(rows)))
    x[rows, np.arange(len(rows))] = 1.0
    problem.factor.solve_sorted(x)
    x *= np.exp(problem.log_scale)[:, None]
    found = (problem.down.T @ x) / np.exp(problem.log_scale[rows])
    counts = [
        np.count_nonzero(
            (of_row > 0) & (of_row >= INNER * negligible.below(slice(row, row + 1), of_row.max()))
        )
        for row, of_row in zip(rows, found.T)
    ]
    return float(np.mean(counts)) / n_labels


def hit_columns(
    problem: HitProblem, negligible: Negligible, *, most: int, n_jobs: int | None = None
) -> tuple[Any, NDArray[np.intp]] | None:
    """Return the entries of H that count; parameters and answer as in `first_hits`.

    Notes
    -----
    Costs O(entries of the factor) for each label.
    """
    n, n_labels = problem.down.shape
    width = int(np.clip(_ENTRIES // max(1, n), 32, _COLUMNS))
    down = problem.down.tocsc()
    bar = np.maximum(_least(problem, negligible), np.finfo(np.float32).tiny)[:, None]
    bar = bar.astype(np.float32)

    def solve(starts: Sequence[int]) -> tuple[NDArray[Any], ...]:
        room, above = np.empty((n, width), dtype=np.float32), np.empty((n, width), dtype=bool)
        found = []
        for start in starts:
            x = room[:, : min(width, n_labels - start)]
            x[:] = 0.0
            ends = down.indptr[start : start + width + 1]
            entries = slice(ends[0], ends[-1])
            column = np.repeat(np.arange(x.shape[1]), np.diff(ends))
            x[down.indices[entries], column] = down.data[entries]
            problem.scaled.solve_sorted(x)
            at = np.flatnonzero(np.greater_equal(x, bar, out=above[:, : x.shape[1]]))
            row, column = np.divmod(at, x.shape[1])
            values = x[row, column]
            found.append((row.astype(np.int32), (column + start).astype(np.int32), values))
        return _concatenated(found)

    starts = range(0, n_labels, width)
    runs = [starts[first : first + _RUN] for first in range(0, len(starts), _RUN)]
    parts, count = [], 0
    solved = in_threads(solve, runs, n_jobs)
    for part in countdown(solved, len(runs), "blocks of labels"):
        parts.append(part)
        count += len(part[0])
        if count > most:
            return None
    row, column, value = _concatenated(parts)
    del parts, part
    hits = sparse.coo_array((value, (row, column)), shape=(n, n_labels)).tocsr()
    del row, column, value
    everyone = slice(0, n)
    below = negligible.below(everyone, row_maxima(hits, 0.0))
    return without_small_entries(hits, below), np.arange(n)


def _least(problem: HitProblem, negligible: Negligible) -> NDArray[np.float64]:
    """Return what is negligible in any case, as H is nowhere less than its first term."""
    return negligible.below(slice(0, problem.down.shape[0]), row_maxima(problem.down, 0.0))


def _concatenated(parts: Iterable[tuple[NDArray[Any], ...]]) -> tuple[NDArray[Any], ...]:
    return tuple(map(np.concatenate, zip(*parts)))
