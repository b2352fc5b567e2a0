"""Taking rows with few neighbours out of A = I - αS, many at once.

Rows F of which no two are neighbours have a diagonal A_FF. Where the right-hand
side is 0 in them,

    x_F = A_FF⁻¹ (-A_FC) x_C   and   (A_CC - A_CF A_FF⁻¹ A_FC) x_C = b_C,

again with a symmetric M-matrix. All terms have one sign, so entries keep their
relative accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from manifoldknn.base import Bools, Ints
from manifoldknn.base.csr import kept_entries

WEAK = -80.0  # log of an entry whose rows are not eliminated: products must not underflow
MOST_NEIGHBORS = 32  # of a row that is taken out: their pairs become neighbours
_SWEEPS = 3  # over the rows to find some that are not neighbours
_SEED = 0
_LAST = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Round:
    """Rows F taken out together, and log A_FF⁻¹(-A_FC) by row number of the whole graph."""

    rows: Ints
    log_terms: Any


class Elimination:
    """Rounds of elimination, as many as one asks for, which leave the rows `stays` alone.

    `weights` and `diagonal` are -A off its diagonal, and its diagonal, for the ascending `rows`
    that are left. Entries of log αS below `WEAK` are in `weak` and nowhere else; their rows stay.
    """

    def __init__(self, log_s: Any, stays: Bools, alpha: float) -> None:
        n = log_s.shape[0]
        row = np.repeat(np.arange(n), np.diff(log_s.indptr))
        weak = log_s.data < WEAK
        self.weights = kept_entries(log_s, ~weak)
        self.weights.data = alpha * np.exp(self.weights.data)
        self.weak = kept_entries(log_s, weak)
        self.weak.data = self.weak.data + np.log(alpha)
        self.diagonal = np.ones(n)
        self.rows = np.arange(n)
        self.rounds: list[Round] = []
        self._stays = stays.copy()
        self._stays[row[weak]] = True
        # Among neighbours with equally many neighbours, chance decides who goes first.
        self._lot = np.random.default_rng(_SEED).permutation(n)

    @property
    def density(self) -> float:
        """Entries per row that is left."""
        return float(self.weights.nnz) / max(1, len(self.rows))

    def eliminate(self) -> float:
        """Take out one set of rows with few neighbours, and return the share of rows in it."""
        out = self._independent()
        if not out.any():
            return 0.0
        stay = ~out
        between = self.weights[out][:, stay]
        terms = between.copy()
        terms.data = terms.data / np.repeat(self.diagonal[out], np.diff(between.indptr))
        self.weights = self.weights[stay][:, stay]  # the others are not needed beside the sum
        filled = sparse.csr_array(self.weights + between.T.tocsr() @ terms)
        self.diagonal = self.diagonal[stay] - filled.diagonal()
        row = np.repeat(np.arange(filled.shape[0]), np.diff(filled.indptr))
        self.weights = kept_entries(filled, row != filled.indices)
        kept = self.rows[stay]
        log_terms = sparse.csr_array(
            (np.log(terms.data), kept[terms.indices], terms.indptr),
            shape=(terms.shape[0], len(self._lot)),
        )
        self.rounds.append(Round(self.rows[out], log_terms))
        self.rows = kept
        return float(out.mean())

    def _independent(self) -> Bools:
        """Choose rows with few neighbours, at most the median, no two of them neighbours."""
        counts = np.diff(self.weights.indptr).astype(np.int64)
        free = ~self._stays[self.rows]
        if not free.any():
            return free
        free &= counts <= min(np.median(counts[free]), MOST_NEIGHBORS)
        rank = counts * len(self._lot) + self._lot[self.rows]
        chosen = np.zeros(len(free), dtype=bool)
        for _ in range(_SWEEPS):
            order = np.where(free, rank, _LAST)
            least = np.full(len(free), _LAST)
            some = counts > 0
            if some.any():
                starts = self.weights.indptr[:-1][some]
                least[some] = np.minimum.reduceat(order[self.weights.indices], starts)
            new = free & (order < least)
            chosen |= new
            free &= ~new
            free[self.weights[new].indices] = False
        return chosen
