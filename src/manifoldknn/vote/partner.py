"""A partner in the vote: another classifier, trained on the labelled rows alone.

Its probabilities, to which a little is added since few rows taught them,

    s_c = (p_c + 0.02) / Σ_c (p_c + 0.02),

join the densities (see `votes`). Where labels are hidden it is trained on the visible ones. It
knows classes by their numbers, and works on the CPU wherever the rows are.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from manifoldknn.base import Floats, Ints
from manifoldknn.base.tensors import as_numpy, chosen_rows
from manifoldknn.base.threads import in_threads, thread_count
from manifoldknn.vote.similarities import row_chunks

logger = logging.getLogger(__name__)

TREES = 200
_ADDED = 0.02
LOUDEST = float(np.log1p(1 / _ADDED))  # by how much log s of two classes can differ


@dataclass(frozen=True)
class Partner:
    """A classifier fitted on class numbers, and the threads that may ask it at a time."""

    fitted: Any
    n_classes: int
    n_jobs: int | None

    def said(self, X: Any) -> Floats:
        """Return log s of rows, which may be a tensor."""
        X = as_numpy(X)
        parts = [X[part] for part in row_chunks(X.shape[0], X.shape[1], self.n_classes)]
        found = in_threads(self._asked, parts, self.n_jobs)
        shares = np.concatenate([np.empty((0, self.n_classes)), *found])
        shares += _ADDED
        shares /= shares.sum(axis=1, keepdims=True)
        return np.log(shares, out=shares)

    def _asked(self, X: Any) -> Floats:
        shares: Floats = np.asarray(self.fitted.predict_proba(_narrow(X)), np.float64)
        right = shares.shape == (X.shape[0], self.n_classes)
        if not right or not (np.isfinite(shares) & (shares >= 0)).all():
            raise ValueError(
                f"partner of type {type(self.fitted).__name__} gave no probabilities for each of "
                f"the {self.n_classes} classes: bring a classifier that does, or partner='forest'."
            )
        return shares

    def hidden(self, X: Any, codes: Ints, groups: list[Ints]) -> list[Floats]:
        """Return log s of rows while their labels are hidden, group by group."""
        out = []
        for group in groups:
            there = np.zeros(len(codes), dtype=bool)
            there[group] = True
            taught = trained(self.fitted, X, np.where(there, -1, codes), self.n_jobs)
            out.append(taught.said(chosen_rows(X, there)))
        return out


def trained(made: Any, X: Any, codes: Ints, n_jobs: int | None) -> Partner:
    """Return a clone of a classifier, trained on the rows whose class numbers are not -1."""
    labeled, fitted = codes >= 0, clone(made)
    if n_jobs != 1:
        fitted.set_params(n_jobs=thread_count(n_jobs))
    fitted.fit(_narrow(chosen_rows(X, labeled)), codes[labeled])
    if n_jobs != 1:  # they would add up trees in any order, and so share out rows instead
        fitted.set_params(n_jobs=1)
    return Partner(fitted, int(codes.max()) + 1, n_jobs)


def _narrow(X: Any) -> Any:
    """Return sparse rows with places in 32 bits, as trees want them; dense ones as they are."""
    if not sparse.issparse(X):
        return X
    places = (part.astype(np.int32, copy=False) for part in (X.indices, X.indptr))
    return sparse.csr_array((X.data, *places), shape=X.shape)


def first_partner(
    partner: Any, X: Any, codes: Ints, *, random_state: Any, n_jobs: int | None
) -> Partner | None:
    """Return the partner, trained; None without one, and where there is one class only.

    A forest is the same for any number of threads; other partners have their own ways with them.
    """
    if partner is None or codes.max() < 1:
        return None
    made = partner
    if isinstance(partner, str):
        from sklearn.ensemble import RandomForestClassifier  # which takes a moment

        seed = 0 if random_state is None else random_state
        if isinstance(seed, np.random.RandomState):
            seed = int(seed.randint(2**31 - 1))
        made = RandomForestClassifier(TREES, class_weight="balanced", random_state=seed, n_jobs=1)
    found = trained(made, X, codes, n_jobs if made is not partner else 1)
    name, count = type(found.fitted).__name__, np.count_nonzero(codes >= 0)
    logger.info("partner: %s, trained on %d labelled rows, on the CPU", name, count)
    return found
