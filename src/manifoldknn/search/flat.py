"""Neighbours by brute force in single precision, and which of them are certain.

faiss compares all pairs with squares ‖x‖² - 2xy + ‖y‖² in single precision, several times as fast
as anything in double precision. Its squares are wrong by no more than

    e = (d + 8) u (2‖x‖ + r)²,   u = 2⁻²⁴,

for samples within r of x (their norms are at most ‖x‖ + r). So with s the square of the last
candidate, whoever is missing is at least √(s - e) away: where the candidates that count are
nearer than that, by distances measured exactly, nobody is missing.
"""

from functools import partial

import numpy as np

from manifoldknn.base import Array, Bools, Floats, Ints
from manifoldknn.base.distances import largest_value, row_blocks
from manifoldknn.base.threads import in_threads, single_threaded_products
from manifoldknn.search.faiss_threads import faiss_threads

_UNIT = 2.0**-24
_ROWS = 512  # searched in one thread
_TINY = 1e-36  # squares below it are lost


class FlatSearch:
    """Brute force in single precision, on a copy of samples with the origin in their middle."""

    def __init__(self, X: Array, *, n_jobs: int | None = None) -> None:
        # On a scale where squares neither over- nor underflow.
        self._scale = largest_value(X) or 1.0
        self._rows = self._single(X)
        self._n_jobs = n_jobs

    def candidates(self, Q: Array, count: int) -> tuple[Ints, Floats]:
        """Return the `count` nearest samples of rows, which were moved as the samples were.

        And for every row the square of the farthest of them, as single precision sees it.
        """
        rows = self._single(Q)
        parts = [rows[start : start + _ROWS] for start in range(0, len(rows), _ROWS)]
        # Once outside, so that faiss is loaded before any thread looks for matrix libraries.
        with faiss_threads(1):
            found = list(in_threads(partial(self._searched, count=count), parts, self._n_jobs))
        squares = np.concatenate([part for part, _ in found])
        indices = np.concatenate([part for _, part in found])
        return indices.astype(np.intp), squares.astype(np.float64) * self._scale**2

    def certain(self, Q: Array, farthest: Floats, squares: Floats) -> Bools:
        """Tell for which rows nobody nearer than `farthest` is missing among the candidates.

        `squares` are those that `candidates` returned.
        """
        scale, terms = self._scale, Q.shape[1] + 8
        scaled = Q / scale
        norm = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
        within = farthest / scale
        wrong = terms * _UNIT * np.square(2 * norm + within) + terms * _TINY
        return np.square(within) < squares / scale**2 - wrong

    def _searched(self, rows: Array, count: int) -> tuple[Array, Array]:
        """Return the square of the farthest candidate of every row, and all candidates."""
        # Threads of ours share out the products too, which its matrix library makes in one.
        with faiss_threads(1) as faiss, single_threaded_products():
            squares, indices = faiss.knn(rows, self._rows, count)
        return squares[:, -1], indices

    def _single(self, X: Array) -> Array:
        rows = np.empty(X.shape, dtype=np.float32)
        for block in row_blocks(X):
            rows[block] = X[block] / self._scale
        return rows
