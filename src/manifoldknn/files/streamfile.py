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
from manifoldknn.model.arrivals import UNKNOWN, Arrivals
from manifoldknn.model.geometry import list_settings, settings_changed
from manifoldknn.search.growing import GrowingArray
from manifoldknn.search.neighbors import Neighbors
from manifoldknn.vote.walked import Walked

if TYPE_CHECKING:
    from manifoldknn.classifier import ManifoldKNNClassifier

__all__ = ["Arrays", "floats", "plain_stream", "put_stream", "require", "restored_stream"]

Arrays = dict[str, NDArray[Any]]

_OF_ARRIVALS = ("seen", "indices", "z", "residuals", "spacings", "gaps", "off_manifold")


def put_stream(classifier: ManifoldKNNClassifier) -> Arrays:
    """Return the arrays to write, by the names that `restore_stream` reads."""
    low, high, length = classifier.fitted_.edges
    arrays: Arrays = {
        "lists_indices": np.asarray(classifier.fitted_.lists.indices),
        "lists_distances": np.asarray(classifier.fitted_.lists.distances),
        "edges_low": low,
        "edges_high": high,
        "edges_length": length,
    }
    if classifier.fitted_.arrivals is not None:
        for name in _OF_ARRIVALS:
            arrays[f"late_{name}"] = getattr(classifier.fitted_.arrivals, name).values
    return arrays


def plain_stream(classifier: ManifoldKNNClassifier) -> dict[str, Any]:
    """Return the numbers to write beside them."""
    return {
        "n_walked": int(classifier.n_walked_),
        "n_first": int(classifier.fitted_.index.first.n_samples),
        "lists_as_new": bool(classifier.fitted_.lists_as_new),
        # What lists and pairs follow from, unless parameters were changed since.
        "settings_hold": not settings_changed(classifier),
    }


def restored_stream(
    classifier: ManifoldKNNClassifier, walk: Walked, arrays: Arrays, data: dict[str, Any]
) -> dict[str, Any]:
    """Return what `put_stream` and `plain_stream` wrote, by the names that `Fitted` has for it.

    Every number that compiled code would trust is checked.
    """
    n, n_walked = len(classifier.unreached_), data["n_walked"]
    indices = _numbers(arrays, "lists_indices", n_walked)
    require(indices.ndim == 2 and len(indices) == n_walked and indices.shape[1] > 0, "neighbours")
    distances = floats(arrays, "lists_distances", indices.shape)
    low, high = (_numbers(arrays, f"edges_{end}", n_walked) for end in ("low", "high"))
    require(low.ndim == 1 and low.shape == high.shape and bool((low < high).all()), "edges")
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
    n_late, width = n - n_walked, late["z"].shape[-1]
    seen, near = _numbers(arrays, "late_seen", n), _numbers(arrays, "late_indices", n)
    require(seen.shape == (n_late,) and near.shape == (n_late, width), "late rows")
    require(bool((np.diff(seen) >= 0).all() and (seen >= n_walked).all()), "late rows")
    # A row leans on rows that came before it, so that they can be combined in order.
    require(bool((near < seen[:, None]).all()), "late rows")
    require(late["off_manifold"].shape == (n_late,), "late rows")
    require(late["off_manifold"].dtype == np.int8, "late rows")
    require(bool(np.isin(late["off_manifold"], (UNKNOWN, 0, 1)).all()), "late rows")
    floats(arrays, "late_z", (n_late, width))
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


def _numbers(arrays: Arrays, name: str, below: int) -> NDArray[Any]:
    """Return an array of row numbers, all of them possible."""
    array = arrays[name]
    require(array.dtype.kind == "i", name)
    require(bool((array >= 0).all() and (array < below).all()), name)
    return array


def floats(arrays: Arrays, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return an array of finite numbers of a known shape; anything else raises ValueError."""
    array = arrays[name]
    require(array.shape == shape and array.dtype == np.float64, name)
    require(bool(np.isfinite(array).all()), name)
    return array


def require(condition: bool, what: str) -> None:
    """Raise ValueError that names `what` unless the condition holds."""
    if not condition:
        raise ValueError(f"its {what} cannot be")
