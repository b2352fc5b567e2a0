"""Approximate neighbours for many rows: inverted lists on principal components.

Rows are projected on their leading principal components and sorted into lists
around k-means centres; a search looks into the few lists whose centres are
nearest and measures the best candidates again in all dimensions. How many
components and lists it takes is not guessed: the share of true neighbours found
(recall) is measured on a sample of rows, and the search widened until it is
high enough.
"""

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from manifoldknn.base import Array, Ints
from manifoldknn.base.distances import largest_value, row_blocks, squared_norms, squares_fit
from manifoldknn.base.heap import note_spare
from manifoldknn.base.progress import countdown
from manifoldknn.base.threads import single_threaded_products
from manifoldknn.search.faiss_threads import faiss_threads
from manifoldknn.search.neighbors import NeighborIndex, Neighbors, sorted_neighbors

logger = logging.getLogger(__name__)

_TINY = 1e-12  # variance, relative to the largest, below which an axis is rounding
RECALL = 0.97  # of the 30 nearest; see benchmarks/results for what it costs in error
_CHECKED_ROWS = 192  # rows on which recall is measured
_CHECKED_NEIGHBORS = 30
COMPONENTS = 64  # leading axes looked at first
PCA_ROWS = 5000  # from which they are taken
_CANDIDATES = 2.1  # per neighbour wanted, where fewer axes than columns rank them at first
_CHUNK_ROWS = 1 << 13  # searched at a time, or fewer:
_CHUNK_BYTES = 1 << 25


class PrincipalAxes:
    """Principal axes of the chosen rows of X, in little memory.

    The axes of centred rows R are the leading eigenvectors of RᵀR. Where there are more columns
    than rows, those of RRᵀ are fewer: if RRᵀu = s²u, then Rᵀu/s is an axis. With m rows, d columns
    and k = min(m, d): O(m·d·k) for the matrix of products, O(k³) for its eigenvectors. Memory O(k²)
    and a block; rows are never centred all at once.
    """

    def __init__(self, X: Array, chosen: Ints) -> None:
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
        with single_threaded_products():  # threads that faiss leaves spinning would be in the way
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


class InvertedIndex(NeighborIndex):
    """Approximate Euclidean or cosine neighbours, with a measured recall.

    float32 rows are used in place. The answer depends on the seed (of the sample, the centres and
    the check), not on `n_jobs`. `recall` is the share of the true 30 nearest that the search finds,
    measured on a sample.

    With 4√n lists a row is compared with about 4√n centres and as many rows per list visited:
    O(n^1.5·m) for m components, plus O(n·k·d) for measuring candidates again. Memory: n·m floats
    for the lists.
    """

    def __init__(
        self, X: Any, *, metric: Any = "euclidean", n_jobs: int | None = None, seed: int = 0
    ) -> None:
        self.X, self.metric, self.n_jobs = X, metric, n_jobs
        self._seed = seed
        self._center = np.zeros(X.shape[1])
        # A power of two, so that no digit changes; 1 where squares fit into single precision.
        self._scale = 1.0 if squares_fit(X) else 2.0 ** np.frexp(largest_value(X))[1]
        if X.dtype != np.float32:
            # Moved to the origin before it is rounded to single precision.
            self._center = X.mean(axis=0, dtype=np.float64)
        self._rows = self._single(X)
        self._directed = np.any(self._rows, axis=1) if metric == "cosine" else None
        self._lists: Any = None
        self._projected: Any = None
        self._ready()
        note_spare(self)

    def _ready(self) -> None:
        """Make the lists, unless they are there."""
        if self._lists is None:
            self._rng = np.random.default_rng(self._seed)
            with faiss_threads(self.n_jobs) as faiss:
                self._tune(faiss)

    def release(self) -> None:
        """Give the lists back, which hold all rows once more; the next search makes them again."""
        self._lists = self._projected = None

    def _single(self, X: Any) -> NDArray[np.float32]:
        """Rows as contiguous float32, of length 1 for cosine: then ‖x-y‖² = 2·(1-cos)."""
        if self.metric != "cosine" and X.dtype == np.float32 and self._scale == 1:
            return np.ascontiguousarray(X)
        rows = np.empty(X.shape, dtype=np.float32)
        for block in row_blocks(X):
            if self.metric == "cosine":
                norms = np.sqrt(squared_norms(X[block]))
                rows[block] = X[block] / np.where(norms > 0, norms, 1.0)[:, None]
            else:
                rows[block] = (X[block] - self._center) / self._scale
        return rows

    def _tune(self, faiss: Any) -> None:
        """Choose components and lists such that the recall is reached."""
        n = len(self._rows)
        k = min(_CHECKED_NEIGHBORS, n - 1)
        checked = np.sort(self._rng.choice(n, min(_CHECKED_ROWS, n), replace=False))
        truth = faiss.knn(self._rows[checked], self._rows, k + 1)[1]
        for basis in self._bases():
            self._basis_used, self._projected = basis, self._project(self._rows, basis)
            sample, count = self._projected[checked], self._n_candidates(k + 1)
            ceiling = _recall(truth, faiss.knn(sample, self._projected, count)[1])
            if ceiling >= RECALL:
                break
        lists = faiss.IndexIVFFlat(
            faiss.IndexFlatL2(self._projected.shape[1]),
            self._projected.shape[1],
            max(1, int(4 * np.sqrt(n))),
        )
        lists.cp.niter, lists.cp.max_points_per_centroid = 5, 32
        lists.cp.min_points_per_centroid = 1
        lists.cp.seed = int(self._rng.integers(2**31))
        logger.info("sorting %d rows into %d lists ...", n, lists.nlist)
        lists.train(self._projected)
        lists.add(self._projected)
        probes = [p for e in range(8, 120) if (p := round(2 ** (e / 4))) < lists.nlist]
        for n_probes in [*probes, lists.nlist]:
            lists.nprobe = n_probes
            self.recall = _recall(truth, lists.search(sample, count)[1])
            if self.recall >= RECALL or self.recall >= ceiling - 0.002:
                break
        self._lists = lists
        logger.info(
            "inverted lists: %d components, %d of %d lists, recall %.3f",
            self._projected.shape[1], lists.nprobe, lists.nlist, self.recall,
        )  # fmt: skip

    def _bases(self) -> Iterator[NDArray[np.float32] | None]:
        """Yield more and more of the leading axes, and None in the end: all columns."""
        n, d = self._rows.shape
        if d > COMPONENTS:
            chosen = np.sort(self._rng.choice(n, min(PCA_ROWS, n), replace=False))
            principal = PrincipalAxes(self._rows, chosen)
            yield principal.leading(COMPONENTS)
            count, axes = 2 * COMPONENTS, principal.leading(d)
            while count < axes.shape[1]:
                yield np.ascontiguousarray(axes[:, :count])
                count *= 2
            if axes.shape[1] < d:
                yield axes
        yield None

    def _project(
        self, rows: NDArray[np.float32], basis: NDArray[np.float32] | None
    ) -> NDArray[np.float32]:
        return rows if basis is None else rows @ basis

    def _n_candidates(self, n_neighbors: int) -> int:
        """Return how many are measured again; where all columns ranked them, more are no nearer."""
        spare = 1.0 if self._basis_used is None else _CANDIDATES
        return min(int(spare * n_neighbors), self.n_samples)

    def among_samples(self, n_neighbors: int) -> Neighbors:
        """Return the nearest *other* samples of every sample, as far as they were found."""
        self._ready()
        # Rows of one list look at the same rows: one after another, they find them in the cache.
        lists = [self._ids(number) for number in range(self._lists.nlist)]
        order = np.concatenate(lists).astype(np.intp)
        return self._search(self._rows, self._projected, n_neighbors, itself=order)

    def _ids(self, number: int) -> NDArray[np.int64]:
        """Return the samples of one list."""
        import faiss

        stored, size = self._lists.invlists, self._lists.invlists.list_size(number)
        if not size:
            return np.empty(0, dtype=np.int64)
        ids: NDArray[np.int64] = faiss.rev_swig_ptr(stored.get_ids(number), size)
        return ids.copy()

    def query(self, Q: Any, n_neighbors: int) -> Neighbors:
        """Return the nearest samples of new rows, as far as they were found."""
        self._ready()
        rows = np.ascontiguousarray(self._single(Q))
        return self._search(rows, self._project(rows, self._basis_used), n_neighbors)

    def _search(
        self,
        rows: NDArray[np.float32],
        projected: NDArray[np.float32],
        n_neighbors: int,
        itself: Ints | None = None,
    ) -> Neighbors:
        """Search for rows; `itself` are all of them, in an order of choice, if they are samples."""
        n = len(rows)
        indices = np.empty((n, n_neighbors), dtype=np.intp)
        distances = np.empty((n, n_neighbors))
        count = self._n_candidates(n_neighbors + (itself is not None))
        order = np.arange(n) if itself is None else itself
        step = max(1, min(_CHUNK_ROWS, _CHUNK_BYTES // (4 * rows.shape[1])))
        with faiss_threads(self.n_jobs) as faiss:
            starts = range(0, n, step)
            for start in countdown(iter(starts), len(starts), "blocks of rows"):
                part = order[start : start + step]
                own = np.full(len(part), -1) if itself is None else part
                found = self._lists.search(projected[part], count)[1]
                squared = self._squared(faiss, rows, part, found, own)
                short = np.flatnonzero(np.isfinite(squared).sum(axis=1) < n_neighbors)
                if short.size:  # lists too small: look everywhere
                    few = part[short]
                    found[short] = faiss.knn(rows[few], self._rows, count)[1]
                    squared[short] = self._squared(faiss, rows, few, found[short], own[short])
                indices[part], distances[part] = sorted_neighbors(found, squared, n_neighbors)
        if self.metric == "cosine":
            return Neighbors(indices, distances / 2)
        distances = np.sqrt(distances, out=distances)
        distances *= self._scale
        return Neighbors(indices, distances)

    def _squared(
        self, faiss: Any, rows: NDArray[np.float32], asked: Ints, found: NDArray[np.int64],
        own: Ints,
    ) -> NDArray[np.float32]:  # fmt: skip
        """Squared distances of some rows in all dimensions; inf for nobody (-1) and a row itself.

        Rows are taken from where they are: copies of a block would take as long as its distances.
        """
        targets = np.ascontiguousarray(np.maximum(found, 0)).ravel()
        sources = np.repeat(asked.astype(np.int64, copy=False), found.shape[1])
        out = np.empty(found.size, dtype=np.float32)
        pointers = [faiss.swig_ptr(a) for a in (rows, sources, self._rows, targets, out)]
        faiss.pairwise_indexed_L2sqr(rows.shape[1], found.size, *pointers)
        squared = out.reshape(found.shape)
        if self._directed is not None:  # who has no direction is 1 away from all
            squared[~self._directed[np.maximum(found, 0)]] = 2.0
            squared[~np.any(rows[asked], axis=1)] = 2.0
        squared[(found < 0) | (found == own[:, None])] = np.inf
        return squared


def _recall(truth: NDArray[np.int64], found: NDArray[np.int64]) -> float:
    """Share of each row's true neighbours, itself included, that were found."""
    hits = sum(len(np.intersect1d(t, f)) for t, f in zip(truth, found))
    return hits / truth.size
