"""The vote of the nearest labelled samples (equations 5 and 6).

The k labelled samples with the largest walk weights vote with those weights;
the class with the largest sum wins, the first class among equals.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_TIE = 1e-9  # sums closer than this share are equal: rounding must not choose a class


def class_shares(
    weights: NDArray[np.float64],
    classes_of: NDArray[np.intp],
    n_neighbors: int,
    n_classes: int,
) -> NDArray[np.float64]:
    """Return each class's share of the vote.

    Parameters
    ----------
    weights : ndarray of shape (n_rows, n_voters)
        Weights of the voters of every row, heaviest first, on any scale.
    classes_of : ndarray of shape (n_rows, n_voters)
        Class numbers of those voters.
    n_neighbors : int
        k: only the first k vote.
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        Rows sum to 1, or are all 0 where no voter has any weight.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldknn.vote import class_shares
    >>> class_shares(np.array([[2.0, 1.0, 1.0]]), np.array([[0, 1, 1]]), 3, 2)
    array([[0.5, 0.5]])
    """
    k = min(n_neighbors, weights.shape[1])
    n_rows = len(weights)
    flat = np.arange(n_rows)[:, None] * n_classes + classes_of[:, :k]
    sums: NDArray[np.float64] = np.bincount(
        flat.ravel(), weights[:, :k].ravel(), minlength=n_rows * n_classes
    ).astype(np.float64, copy=False)
    return normalized(sums.reshape(n_rows, n_classes))


def normalized(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide every row by its sum; rows of zeros stay zeros."""
    total = scores.sum(axis=1, keepdims=True)
    return np.divide(scores, total, out=np.zeros_like(scores), where=total > 0)


def winners(shares: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the number of the winning class of every row, the first among equals.

    Parameters
    ----------
    shares : ndarray of shape (n_rows, n_classes)
        Class scores, not negative.

    Returns
    -------
    ndarray of int
        Class numbers.
    """
    best = shares.max(axis=1, keepdims=True)
    answer: NDArray[np.intp] = np.argmax(shares >= best * (1 - _TIE), axis=1)
    return answer


def class_mass_factors(
    shares: NDArray[np.float64], prior: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the factors prior_c / mass_c of class-mass normalisation.

    Parameters
    ----------
    shares : ndarray of shape (n_rows, n_classes)
        Shares of the unlabelled rows.
    prior : ndarray of shape (n_classes,)
        The share of rows that each class should have.

    Returns
    -------
    ndarray of shape (n_classes,)
        Multiply a row of shares by this and normalise again. A class that no
        row leans to at all has factor 1.
    """
    mass = shares.sum(axis=0) / max(1.0, float(shares.sum()))
    return np.divide(prior, mass, out=np.ones_like(prior), where=mass > 0)
