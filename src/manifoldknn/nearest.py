"""The labelled samples nearest to every row by the walk, heaviest first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.heaviest import row_slices


@dataclass(frozen=True)
class NearestLabeled:
    """The labelled samples nearest to every row by the walk, heaviest first.

    Attributes
    ----------
    weights : ndarray of shape (n_samples, n_kept)
        w̄ divided by ``exp(log_scale)``: 1 in the first column, 0 everywhere in
        rows that no labelled sample reaches.
    voters : ndarray of shape (n_samples, n_kept)
        Positions among the labelled samples.
    log_scale : ndarray of shape (n_samples,)
        Logarithm of the largest weight of the row, -inf if unreached.
    """

    weights: NDArray[np.float64]
    voters: NDArray[np.int32]
    log_scale: NDArray[np.float64]

    def rows(self, chosen: NDArray[Any] | slice) -> NearestLabeled:
        """Return some of the rows, by mask, numbers or slice."""
        return NearestLabeled(self.weights[chosen], self.voters[chosen], self.log_scale[chosen])

    def absolute_weights(self, n_heaviest: int | None = None) -> NDArray[np.float64]:
        """Return w̄ itself, of some of the heaviest; weights below about 1e-308 become 0."""
        return np.exp(self.log_scale)[:, None] * self.weights[:, :n_heaviest]


def stacked(parts: Iterable[NearestLabeled]) -> NearestLabeled:
    """Return the rows of all parts, one below the other."""
    found = list(parts)
    return NearestLabeled(
        np.concatenate([one.weights for one in found]),
        np.concatenate([one.voters for one in found]),
        np.concatenate([one.log_scale for one in found]),
    )


def heaviest_first(logs: NDArray[np.float64], voters: NDArray[Any]) -> NearestLabeled:
    """Sort voters by weight, equal ones by position, and take out the scale of each row.

    Arrays may be used up for the answer.

    Parameters
    ----------
    logs : ndarray of shape (n_samples, n_voters)
        Logarithms of weights.
    voters : ndarray of shape (n_samples, n_voters)
        Positions among the labelled samples.

    Returns
    -------
    NearestLabeled
        The same, sorted.
    """
    # In place where possible: with millions of weights, copies are what memory is spent on.
    weights = logs if logs.flags.c_contiguous else np.empty(logs.shape)
    own = voters.flags.writeable and voters.dtype == np.int32
    numbers = voters if own else np.empty(logs.shape, dtype=np.int32)
    out = NearestLabeled(weights, numbers, np.empty(len(logs)))
    for rows in row_slices(len(logs)):
        order = np.argsort(-logs[rows], axis=1)
        values = np.take_along_axis(logs[rows], order, axis=1)
        tied = np.flatnonzero((values[:, 1:] == values[:, :-1]).any(axis=1))
        if tied.size:  # sorting by position as well takes four times as long
            order[tied] = np.lexsort((voters[rows][tied], -logs[rows][tied]), axis=1)
        shift = np.where(np.isneginf(values[:, :1]), 0.0, values[:, :1])
        out.log_scale[rows] = values[:, 0]
        out.weights[rows] = np.exp(values - shift)
        out.voters[rows] = np.take_along_axis(voters[rows], order, axis=1)
    return out
