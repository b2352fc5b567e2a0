"""How well rows are reconstructed, and which are far from everything.

A row's residual r is what its best convex combination of neighbours leaves of
it. How large a residual is usual differs from place to place, so it is compared
with what the row's neighbours leave when they are reconstructed from *their*
neighbours, themselves excluded:

    oddity(x) = max( r / (r̄ + s̄), s / 2s̄ ),

r̄ the root mean square of the neighbours' residuals, s the distance from x to its
nearest sample and s̄ the mean of the neighbours' distances to their nearest sample
that is not equal: where neighbours surround each other r̄ is 0, and s̄ still tells the
scale; where they surround x from afar, as a ring does its centre, r is 0, and s tells.
A row that repeats a sample is not odd. What is too odd is read off the samples themselves.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from manifoldknn.base import Floats, Ints
from manifoldknn.extend.reconstruct import Reconstruction
from manifoldknn.vote.similarities import Similarities, row_chunks

_CHECKED_ROWS = 512  # of the model, whose oddities tell what is usual
_USUAL = 0.99  # share of them that is not to be flagged,
_MOST_USUAL = 0.9, 2.0  # unless that is beyond twice what this share of them is
_LEAST_LIMIT = 0.5


class OwnResiduals:
    """Residuals and spacings of samples among the others, computed when asked for.

    Only remembers what follows from the model: filling it does not change the model, and it is not
    written down with one.
    """

    def __init__(self, n_samples: int) -> None:
        self._values = np.full((n_samples, 3), np.nan)
        self.limit: float | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return OwnResiduals, (len(self._values),)

    def of(self, rows: Ints, reconstructed: Callable[[Ints], Reconstruction]) -> Floats:
        """Return residuals, spacings and gaps of some samples, given any number of times.

        `reconstructed` reconstructs samples from their neighbours, themselves excluded.
        """
        new = np.unique(rows[np.isnan(self._values[rows, 0])])
        if new.size:
            made = reconstructed(new)
            self._values[new] = np.stack([made.residuals, made.spacings, made.gaps], axis=1)
        return self._values[rows]


def oddities(residuals: Floats, spacings: Floats, own: Floats, *, typical: float = 1.0) -> Floats:
    """Compare residuals and spacings with those of the neighbours, as in the text of this module.

    `own` are residuals, spacings and gaps of each row's neighbours, and `typical`, which is
    positive, is a gap where no neighbour has another that is not equal to it. 0 where a row equals
    a sample.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldknn.extend.offmanifold import oddities
    >>> oddities(np.array([2.0, 0.0]), np.array([2.0, 6.0]), np.full((2, 5, 3), 1.0))
    array([1., 3.])
    """
    gaps = own[..., 2]
    known = (gaps > 0).sum(axis=1)
    usual = np.where(known > 0, gaps.sum(axis=1) / np.maximum(known, 1), typical)
    both = np.sqrt(np.square(own[..., 0]).mean(axis=1)) + usual
    with np.errstate(over="ignore"):
        return np.maximum(residuals / both, 0.5 * spacings / usual)


def usual_limit(of_samples: Floats) -> float:
    """Return the oddity beyond which a row is off the manifold, from those of samples.

    Exceeded by 1 % of them, but not beyond twice what 10 % of them exceed (a few samples may be
    outliers themselves), and not below ½.
    """
    finite = of_samples[np.isfinite(of_samples)]
    if not finite.size:
        return _LEAST_LIMIT
    share, times = _MOST_USUAL
    nearly_all = float(np.quantile(finite, _USUAL, method="higher"))
    most = times * float(np.quantile(finite, share, method="lower"))
    return max(_LEAST_LIMIT, min(nearly_all, most))


def checked_rows(n_samples: int) -> Ints:
    """Return the samples whose oddities set the limit: all, or 512 drawn once and for all."""
    if n_samples <= _CHECKED_ROWS:
        return np.arange(n_samples)
    drawn = np.random.default_rng(0).choice(n_samples, _CHECKED_ROWS, replace=False)
    return np.sort(drawn).astype(np.intp)


@dataclass(frozen=True)
class ReconstructionError:
    """What reconstruction from neighbours gets wrong.

    Attributes
    ----------
    samples : float
        The paper's RMSE of the rows, 100·‖X - X̂‖² / ‖X‖², in percent.
    weights : float
        The same of their walk weights.
    residuals : ndarray of shape (n_rows,)
        ‖x - x̂‖ of every row.
    """

    samples: float
    weights: float
    residuals: Floats


def relative_error(truth: Similarities, rebuilt: Similarities) -> float:
    """Return 100·‖T - R‖² / ‖T‖² for similarities T and their reconstruction R; 0 if all are 0."""
    top = max(float(side.log_scale.max(initial=-np.inf)) for side in (truth, rebuilt))
    if np.isneginf(top):
        return 0.0
    wrong = total = 0.0
    for part in row_chunks(len(truth.logs), truth.logs.shape[1]):
        t, r = (np.exp(side.rows(part).logarithms() - top) for side in (truth, rebuilt))
        wrong += float(np.square(t - r).sum())
        total += float(np.square(t).sum())
    return 100.0 * wrong / total if total else 0.0
