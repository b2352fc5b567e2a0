"""What a model needs to go on learning, as plain arrays.

Neighbour lists and linked pairs, which a new label does not change, and the rows
that joined since the last walk.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.extend.offmanifold import OwnResiduals
from manifoldknn.files.checked import Arrays, floats, numbers, require
from manifoldknn.model.arrivals import UNKNOWN, Arrivals
from manifoldknn.model.geometry import list_settings, settings_changed
from manifoldknn.search.growing import GrowingArray
from manifoldknn.search.neighbors import Neighbors
from manifoldknn.vote.walks import Walked

if TYPE_CHECKING:
    from manifoldknn.classifier import ManifoldKNNClassifier

_OF_ARRIVALS = ("seen", "indices", "z", "residuals", "spacings", "gaps", "off_manifold")


def state_arrays(classifier: ManifoldKNNClassifier) -> Arrays:
    """Return the arrays to write, by the names that `restored_state` reads."""
    fitted = classifier.fitted_
    low, high, length = fitted.edges
    arrays: Arrays = {
        "lists_indices": np.asarray(fitted.lists.indices),
        "lists_distances": np.asarray(fitted.lists.distances),
        "edges_low": low,
        "edges_high": high,
        "edges_length": length,
    }
    if fitted.arrivals is not None:
        for name in _OF_ARRIVALS:
            arrays[f"late_{name}"] = getattr(fitted.arrivals, name).values
    return arrays


def state_data(classifier: ManifoldKNNClassifier) -> dict[str, Any]:
    """Return the numbers to write beside them."""
    return {
        "n_walked": int(classifier.n_walked_),
        "n_first": int(classifier.fitted_.index.first.n_samples),
        "lists_as_new": bool(classifier.fitted_.lists_as_new),
        # What lists and pairs follow from, unless parameters were changed since.
        "settings_hold": not settings_changed(classifier),
    }


def restored_state(
    classifier: ManifoldKNNClassifier, walk: Walked, arrays: Arrays, data: dict[str, Any]
) -> dict[str, Any]:
    """Return what `state_arrays` and `state_data` wrote, by the names that `Fitted` has for it.

    Every number that compiled code would trust is checked.
    """
    n, n_walked = len(classifier.unreached_), data["n_walked"]
    indices = numbers(arrays, "lists_indices", n_walked)
    require(indices.ndim == 2 and len(indices) == n_walked and indices.shape[1] > 0, "neighbours")
    distances = floats(arrays, "lists_distances", indices.shape)
    low, high = (numbers(arrays, f"edges_{end}", n_walked) for end in ("low", "high"))
    require(low.ndim == 1 and low.shape == high.shape and (low < high).all(), "edges")
    edges = (
        low.astype(np.intp, copy=False),
        high.astype(np.intp, copy=False),
        floats(arrays, "edges_length", low.shape),
    )
    for name in ("lists_as_new", "settings_hold"):
        require(type(data[name]) is bool, name)
    settings = list_settings(classifier)  # the last of them is the device
    return {
        "lists": Neighbors(indices, distances),
        "edges": edges,
        "lists_as_new": data["lists_as_new"],
        "settings": settings if data["settings_hold"] else settings[-1:],
        "own": OwnResiduals(n_walked),
        "arrivals": _arrivals(classifier, walk, arrays, n, n_walked),
    }


def _arrivals(
    classifier: ManifoldKNNClassifier, walk: Walked, arrays: Arrays, n: int, n_walked: int
) -> Arrivals | None:
    if "late_seen" not in arrays:
        require(n == n_walked, "rows")
        return None
    late = {name: arrays[f"late_{name}"] for name in _OF_ARRIVALS}
    n_late, k = n - n_walked, late["z"].shape[-1]
    seen, near = numbers(arrays, "late_seen", n), numbers(arrays, "late_indices", n)
    require(seen.shape == (n_late,) and near.shape == (n_late, k), "late rows")
    require((np.diff(seen) >= 0).all() and (seen >= n_walked).all(), "late rows")
    # A row leans on rows that came before it, so that they can be combined in order.
    require((near < seen[:, None]).all(), "late rows")
    require(late["off_manifold"].shape == (n_late,), "late rows")
    require(late["off_manifold"].dtype == np.int8, "late rows")
    require(np.isin(late["off_manifold"], (UNKNOWN, 0, 1)).all(), "late rows")
    floats(arrays, "late_z", (n_late, k))
    for name in ("residuals", "spacings", "gaps"):
        floats(arrays, f"late_{name}", (n_late,))
    known = walk.similarities
    table: dict[str, NDArray[Any]] = {
        "logs": known.logs,
        "log_scale": known.log_scale,
        "shares": classifier.label_distributions_,
    }
    columns = {name: GrowingArray(values) for name, values in (table | late).items()}
    assert {"n_walked", *columns} == {field.name for field in fields(Arrivals)}
    return Arrivals(n_walked, **columns)
