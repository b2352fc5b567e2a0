"""The attributes of a classifier, and how a change that fails is taken back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from manifoldknn.model.fitted import Fitted
    from manifoldknn.vote.hidden import HiddenLabels


class FittedState:
    """Parameters and fitted attributes that the parts of the classifier share."""

    n_neighbors: int
    vote: str
    graph: str
    graph_neighbors: int
    alpha: Any
    tree_depth: int
    theta: float
    metric: Any
    tol: float
    max_iter: int
    neighbors: Any
    unlabeled: Any
    on_unreached: str
    n_jobs: int | None
    device: Any
    verbose: int

    classes_: NDArray[Any]
    transduction_: NDArray[Any]
    label_distributions_: NDArray[np.float64]
    labeled_indices_: NDArray[np.intp]
    unreached_: NDArray[np.bool_]
    n_walked_: int
    sigma_: float
    alpha_: float
    sharpness_: float | None
    class_prior_: NDArray[np.float64]
    calibrated_: bool
    hidden_labels_: HiddenLabels | None

    fitted_: Fitted  # and everything else that a fit leaves

    def _all_or_nothing(self) -> AbstractContextManager[None]:
        """Put everything back if the block fails."""
        return all_or_nothing(self)


@contextmanager
def all_or_nothing(model: Any) -> Iterator[None]:
    """Put a model's attributes, which are replaced and never changed, back if the block fails."""
    before = dict(model.__dict__)
    try:
        yield
    except BaseException:
        model.__dict__ = before  # nothing is half done
        raise
