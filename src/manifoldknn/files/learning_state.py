"""What a model needs to go on learning, as plain arrays.

Neighbour lists and linked pairs, which a new label does not change, and the rows
that joined since the last walk. Nothing is rounded, and as little written as tells it all:

- of lists those places that labels make use of, if a search would find the others again;
- of lengths that are roots of numbers in single precision, these numbers;
- of pairs those that do not follow from the lists.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.base.csr import narrowest
from manifoldknn.device.steps import Steps
from manifoldknn.extend.belonging import Belonging, belonging_of
from manifoldknn.extend.offmanifold import OwnResiduals
from manifoldknn.files.checked_arrays import Arrays, floats, numbers, require
from manifoldknn.graph.constrained import SIGMA_NEIGHBOR
from manifoldknn.graph.edges import near_edges
from manifoldknn.graph.spanning import Edges
from manifoldknn.model.arrivals import UNKNOWN, Arrivals
from manifoldknn.model.geometry import list_settings, lists_were_brought, settings_changed
from manifoldknn.search.growing import GrowingArray, GrowingIndex
from manifoldknn.search.neighbors import Neighbors
from manifoldknn.vote.walks import Walked

if TYPE_CHECKING:
    from manifoldknn.classifier import ManifoldKNNClassifier

_OF_ARRIVALS = ("seen", "indices", "z", "residuals", "spacings", "gaps", "off_manifold")


def state_arrays(classifier: ManifoldKNNClassifier) -> Arrays:
    """Return the arrays to write, by the names that `restored_state` reads."""
    fitted, lists = classifier.fitted_, _short_lists(classifier)
    arrays: Arrays = {"lists_indices": np.asarray(lists.indices)}
    arrays |= _put_lengths("lists_distances", lists.distances)
    beside = None
    if classifier.graph == "pruned" and not settings_changed(classifier):
        beside = _beside(fitted.edges, near_edges(lists, classifier.graph_neighbors))
    name, edges = ("edges", fitted.edges) if beside is None else ("beside", beside)
    for end, rows in zip(("low", "high"), edges):
        arrays[f"{name}_{end}"] = rows.astype(narrowest(len(lists.indices)))
    arrays |= _put_lengths(f"{name}_length", edges[2])
    if fitted.arrivals is not None:
        for name in _OF_ARRIVALS:
            arrays[f"late_{name}"] = getattr(fitted.arrivals, name).values
        arrays["late_belonging"] = fitted.belonging.values.values[classifier.n_walked_ :]
    return arrays


def _short_lists(classifier: ManifoldKNNClassifier) -> Neighbors:
    """Return lists without places that are looked at only when rows or parameters are new.

    All of them where a search would not find them again, where copies take the first places, and
    for a device, which selects pairs by them each time.
    """
    fitted, lists = classifier.fitted_, classifier.fitted_.lists
    again = fitted.lists_as_new and fitted.index.first.n_samples == len(lists.indices)
    if not again or settings_changed(classifier) or lists_were_brought(classifier):
        return lists
    if type(fitted.steps) is not Steps or (lists.distances[:, 0] == 0).any():
        return lists
    width = max(classifier.graph_neighbors, SIGMA_NEIGHBOR)
    return Neighbors(lists.indices[:, :width], lists.distances[:, :width])


def _beside(edges: Edges, near: Edges) -> Edges | None:
    """Return the edges that are not among the `near` ones; None if these are not among them."""
    key, known = (low.astype(np.int64) << 32 | high for low, high, _ in (edges, near))
    at = np.searchsorted(key, known)
    if len(known) > len(key) or not np.array_equal(key[np.minimum(at, len(key) - 1)], known):
        return None
    if not np.array_equal(edges[2][at], near[2]):
        return None
    other = np.ones(len(key), dtype=bool)
    other[at] = False
    return edges[0][other], edges[1][other], edges[2][other]


def _put_lengths(name: str, lengths: Any) -> Arrays:
    """Return lengths, or their squares in single precision if these tell them to the last bit."""
    with np.errstate(over="ignore", under="ignore"):
        squares = np.square(lengths).astype(np.float32)
    if np.array_equal(np.sqrt(squares, dtype=np.float64), lengths):
        return {f"{name}_squared": squares}
    return {name: np.asarray(lengths)}


def _lengths(arrays: Arrays, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return what `_put_lengths` wrote, finite and not negative."""
    if f"{name}_squared" not in arrays:
        return floats(arrays, name, shape)
    squares = arrays[f"{name}_squared"]
    require(squares.shape == shape and squares.dtype == np.float32, name)
    require(np.isfinite(squares).all() and (squares >= 0).all(), name)
    return np.sqrt(squares, dtype=np.float64)


def state_data(classifier: ManifoldKNNClassifier) -> dict[str, Any]:
    """Return the numbers to write beside them."""
    return {
        "n_walked": int(classifier.n_walked_),
        "n_first": int(classifier.fitted_.index.first.n_samples),
        "lists_as_new": bool(classifier.fitted_.lists_as_new),
        "belonging": bool(np.isfinite(classifier.fitted_.belonging.limit)),
        # What lists and pairs follow from, unless parameters were changed since.
        "settings_hold": not settings_changed(classifier),
    }


def restored_state(
    classifier: ManifoldKNNClassifier, index: GrowingIndex, arrays: Arrays, data: dict[str, Any]
) -> dict[str, Any]:
    """Return what `state_arrays` and `state_data` wrote, by the names that `Fitted` has for it.

    Every number that compiled code would trust is checked.
    """
    n_walked = data["n_walked"]
    indices = numbers(arrays, "lists_indices", n_walked)
    require(indices.ndim == 2 and len(indices) == n_walked and indices.shape[1] > 0, "neighbours")
    lists = Neighbors(indices, _lengths(arrays, "lists_distances", indices.shape))
    edges = _edges(arrays, lists, classifier.graph_neighbors)
    for name in ("lists_as_new", "settings_hold"):
        require(type(data[name]) is bool, name)
    settings = list_settings(classifier)  # the last of them is the device
    return {
        "lists": lists,
        "edges": edges,
        "lists_as_new": data["lists_as_new"],
        "settings": settings if data["settings_hold"] else settings[-1:],
        "own": OwnResiduals(n_walked),
        "belonging": _belonging(classifier, index, lists, arrays, data.get("belonging", False)),
    }


def _belonging(
    classifier: ManifoldKNNClassifier,
    index: GrowingIndex,
    lists: Neighbors,
    arrays: Arrays,
    is_known: Any,
) -> Belonging:
    """Return how well rows belong, of walked ones from their lists; older files do not know it."""
    require(type(is_known) is bool, "belonging")
    brought = not isinstance(classifier.neighbors, str)
    if is_known:
        known = belonging_of(index, lists, brought=brought)
    else:
        known = Belonging.unknown(len(lists.indices))
    n_late = len(classifier.unreached_) - len(lists.indices)
    if not n_late:
        return known
    require("late_gaps" in arrays, "rows")
    gaps = floats(arrays, "late_gaps", (n_late,))
    values = np.ones(n_late)
    if is_known:
        values = floats(arrays, "late_belonging", (n_late,))
        require(((values >= 0) & (values <= 1)).all(), "late rows")
    return known.joined_by(gaps, values)


def _edges(arrays: Arrays, lists: Neighbors, graph_neighbors: int) -> Edges:
    """Return the linked pairs, sorted, and their lengths."""
    name = "beside" if "beside_low" in arrays else "edges"
    low, high = (
        numbers(arrays, f"{name}_{end}", len(lists.indices)).astype(np.intp, copy=False)
        for end in ("low", "high")
    )
    require(low.ndim == 1 and low.shape == high.shape and (low < high).all(), "edges")
    edges = low, high, _lengths(arrays, f"{name}_length", low.shape)
    if name == "edges":
        return edges
    near = near_edges(lists, graph_neighbors)
    low, high, length = (np.concatenate(both) for both in zip(edges, near))
    order = np.lexsort((high, low))
    return low[order], high[order], length[order]


def restored_arrivals(
    classifier: ManifoldKNNClassifier, walk: Walked, arrays: Arrays, *, settings_hold: bool
) -> Arrivals | None:
    """Return the rows that joined since the walk; shares of all rows are known already.

    Where parameters are still those of the walk, further rows join them in arrays of one width.
    """
    n, n_walked = len(classifier.unreached_), classifier.n_walked_
    if "late_seen" not in arrays:
        require(n == n_walked, "rows")
        return None
    late = {name: arrays[f"late_{name}"] for name in _OF_ARRIVALS}
    n_late, k = n - n_walked, late["z"].shape[-1]
    seen, near = numbers(arrays, "late_seen", n), numbers(arrays, "late_indices", n)
    require(seen.shape == (n_late,) and near.shape == (n_late, k), "late rows")
    require(k == classifier.graph_neighbors or not settings_hold, "late rows")
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
