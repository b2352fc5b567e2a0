"""Cells of the space that rows lie in, and parts of equally many rows made of them.

Cells are those around k-means centres of a sample. The sample is drawn by the number of a row in
the input: however that is cut into chunks, the cells are the same. Where rows are wide, cells and
first distances are those of principal components.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from manifoldknn.base import Array, Floats, Ints
from manifoldknn.search.faiss_threads import faiss_threads
from manifoldknn.search.inverted import COMPONENTS, PCA_ROWS, PrincipalAxes

_PER_CELL = 32  # rows of the sample
_LEAST_PER_CELL = 16  # rows in all
_ROUNDS = 5
_BLOCK = 1 << 22  # distances at a time


def cell_count(n_rows: int) -> int:
    """Return how many cells so many rows are sorted into, as `InvertedIndex` does: 4√n."""
    return max(1, min(int(4 * np.sqrt(n_rows)), n_rows // _LEAST_PER_CELL))


def sampled_rows(n_rows: int, n_wanted: int, seed: int) -> Ints:
    """Return some rows, ascending: one from each of so many equally long stretches.

    >>> sampled_rows(10, 5, seed=0)
    array([1, 2, 4, 6, 9])
    """
    n_wanted = min(n_rows, n_wanted)
    starts = np.arange(n_wanted + 1) * n_rows // n_wanted
    share = np.random.default_rng(seed).random(n_wanted)
    return starts[:-1] + (share * np.diff(starts)).astype(np.intp)


def sample_size(n_rows: int) -> int:
    """Return how many rows cells are found from."""
    return max(_PER_CELL * cell_count(n_rows), PCA_ROWS)


class Cells:
    """Centres, in the coordinates that distances to them are measured in.

    `center` and `axes` are those of principal components; there are none where rows are narrow.
    """

    def __init__(
        self, centers: NDArray[np.float32], center: Floats, axes: NDArray[np.float32]
    ) -> None:
        self.centers, self.center, self.axes = centers, center, axes

    @classmethod
    def of_sample(cls, sample: Array, n_rows: int, seed: int) -> Cells:
        """Find the cells of so many rows, of which there is a sample in order."""
        center = sample.mean(axis=0, dtype=np.float64)
        axes = np.empty((sample.shape[1], 0), dtype=np.float32)
        if sample.shape[1] > COMPONENTS:
            rows = sampled_rows(len(sample), PCA_ROWS, seed)
            axes = PrincipalAxes(sample[rows] - center, np.arange(len(rows))).leading(COMPONENTS)
        found = cls(np.empty((0, 0), dtype=np.float32), center, axes)
        points, count = found.projected(sample), cell_count(n_rows)
        with faiss_threads(1) as faiss:
            means = faiss.Kmeans(
                points.shape[1], count, niter=_ROUNDS, seed=seed + 1, verbose=False,
                min_points_per_centroid=1, max_points_per_centroid=1 << 30,
            )  # fmt: skip
            means.train(points)
        return cls(np.asarray(means.centroids), center, axes)

    def projected(self, rows: Array) -> NDArray[np.float32]:
        """Return the coordinates of rows.

        In double precision first: then they do not depend on how many rows are asked for at once.
        """
        moved = rows - self.center
        if self.axes.shape[1]:
            moved = moved @ self.axes.astype(np.float64)
        return np.ascontiguousarray(moved, dtype=np.float32)

    def nearest(self, points: NDArray[np.float32], count: int) -> NDArray[np.int32]:
        """Return the nearest cells of points in these coordinates, the nearest first."""
        centers = self.centers.astype(np.float64)
        norms, count = np.square(centers).sum(axis=1), min(count, len(centers))
        out = np.empty((len(points), count), dtype=np.int32)
        step = max(1, _BLOCK // len(centers))
        for start in range(0, len(points), step):
            some = slice(start, start + step)
            away = norms - 2.0 * (points[some].astype(np.float64) @ centers.T)
            if count == 1:
                out[some, 0] = away.argmin(axis=1)
                continue
            near = np.argpartition(away, count - 1, axis=1)[:, :count]
            order = np.argsort(np.take_along_axis(away, near, axis=1), axis=1)
            out[some] = np.take_along_axis(near, order, axis=1)
        return out


def parts_of_cells(centers: Array, counts: Ints, n_parts: int) -> Ints:
    """Return a part for every cell, such that parts hold about equally many rows.

    Cells are cut in two along the axis on which they spread most, and each half again.

    >>> parts_of_cells(np.array([[0.0], [1.0], [2.0], [9.0]]), np.array([1, 1, 1, 3]), 2)
    array([0, 0, 0, 1])
    """
    part = np.zeros(len(centers), dtype=np.intp)

    def cut(cells: Ints, first: int, count: int) -> None:
        if count == 1 or len(cells) < 2:
            part[cells] = first
            return
        points, weight = centers[cells].astype(np.float64), np.maximum(counts[cells], 1e-9)
        moved = points - np.average(points, axis=0, weights=weight)
        axis = np.linalg.eigh(moved.T * weight @ moved)[1][:, -1]
        order = np.argsort(moved @ axis, kind="stable")
        left, rows = count // 2, np.cumsum(weight[order])
        place = int(np.searchsorted(rows, rows[-1] * left / count, side="left")) + 1
        place = min(max(place, 1), len(cells) - 1)
        cut(cells[order[:place]], first, left)
        cut(cells[order[place:]], first + left, count - left)

    cut(np.arange(len(centers)), 0, n_parts)
    return part
