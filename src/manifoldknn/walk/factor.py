"""A⁻¹ by factorisation: sparse for graphs as flat as a map, dense where every pair has an edge.

Must-links would fill the factor, so they are kept apart. With Q = D_L^-½ Y and A₀ the
matrix without them,

    A = A₀ - αQQᵀ,   A₀ = I + αD_L⁻¹ - αD^-½W₀D^-½,
    A⁻¹ = A₀⁻¹ + α R (I - αQᵀR)⁻¹ Rᵀ,   R = A₀⁻¹Q,

where D_L⁻¹ acts on rows with must-links. A₀ = LDLᵀ is an M-matrix: factorising
and solving add terms of one sign, so every entry keeps its relative accuracy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import splu

from manifoldknn.base import Floats, Ints

_ROUNDED = 1e-3  # more than a row of P can be wrong: logarithms go to -1e12
_LOG_UNDERFLOW = np.log(1e-290)  # what underflow can lose of numbers up to 1


class FactorizedInverse:
    """A⁻¹ = (I - αS)⁻¹ from one factorisation of S without must-links.

    Rows `linked` have must-links with those of the same `group`; `scale` is their D^-½. Each column
    costs two passes over the factor, typically 3 to 30 times as large as the graph. Only underflow
    can lose an entry.
    """

    is_exact = True
    log_error = _LOG_UNDERFLOW

    def __init__(self, s: Any, linked: Ints, group: Ints, scale: Floats, alpha: float) -> None:
        n = s.shape[0]
        diagonal = np.ones(n)
        diagonal[linked] += alpha * np.square(scale)
        self._factor = splu(
            sparse.csc_array(sparse.diags_array(diagonal) - alpha * s),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,  # keeps to the diagonal, as an M-matrix allows
            options={"SymmetricMode": True},
        )
        Q = np.zeros((n, int(group.max(initial=-1)) + 1))
        Q[linked, group] = scale
        self._left = self._factor.solve(Q) if Q.size else Q
        inner = np.eye(Q.shape[1]) - alpha * (Q.T @ self._left)
        self._right = alpha * np.linalg.solve(inner, self._left.T)

    def solve(self, rhs: Floats) -> Floats:
        """Return A⁻¹ rhs."""
        x: Floats = self._factor.solve(np.ascontiguousarray(rhs))
        x += self._left @ (self._right @ rhs)
        return x

    def log_solution(self, rhs: Floats) -> Floats:
        """Return log (A⁻¹ rhs), with errors of no more than exp(log_error)."""
        return _log_of_nonnegative(self.solve(rhs))


class DenseInverse:
    """A⁻¹ = (I - αS)⁻¹ for a dense S by Cholesky factorisation, as accurate.

    S is symmetric, in an array of its own: the factor takes its place.
    """

    is_exact = True
    log_error = _LOG_UNDERFLOW

    def __init__(self, s: Floats, alpha: float) -> None:
        matrix = s.T  # column by column in memory, as LAPACK wants it
        matrix *= -alpha
        matrix[np.diag_indices_from(matrix)] += 1.0
        try:
            self._factor = linalg.cho_factor(matrix, lower=True, overwrite_a=True)
        except linalg.LinAlgError:
            # Weights whose logarithms are beyond 1e9, of which users are warned, lack the digits
            # that make rows of P sum up to 1. What was not overwritten is above the diagonal.
            upper = np.triu(matrix, 1)
            matrix = upper + upper.T
            matrix[np.diag_indices_from(matrix)] = 1.0 + _ROUNDED
            self._factor = linalg.cho_factor(matrix, lower=True, overwrite_a=True)

    def log_solution(self, rhs: Floats) -> Floats:
        """Return log (A⁻¹ rhs), with errors of no more than exp(log_error)."""
        return _log_of_nonnegative(linalg.cho_solve(self._factor, rhs))


def _log_of_nonnegative(x: Floats) -> Floats:
    np.maximum(x, 0.0, out=x)
    with np.errstate(divide="ignore"):
        return np.log(x, out=x)
