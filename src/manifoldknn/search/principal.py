"""Leading principal axes of many rows of many columns, in little memory.

The axes of centred rows R are the leading eigenvectors of RᵀR. Where there are more columns than
rows, those of RRᵀ are fewer: if RRᵀu = s²u, then Rᵀu/s is an axis.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from manifoldknn.base.distances import row_blocks

_TINY = 1e-12  # variance, relative to the largest, below which an axis is rounding


class PrincipalAxes:
    """Principal axes of the chosen rows of X.

    With m rows, d columns and k = min(m, d): O(m·d·k) for the matrix of products, O(k³) for its
    eigenvectors. Memory O(k²) and a block; rows are never centred all at once.
    """

    def __init__(self, X: NDArray[Any], chosen: NDArray[np.intp]) -> None:
        self._X, self._chosen = X, chosen
        self._by_rows = len(chosen) < X.shape[1]
        parts = row_blocks(X[: len(chosen)])
        sums = [X[chosen[part]].sum(axis=0, dtype=np.float64) for part in parts]
        self._center = np.sum(sums, axis=0) / len(chosen)
        count = min(len(chosen), X.shape[1])
        self._products = np.zeros((count, count))
        for block in self._blocks():
            self._products += block @ block.T if self._by_rows else block.T @ block

    def leading(self, count: int) -> NDArray[np.float32]:
        """Return the axes of the largest variance as orthonormal columns, the largest first.

        There are fewer than `count` where the rows do not span as many dimensions.
        """
        size = len(self._products)
        first = max(0, size - count)
        values, vectors = eigh(self._products, subset_by_index=[first, size - 1], driver="evr")
        values, vectors = values[::-1], vectors[:, ::-1]
        if not self._by_rows:
            return np.ascontiguousarray(vectors, dtype=np.float32)
        kept = values > _TINY * max(float(values[0]), np.finfo(float).tiny)
        scaled = vectors[:, kept] / np.sqrt(values[kept])
        parts = [(block.T @ scaled).astype(np.float32) for block in self._blocks()]
        return np.concatenate(parts)

    def _blocks(self) -> Any:
        """Yield the centred rows: some rows at a time, or some columns where they are more."""
        if not self._by_rows:
            for part in row_blocks(self._X[: len(self._chosen)]):
                yield self._X[self._chosen[part]] - self._center
            return
        for part in row_blocks(self._X[: len(self._chosen)].T):
            yield self._X[self._chosen, part] - self._center[part]
