"""From similarities to class shares: the two votes (equations 5 and 6, and ours).

- `ClassVote`, the default. Classes are densities f (see `densities`), and

      p_c = (1 - ε) · π_c f_c^β / Σ_c π_c f_c^β + ε / C,   ε = 0.02,

  so that no answer is ever quite certain; π is the prior and β the sharpness. Where a partner has a
  say (see `partner`), π_c f_c^β s_c^γ stands in place of π_c f_c^β. Rows unlike anything labelled
  are doubted (see `doubt`).
- `NeighborVote`, the paper's. The k labelled samples with the largest walk weights vote with
  those weights.

The class with the largest share wins, the first class among equals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifoldknn.base import Array, Floats, Ints
from manifoldknn.vote.doubt import doubted, trust
from manifoldknn.vote.similarities import row_chunks

DOUBT = 0.02  # ε, what is shared out over all classes whatever the densities say
_TIE = 1e-9  # sums closer than this share are equal: rounding must not choose a class


@dataclass(frozen=True)
class ClassVote:
    """The vote of class densities, with shares π that sum to 1, sharpness β, and a partner's γ.

    `usual` is log f̂, what most labels reach of their own class: see `doubt`.

    >>> ClassVote(np.array([0.5, 0.5]), 1.0).shares(np.log([[1.0, 0.25]]))
    array([[0.794, 0.206]])
    """

    prior: Floats
    sharpness: float
    partner_weight: float = 0.0
    usual: float = -np.inf

    def shares(self, logs: Array, said: Floats | None = None) -> Floats:
        """Return p from log f, on any scale of the row, and log s; zeros where all f are 0."""
        # Class by class: NumPy is many times quicker along long axes.
        powers = np.multiply(logs.T, self.sharpness, dtype=np.float64, order="C")
        powers += np.log(self.prior)[:, None]
        if said is not None:
            powers += self.partner_weight * said.T
        top = powers.max(axis=0)
        reached = ~np.isneginf(top)
        powers -= np.where(reached, top, 0.0)
        np.exp(powers, out=powers)
        powers *= (1.0 - DOUBT) / np.where(reached, powers.sum(axis=0), 1.0)
        powers += DOUBT / len(self.prior) * reached
        return np.ascontiguousarray(powers.T)

    def doubted(self, shares: Floats, log_scale: Array, belonging: Floats) -> Floats:
        """Return shares less sure where densities are small, or a row does not belong."""
        return doubted(shares, trust(log_scale, self.usual, belonging))


@dataclass(frozen=True)
class NeighborVote:
    """The vote of the `n_neighbors` labelled samples nearest by the walk.

    Shares are multiplied by the prior; an equal one changes nothing.
    """

    prior: Floats
    classes_of: Ints
    n_neighbors: int

    def shares(self, logs: Array, said: Any = None) -> Floats:
        """Return class shares from log w̄, on any scale of the row; zeros where all are -inf.

        Nobody else has a say.
        """
        del said
        out = np.empty((len(logs), len(self.prior)))
        for part in row_chunks(len(logs), logs.shape[1]):
            weights, voters = heaviest(logs[part], self.n_neighbors)
            out[part] = class_shares(weights, self.classes_of[voters], len(self.prior))
        return normalized(out * self.prior)

    def doubted(self, shares: Floats, log_scale: Any, belonging: Any) -> Floats:
        """Return shares as they are: they are no probabilities."""
        del log_scale, belonging
        return shares


Vote = ClassVote | NeighborVote


def heaviest(logs: Floats, n_kept: int) -> tuple[Floats, Ints]:
    """Return weights and numbers of the heaviest columns of every row, equal ones by position.

    Weights are relative to the heaviest, which has 1; zeros in a row without any.
    """
    order = np.argsort(-logs, axis=1, kind="stable")[:, :n_kept]
    values = np.take_along_axis(logs, order, axis=1)
    top = np.where(np.isneginf(values[:, :1]), 0.0, values[:, :1])
    return np.exp(values - top), order


def class_shares(weights: Floats, classes_of: Ints, n_classes: int) -> Floats:
    """Return each class's share of the vote; zeros where no voter of the row has any weight.

    Weights may be on any scale; `classes_of` are the class numbers of the voters of every row.

    >>> class_shares(np.array([[2.0, 1.0, 1.0]]), np.array([[0, 1, 1]]), 2)
    array([[0.5, 0.5]])
    """
    n_rows = len(weights)
    flat = np.arange(n_rows)[:, None] * n_classes + classes_of
    sums: Floats = np.bincount(flat.ravel(), weights.ravel(), minlength=n_rows * n_classes).astype(
        np.float64, copy=False
    )
    return normalized(sums.reshape(n_rows, n_classes))


def normalized(scores: Floats) -> Floats:
    """Divide every row by its sum; rows of zeros stay zeros."""
    total = scores.sum(axis=1, keepdims=True)
    return np.divide(scores, total, out=np.zeros_like(scores), where=total > 0)


def two_largest(logs: Array) -> tuple[Array, Array]:
    """Return the largest and the second largest of every row; -inf where there is none.

    Column by column: twice as quick as sorting parts of rows.

    >>> two_largest(np.array([[3.0, 1.0, 2.0]]))
    (array([3.]), array([2.]))
    """
    first = np.full(len(logs), -np.inf, dtype=logs.dtype)
    second = first.copy()
    for column in np.ascontiguousarray(logs.T):
        np.maximum(second, np.minimum(first, column), out=second)
        np.maximum(first, column, out=first)
    return first, second


def winners(shares: Floats) -> Ints:
    """Return the number of the winning class of every row, the first among equals."""
    columns = np.ascontiguousarray(shares.T)  # quicker along long axes
    answer: Ints = np.argmax(columns >= columns.max(axis=0) * (1 - _TIE), axis=0)
    return answer


def class_prior(prior: Any, counts: Ints, classes: Array) -> Floats:
    """Return π, shares that sum to 1.

    "labeled" shrinks the shares of the `counts` n_c of labels towards equal ones by how much they
    could differ by chance: π = (1-λ)/C + λ·n_c/l with λ = max(0, 1 - (C-1)/χ²) and
    χ² = Σ_c (n_c - l/C)² / (l/C).

    >>> class_prior("labeled", np.array([90, 10]), np.array(["a", "b"])).round(3)
    array([0.894, 0.106])
    """
    n_classes = len(counts)
    equal = np.full(n_classes, 1.0 / n_classes)
    if isinstance(prior, str) and prior == "equal":
        return equal
    if isinstance(prior, str) and prior == "labeled":
        mean = counts.sum() / n_classes
        chi = float(np.square(counts - mean).sum() / mean)
        shrunk = max(0.0, 1.0 - (n_classes - 1) / chi) if chi > 0 else 0.0
        return (1.0 - shrunk) * equal + shrunk * counts / counts.sum()
    try:
        shares = np.asarray(None if isinstance(prior, str) else prior, dtype=np.float64)
    except (TypeError, ValueError):
        shares = np.empty(0)
    if shares.shape != (n_classes,):
        raise ValueError(
            f"class_prior={prior!r} must be 'equal', 'labeled' or one number for each of the "
            f"{n_classes} classes {', '.join(map(str, classes[:10]))}, in this order."
        )
    # Divided by the largest first: sums of very large numbers would overflow.
    if np.isfinite(shares).all() and (shares > 0).all():
        shares = shares / shares.max()
        shares = shares / shares.sum()
    if not (np.isfinite(shares).all() and (shares > 0).all()):
        raise ValueError(
            f"class_prior={prior!r} must hold positive, finite numbers: a class that cannot occur "
            "should have no labels."
        )
    return shares
