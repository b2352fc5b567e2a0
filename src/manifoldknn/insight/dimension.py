"""Is the data manifold distributed? Estimates of the intrinsic dimension.

The paper calls a data set manifold distributed if its intrinsic dimension, the number of
directions in which one can move without leaving the data, is below the number of its features.
Both estimators here read that number off the distances to the nearest neighbours.
"""

from collections.abc import Callable
from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_array

from manifoldknn.base import Floats
from manifoldknn.graph.spanning import connected_parts
from manifoldknn.search.repeated import equal_rows

Method = Literal["mle", "two_nn"]

# Largest ratios that "two_nn" leaves out: the share its authors use. The distribution's tail is
# where noise and uneven density show most.
_DISCARDED = 0.1

# Distances that grow with the square of a length. They would halve the estimate without a word.
_SQUARED = {"cosine", "correlation", "sqeuclidean"}
# Distances that shifting the data leaves alone and scaling the data scales.
_NORMS = {"euclidean", "l2", "manhattan", "cityblock", "l1", "chebyshev", "minkowski"}

# Rounding leaves equal distances unequal by up to about 1e-8; no data has a dimension of a million.
_FLAT = 1e-6
_EQUIDISTANT = (
    "The nearest neighbours of the samples are all at the same distance, as on a regular grid, "
    "which leaves the dimension open. Use method='mle' with a larger n_neighbors, or add a little "
    "noise to X."
)


def intrinsic_dimension(
    X: ArrayLike | sparse.sparray | sparse.spmatrix,
    *,
    method: Method = "mle",
    n_neighbors: int = 20,
    metric: str | Callable[..., float] = "euclidean",
    n_jobs: int | None = None,
) -> float:
    r"""Estimate the intrinsic dimension of a data set.

    A data set is manifold distributed in the sense of Tu et al. [1]_ if its intrinsic dimension is
    below the number of its features: ``intrinsic_dimension(X) < X.shape[1]``. Estimates scatter by
    a few per cent, so that only a clear difference means anything.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The samples: finite, at least 3 of them distinct. Repeated rows are counted once, for a
        distance of 0 says nothing about dimension.
    method : {"mle", "two_nn"}, default="mle"
        - "mle": maximum likelihood from the `n_neighbors` nearest neighbours. Steady, but large
          dimensions come out too low because neighbourhoods reach the edge of the data.
        - "two_nn": from the two nearest neighbours only. Less affected by edges, curvature and
          uneven density, more by noise and by rounded values, and it scatters more.
    n_neighbors : int, default=20
        Neighbours per sample for "mle", at least 2, and no more than there are other distinct
        rows (larger values are lowered to that). "two_nn" takes no notice of it.
    metric : str or callable, default="euclidean"
        Distance, as :class:`sklearn.neighbors.NearestNeighbors` takes it. It has to grow like a
        length: "cosine", "correlation" and "sqeuclidean" grow like its square and are refused, and
        so is "precomputed".
    n_jobs : int or None, default=None
        Parallel jobs of the neighbour search.

    Returns
    -------
    float
        The estimate, above 0 and in general not a whole number. It can lie slightly above
        ``X.shape[1]``.

    Raises
    ------
    ValueError
        If `X` has missing or infinite values or fewer than 3 distinct rows, if an argument is out
        of range, or if each sample has all its neighbours at one and the same distance, as on a
        regular grid.

    Notes
    -----
    Both take the density around a sample as even, which makes the number of samples within the
    distance :math:`t` grow like :math:`t^m`. Let :math:`T_j(x)` be the distance from :math:`x` to
    its :math:`j`-th nearest neighbour, n the number of distinct rows and k `n_neighbors`.

    "mle" is the estimate of Levina and Bickel [2]_ at one k. Around each sample,

    .. math:: \hat m(x)^{-1} = \frac{1}{k - 1} \sum_{j=1}^{k-1} \log \frac{T_k(x)}{T_j(x)},

    and as MacKay and Ghahramani [3]_ propose, it is the inverses that are averaged over the
    samples: :math:`\hat m = n / \sum_x \hat m(x)^{-1}`. Averaging :math:`\hat m(x)` itself gives
    too much when k is small.

    "two_nn" is the estimate of Facco et al. [4]_. The ratios :math:`\mu = T_2(x) / T_1(x)` follow
    :math:`F(\mu) = 1 - \mu^{-m}`, so that :math:`-\log(1 - F)` over :math:`\log \mu` is a line
    through the origin with the slope m. It is fitted by least squares to the sorted ratios
    :math:`\mu_{(i)}` with :math:`F = i / n`, without the largest tenth of them. (The
    maximum-likelihood form would be "mle" with ``n_neighbors=2``.)

    Constant features do not matter. Isolated tight clusters make the estimate that of the clusters,
    not 0.

    The neighbour search is all the cost: about :math:`n \log n` for few features, :math:`n^2` times
    the number of features for many. Memory is :math:`O(nk)` besides a copy of `X`.

    References
    ----------
    .. [1] E. Tu, Y. Zhang, L. Zhu, J. Yang and N. Kasabov, "A graph-based semi-supervised k
       nearest-neighbor method for nonlinear manifold distributed data classification",
       Information Sciences 367-368, 2016.
    .. [2] E. Levina and P. J. Bickel, "Maximum likelihood estimation of intrinsic dimension",
       Advances in Neural Information Processing Systems 17, 2005.
    .. [3] D. J. C. MacKay and Z. Ghahramani, "Comments on 'Maximum likelihood estimation of
       intrinsic dimension' by E. Levina and P. Bickel (2004)", 2005.
    .. [4] E. Facco, M. d'Errico, A. Rodriguez and A. Laio, "Estimating the intrinsic dimension of
       datasets by a minimal neighborhood information", Scientific Reports 7, 2017.

    Examples
    --------
    A sheet rolled up in space has two dimensions, fewer than its three coordinates:

    >>> from sklearn.datasets import make_swiss_roll
    >>> from manifoldknn.insight.dimension import intrinsic_dimension
    >>> X, _ = make_swiss_roll(2000, random_state=0)
    >>> round(intrinsic_dimension(X))
    2
    >>> intrinsic_dimension(X) < X.shape[1]
    True
    """
    _check_arguments(method, n_neighbors, metric)
    samples = _checked(X, metric)
    first = equal_rows(samples)[0]
    samples = samples if len(first) == samples.shape[0] else samples[first]
    wanted = 2 if method == "two_nn" else int(n_neighbors)
    distances = _neighbor_distances(samples, wanted, metric, n_jobs)
    return _two_nn(distances) if method == "two_nn" else _mle(distances)


def _mle(distances: Floats) -> float:
    """Estimate from sorted distances of shape (n, k): one over the mean inverse dimension."""
    inverse = np.mean(np.log(distances[:, -1:] / distances[:, :-1]))
    if inverse < _FLAT:
        raise ValueError(_EQUIDISTANT)
    return float(1 / inverse)


def _two_nn(distances: Floats) -> float:
    """Estimate from sorted distances of shape (n, 2): the slope of a line through the origin."""
    n = len(distances)
    kept = int(n * (1 - _DISCARDED))  # below n, so that 1 - F stays above 0
    log_mu = np.sort(np.log(distances[:, 1] / distances[:, 0]))[:kept]
    if log_mu[-1] < _FLAT:
        raise ValueError(_EQUIDISTANT)
    height = -np.log1p(-np.arange(1, kept + 1) / n)
    return float(log_mu @ height / (log_mu @ log_mu))


def _neighbor_distances(
    samples: Any, k: int, metric: str | Callable[..., float], n_jobs: int | None
) -> Floats:
    """Return sorted, positive distances to the k nearest other rows (or to all, if fewer).

    Distinct rows can still be at distance 0, by rounding or because the metric ignores their
    difference. Such rows are merged and the search is repeated.
    """
    while True:
        n = samples.shape[0]
        if n < 3:
            raise ValueError(
                f"X has {n} distinct row{'s' * (n != 1)}; the intrinsic dimension can be estimated "
                "from 3 and means something from about 100. Pass more samples."
            )
        search = NearestNeighbors(n_neighbors=min(k, n - 1), metric=metric, n_jobs=n_jobs)
        distances, neighbors = search.fit(samples).kneighbors()
        rows, places = np.nonzero(distances <= 0)
        if len(rows) == 0:
            return np.asarray(distances, dtype=np.float64)
        group = connected_parts(rows, neighbors[rows, places], n)
        samples = samples[np.unique(group, return_index=True)[1]]


def _checked(X: Any, metric: str | Callable[..., float]) -> Any:
    """Return X as float64, dense or CSR, brought to a size at which squares are harmless."""
    samples = check_array(
        X, accept_sparse="csr", dtype=np.float64, copy=True, ensure_all_finite=False
    )
    dense = isinstance(samples, np.ndarray)
    values = samples if dense else samples.data
    if not np.isfinite(values).all():
        raise ValueError(
            "X has missing or infinite values. Drop those rows or fill them in first, for instance "
            "with sklearn.impute.SimpleImputer."
        )
    # Dimension knows neither scale nor origin, but the search squares its numbers: 1e-200 would
    # vanish, and a large common offset (a time stamp, say) would drown the differences.
    if metric in _NORMS:
        largest = np.abs(values).max(initial=0.0)
        if largest > 0:
            values /= largest
        if dense:
            samples -= samples.mean(axis=0)
    return samples


def _check_arguments(method: Any, n_neighbors: Any, metric: Any) -> None:
    """Refuse arguments that cannot be meant."""
    if method not in get_args(Method):
        known = ", ".join(map(repr, get_args(Method)))
        raise ValueError(f"method must be one of {known}, not {method!r}.")
    if not isinstance(n_neighbors, Integral) or n_neighbors < 2:
        raise ValueError(f"n_neighbors must be an int of at least 2, not {n_neighbors!r}.")
    if metric in _SQUARED:
        raise ValueError(
            f"metric={metric!r} grows like the square of a length, which would halve the result. "
            "Scale each row to length 1 (centre it first for 'correlation') and use 'euclidean'."
        )
    if metric == "precomputed":
        raise ValueError(
            "metric='precomputed' is not supported: pass the samples and the metric's name."
        )
