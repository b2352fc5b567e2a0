"""A map of the rows in the plane: near on the page means near on the graph.

Neighbours attract and all rows push each other away, as t-SNE (van der Maaten and Hinton, 2008) has
it. With p_ij the share of edge ij among all edges, and q_ij = 1/(1 + ‖y_i − y_j‖²), row i moves by

    e Σ_j p_ij q_ij (y_j − y_i) + Σ_j q_ij² (y_i − y_j) / Σ q

where e > 1 at first, so that groups find together before they spread. The second sum is taken over
a grid: rows are dealt out to the corners around them, and a Fourier transform adds the rest.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft, linalg, sparse

from manifoldknn.base.threads import Crew, thread_count
from manifoldknn.walk.aggregates import contracted, grouped

_NEIGHBORS = 10
_GATHERING, _SPREADING = 50, 70  # rounds
_SETTLING = 40  # rounds of all rows, where groups of them went first
_MOST_AT_ONCE = 40_000  # rows, or groups
_TOGETHER = 12.0  # e of the first rounds
_MOST_GROUPS = 1500  # whose place is found by eigenvectors
_APART = 1e-3  # share of the edges that ties islands
_CELL = 0.35  # side of a cell: rows that are nearer hardly push each other
_MOST_CELLS = 512  # along a side
_STEP = 32  # number of cells is a multiple of it, so that the kernels serve several rounds
_FINER = 16  # sizes of cells between one and its double, for the same reason
_EDGES_AT_ONCE = 1 << 17  # what is computed of them stays in the cache


def map_layout(
    neighbors: NDArray[np.intp], random_state: int = 0, *, n_jobs: int | None = None
) -> NDArray[np.float32]:
    """Return a place in the plane for every row, near its neighbours.

    Parameters
    ----------
    neighbors : ndarray of shape (n_rows, n_neighbors)
        Row numbers of the neighbours of every row, nearest first, such as
        ``classifier.fitted_.lists.indices``; the first ten count.
    random_state : int, default=0
        Seed of the small differences that part rows which begin at the same place.
    n_jobs : int, optional
        Threads; all cores if None.

    Returns
    -------
    ndarray of shape (n_rows, 2)
        The same for the same neighbours and seed, whatever number of threads there is.

    Notes
    -----
    Rows begin where eigenvectors of the grouped graph put their group. Each of 120 rounds costs
    O(edges + rows + cells log cells), with at most 512² cells. Of more than 40,000 rows groups go
    these rounds, and the rows 40.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldknn.insight.layout import map_layout
    >>> ring = (np.arange(60)[:, None] + [1, -1, 2, -2]) % 60
    >>> places = map_layout(ring)
    >>> lengths = np.linalg.norm(places - places[ring[:, 0]], axis=1)
    >>> bool(lengths.max() < np.ptp(places, axis=0).max() / 4)
    True
    """
    n = len(neighbors)
    if n < 2 or not neighbors.shape[1]:
        return np.zeros((n, 2), dtype=np.float32)
    rng = np.random.default_rng(random_state)
    edges = _edges(neighbors[:, :_NEIGHBORS])
    groups = grouped(_logarithms(edges))
    few = groups[-1].max() < _MOST_GROUPS
    start = _spectral(edges, groups[-1]) if few else rng.normal(size=(n, 2))
    start += 0.01 * rng.normal(size=(n, 2))
    order = np.argsort(groups[-1], kind="stable")  # what is near in the graph is near in memory
    edges, first = edges[order][:, order], np.ascontiguousarray(start[order].T, dtype=np.float32)
    rounds = _GATHERING, _SPREADING
    several = next((of for of in groups if of.max() < _MOST_AT_ONCE), groups[-1])
    if n > _MOST_AT_ONCE > several.max():  # first where groups are, then within them
        first = _by_group(edges, first, several[order], rounds, n_jobs)
        rounds = 0, _SETTLING
    places: NDArray[np.float32] = np.empty((n, 2), dtype=np.float32)
    places[order] = _moved(edges, first, rounds, n_jobs).T
    return places


def framed_places(neighbors: NDArray[np.intp], n_jobs: int | None = None) -> NDArray[np.float64]:
    """Return places of all rows between 0 and 1, on one scale, the map's long side lying."""
    found = map_layout(neighbors, n_jobs=n_jobs).astype(np.float64)
    found = found @ np.linalg.eigh(found.T @ found)[1][:, ::-1]  # its mean is 0
    low, high = found.min(axis=0), found.max(axis=0)
    span = float((high - low).max())
    return 0.5 + (found - (low + high) / 2) / (span if span > 0 else 1.0)


def _edges(neighbors: NDArray[np.intp]) -> Any:
    """Return edges to and from neighbours; those both ways count twice."""
    n, k = neighbors.shape
    ones = np.ones(n * k, dtype=np.float32)
    ends = sparse.csr_array((ones, neighbors.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    return (ends + ends.T).tocsr()


def _logarithms(edges: Any) -> Any:
    logs = np.log(edges.data)
    return sparse.csr_array((logs, edges.indices, edges.indptr), shape=edges.shape)


def _by_group(
    edges: Any,
    places: NDArray[np.float32],
    groups: NDArray[np.intp],
    rounds: tuple[int, int],
    n_jobs: int | None,
) -> NDArray[np.float32]:
    """Return where rows begin once their groups have found their places.

    That is the mean of where the groups of their neighbours are.
    """
    n, m = len(groups), int(groups.max()) + 1
    belongs = sparse.csr_array((np.ones(n, np.float32), (np.arange(n), groups)), shape=(n, m))
    sizes = np.bincount(groups).astype(np.float32)
    between = contracted(edges, groups).astype(np.float32)
    if not between.nnz:
        return places
    start = np.ascontiguousarray((belongs.T @ places.T).T / sizes)
    found = _moved(between, start, rounds, n_jobs)
    around = edges @ np.ascontiguousarray(found[:, groups].T)
    around /= (edges @ np.ones(n, dtype=np.float32))[:, None]
    return np.ascontiguousarray(around.T)


def _spectral(edges: Any, groups: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return places by the two slowest ways in which a walk over groups forgets its start."""
    n, m = len(groups), int(groups.max()) + 1
    belongs = sparse.csr_array((np.ones(n), (np.arange(n), groups)), shape=(n, m))
    weights = (belongs.T @ edges @ belongs).toarray()
    weights += _APART * weights.sum() / m**2
    scale = 1.0 / np.sqrt(weights.sum(axis=1))
    weights *= scale[:, None] * scale
    _, vectors = linalg.eigh(weights, subset_by_index=(max(0, m - 3), m - 1))
    slow = np.zeros((m, 2))
    slow[:, : vectors.shape[1] - 1] = (vectors * scale[:, None])[:, -2::-1]
    places = slow[groups]
    return places / np.maximum(places.std(axis=0), 1e-12)


def _moved(
    edges: Any, places: NDArray[np.float32], rounds: tuple[int, int], n_jobs: int | None
) -> NDArray[np.float32]:
    """Let rows find their places, with momentum, faster where they keep their direction.

    Places are columns here and below: sums along rows of memory are much faster.
    """
    attract, repel = _Attraction(edges), _Repulsion(thread_count(n_jobs))
    speed, gain = np.zeros_like(places), np.ones_like(places)
    gathering, spreading = rounds
    pulls, pushes = np.zeros((2, *places.shape), dtype=np.float32)

    def work(block: tuple[int, int] | None) -> None:
        if block is None:
            pushes[:] = repel(places)
        else:
            attract(places, block, pulls)

    with Crew(n_jobs) as crew:
        for number in range(gathering + spreading):
            early = number < gathering
            crew.do(work, [None, *attract.blocks])
            force = (_TOGETHER if early else 1.0) * pulls + pushes
            gain = np.where(force * speed > 0, gain + 0.2, np.maximum(0.8 * gain, 0.01))
            speed = (0.5 if early else 0.8) * speed + (1 / 3 if early else 4 / 3) * gain * force
            places = places + speed
            places -= places.mean(axis=1, keepdims=True)
    return places


class _Attraction:
    """n Σ_j p_ij q_ij (y_j − y_i), for all rows in blocks of them."""

    def __init__(self, edges: Any) -> None:
        self._edges, n = edges, edges.shape[0]
        self._scale = np.float32(n / edges.data.sum())
        cuts = np.searchsorted(edges.indptr, np.arange(0, edges.nnz, _EDGES_AT_ONCE))
        self.blocks = list(pairwise([*np.unique(cuts).tolist(), n]))

    def __call__(
        self, places: NDArray[np.float32], block: tuple[int, int], out: NDArray[np.float32]
    ) -> None:
        """Fill in what pulls the rows of a block; those without edges stay as they are."""
        first, last = block
        ends = self._edges.indptr[first : last + 1]
        entries, counts = slice(ends[0], ends[-1]), np.diff(ends)
        other = self._edges.indices[entries]
        row = np.repeat(np.arange(first, last, dtype=other.dtype), counts)
        ways = [np.take(along, other, mode="clip") for along in places]
        for way, along in zip(ways, places):  # bounds are known, and checking them takes longer
            way -= np.take(along, row, mode="clip")
        shares = self._edges.data[entries] * self._scale
        shares /= 1 + ways[0] * ways[0] + ways[1] * ways[1]
        some = np.flatnonzero(counts)
        for axis, way in enumerate(ways):
            out[axis, first + some] = np.add.reduceat(way * shares, ends[some] - ends[0])


class _Repulsion:
    """n Σ_j q_ij² (y_i − y_j) / Σ q for all rows, over a grid."""

    _of: tuple[int, float] | None = None  # cells along a side and their size, of the kernels

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def __call__(self, places: NDArray[np.float32]) -> NDArray[np.float32]:
        low = places.min(axis=1, keepdims=True)
        span = float((places - low).max())
        coarser = max(1.0, span / (_MOST_CELLS - 2) / _CELL)
        cell = _CELL * 2.0 ** (np.ceil(_FINER * np.log2(coarser)) / _FINER)
        side = 2 * _STEP * fft.next_fast_len(int(span / cell + 2) // _STEP + 1)  # half is padding
        if self._of != (side, cell):
            self._make_kernels(side, cell)
        at, shares = _corners((places - low) / np.float32(cell), side)
        mass = np.bincount(at.ravel(), shares.ravel(), minlength=side * side)
        waves = self._waves(mass.astype(np.float32).reshape(side, side))
        power = (waves.real**2 + waves.imag**2) * self._near
        # Only half of the waves are kept: the others are their mirror images.
        total = (2 * power.sum() - power[:, 0].sum() - power[:, -1].sum()) / side**2
        scale = np.float32(places.shape[1] / max(float(total) - places.shape[1], 1e-3))
        out = np.empty_like(places)
        for axis, kernel in enumerate(self._push):
            field = fft.irfft2(
                waves * kernel, s=(side, side), overwrite_x=True, workers=self._threads
            )
            seen = np.take(field.ravel(), at, mode="clip")
            np.einsum("ij,ij->j", seen, shares, out=out[axis])
        out *= scale
        return out

    def _make_kernels(self, side: int, cell: float) -> None:
        steps = (cell * side * fft.fftfreq(side)).astype(np.float32)
        near = 1 / (1 + steps[:, None] ** 2 + steps**2)
        self._near = self._waves(near).real
        self._push = self._waves(near**2 * steps[:, None]), self._waves(near**2 * steps)
        self._of = side, cell

    def _waves(self, values: NDArray[np.float32]) -> NDArray[np.complex64]:
        found: NDArray[np.complex64] = fft.rfft2(values, overwrite_x=True, workers=self._threads)
        return found


def _corners(places: NDArray[np.float32], side: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the four corners of the cell around every place, and what share of it each gets."""
    cells = places.astype(np.int32)
    x, y = places - cells.astype(np.float32)  # with whole numbers it would be double precision
    first = cells[0] * np.int32(side) + cells[1]
    corners = first + np.array([[0], [1], [side], [side + 1]], dtype=np.int32)
    return corners, np.stack([(1 - x) * (1 - y), (1 - x) * y, x * (1 - y), x * y])
