"""Rows so far from all labels that no floating-point number holds how seldom walkers reach one.

Let v be a positive function of the rows with A v = 0 outside rows where it is known, such as the
probability to meet a label, times √d. For far rows F, and K the rows where log v is known,

    v_F = A_FF⁻¹ αS_FK v_K,

and what a walker from F finds in the end it finds from the rows of K where it arrives first: any
other such function u has u_F / v_F = E (u_K / v_K), with E the probabilities of these arrivals,
its rows summing to 1.

Parts of F that hang together by strong edges are solved one after the other, those first that are
reached most easily, and each in its own scale. Between parts, walkers that come back are
forgotten: these are fewer than one in 10¹².
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from manifoldknn.csr import kept_entries

_STRONG = -28.0  # logarithm of an edge of S that holds a part together
_LARGE = 300  # rows of a part whose matrix is factorised as a sparse one
_MOST_ROWS = 50_000
_NEGLIGIBLE = 1e-9  # share of arrivals


def arrivals_of_far_rows(
    log_s: Any, far: NDArray[np.bool_], log_values: NDArray[np.float64], alpha: float
) -> tuple[Any, NDArray[np.float64]] | None:
    """Return where walkers from far rows arrive first, and log v of all rows.

    Parameters
    ----------
    log_s : csr_array of shape (n, n)
        Logarithms of S.
    far : ndarray of shape (n,)
        Rows where v is wanted.
    log_values : ndarray of shape (n,)
        log v of the others; -inf where v is 0.
    alpha : float
        Share of strength kept per step.

    Returns
    -------
    arrivals : csr_array of shape (n_far, n)
        Probabilities E, rows of far rows that no walk leaves being empty.
    log_values : ndarray of shape (n,)
        log v, -inf in such rows.
        None instead of both if there are too many far rows.

    Notes
    -----
    Costs a small factorisation for each part, and a step of Python for every edge of a far row.
    """
    rows = np.flatnonzero(far)
    n = len(far)
    log_values = np.where(far, -np.inf, log_values)
    if len(rows) > _MOST_ROWS:
        return None
    edges = log_s[rows]
    place = np.full(n, -1)
    place[rows] = np.arange(len(rows))
    within = kept_entries(edges, far[edges.indices] & (edges.data > _STRONG))
    strong = sparse.csr_array(
        (np.ones(within.nnz), place[within.indices], within.indptr), shape=(len(rows), len(rows))
    )
    n_parts, part_of = connected_components(strong, directed=False)
    members = np.split(np.argsort(part_of, kind="stable"), np.cumsum(np.bincount(part_of))[:-1])
    found: list[dict[int, float]] = [{} for _ in rows]
    source = np.repeat(np.arange(len(rows)), np.diff(edges.indptr))
    best = np.full(n_parts, -np.inf)
    np.maximum.at(best, part_of[source], edges.data + log_values[edges.indices])
    waiting = [(-value, number) for number, value in enumerate(best) if value > -np.inf]
    heapify(waiting)
    done = np.zeros(n_parts, dtype=bool)
    while waiting:
        _, number = heappop(waiting)
        if done[number]:
            continue
        done[number] = True
        of_part = members[number]
        _solve_part(edges, of_part, rows, place, log_values, alpha, found)
        for i in of_part:
            entries = slice(edges.indptr[i], edges.indptr[i + 1])
            for j, log_weight in zip(edges.indices[entries], edges.data[entries]):
                other = part_of[place[j]] if far[j] else -1
                if other >= 0 and not done[other]:
                    heappush(waiting, (-(log_weight + log_values[rows[i]]), int(other)))
    counts = np.array([len(row) for row in found])
    indices = np.array([j for row in found for j in row], dtype=np.intp)
    data = np.array([value for row in found for value in row.values()])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return sparse.csr_array((data, indices, indptr), shape=(len(rows), n)), log_values


def _solve_part(
    edges: Any,
    of_part: NDArray[np.intp],
    rows: NDArray[np.intp],
    place: NDArray[np.intp],
    log_values: NDArray[np.float64],
    alpha: float,
    found: list[dict[int, float]],
) -> None:
    """Write arrivals and log v of one part, given those of rows that are known by now."""
    part = edges[of_part]
    number = np.full(len(rows) + 1, -1)  # the last one is for rows that are not far
    number[of_part] = np.arange(len(of_part))
    row = np.repeat(np.arange(len(of_part)), np.diff(part.indptr))
    here = number[place[part.indices]]
    inside = here >= 0
    inner = sparse.coo_array(
        (alpha * np.exp(part.data[inside]), (row[inside], here[inside])),
        shape=(len(of_part), len(of_part)),
    )
    arriving = part.data + log_values[part.indices]
    outward = ~inside & (arriving > -np.inf)
    row, target, arriving = row[outward], part.indices[outward], arriving[outward]
    shift = arriving.max()
    # v = A⁻¹ b, and of it the share that comes by each edge that leads out.
    gates, of_gate = np.unique(row, return_inverse=True)
    unit = np.zeros((len(of_part), len(gates)))
    unit[gates, np.arange(len(gates))] = 1.0
    if len(of_part) > _LARGE:
        matrix = sparse.csc_array(sparse.eye_array(len(of_part)) - inner)
        columns = splu(matrix, permc_spec="MMD_AT_PLUS_A").solve(unit)
    else:
        columns = np.linalg.solve(np.eye(len(of_part)) - inner.toarray(), unit)
    through = np.bincount(of_gate, np.exp(arriving - shift))
    total = columns @ through
    log_values[rows[of_part]] = np.log(alpha * total) + shift
    onward = [{int(j): 1.0} if place[j] < 0 else found[place[j]] for j in target.tolist()]
    by_gate: list[dict[int, float]] = [{} for _ in gates]
    for gate, value, ends in zip(of_gate.tolist(), np.exp(arriving - shift).tolist(), onward):
        for k, share in ends.items():
            by_gate[gate][k] = by_gate[gate].get(k, 0.0) + value * share
    for i, of_row, sum_of_row in zip(of_part, columns, total):
        shares = of_row * through / sum_of_row
        sums = found[i]
        for gate in np.flatnonzero(shares > _NEGLIGIBLE):
            factor = float(of_row[gate] / sum_of_row)
            for k, value in by_gate[gate].items():
                sums[k] = sums.get(k, 0.0) + factor * value
