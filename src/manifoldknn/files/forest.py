"""A forest as plain arrays, which can be written down, and asked without scikit-learn.

All trees stand one after the other in the same arrays, and name their nodes by places there. Rows
are finite, so that where a tree would send missing values does not matter.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier

from manifoldknn.files.checked_arrays import Arrays, floats, numbers, require

_LEAF = -1


@dataclass(frozen=True)
class PlainForest:
    """Trees with a probability of every class in every leaf; `predict_proba` is their mean."""

    roots: NDArray[np.int64]
    left: NDArray[np.int64]  # where rows up to the threshold go; -1 in a leaf
    right: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    value: NDArray[np.float64]

    @classmethod
    def of(cls, forest: Any) -> "PlainForest":
        """Return a fitted `RandomForestClassifier` in this form, or such a one as it is."""
        if isinstance(forest, cls):
            return forest
        if not isinstance(forest, RandomForestClassifier):
            raise ValueError(
                f"partner_ of type {type(forest).__name__} cannot be saved: fit with "
                "partner='forest'."
            )
        trees = [grown.tree_ for grown in forest.estimators_]
        ends = np.cumsum([tree.node_count for tree in trees])
        roots = ends - [tree.node_count for tree in trees]

        def joined(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(tree, name) for tree in trees])

        shift = np.repeat(roots, ends - roots)
        leaf = joined("children_left") == _LEAF
        left, right = (
            np.where(leaf, _LEAF, joined(f"children_{side}") + shift) for side in ("left", "right")
        )
        feature = np.where(leaf, 0, joined("feature"))
        return cls(roots, left, right, feature, joined("threshold"), joined("value")[:, 0])

    @property
    def classes_(self) -> NDArray[np.intp]:
        """Class numbers, in the order of `predict_proba`."""
        return np.arange(self.value.shape[1])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities that scikit-learn's forest gives; O(rows·trees) memory."""
        X = X.toarray() if sparse.issparse(X) else np.asarray(X)
        with np.errstate(over="ignore"):
            X = X.astype(np.float32, copy=False)
        n_trees = len(self.roots)
        node = np.tile(self.roots, len(X))
        live = np.flatnonzero(self.left[node] != _LEAF)
        while live.size:
            at = node[live]
            low = X[live // n_trees, self.feature[at]] <= self.threshold[at]
            node[live] = at = np.where(low, self.left[at], self.right[at])
            live = live[self.left[at] != _LEAF]
        out = np.zeros((len(X), self.value.shape[1]))
        for leaves in node.reshape(len(X), n_trees).T:  # in this order, as scikit-learn adds them
            out += self.value[leaves]
        out /= n_trees
        return out


def put_forest(forest: Any) -> Arrays:
    """Return the arrays to write, by the names that `restored_forest` reads."""
    plain = PlainForest.of(forest)
    return {f"forest_{part.name}": getattr(plain, part.name) for part in fields(PlainForest)}


def restored_forest(arrays: Arrays, n_features: int, n_classes: int) -> PlainForest:
    """Return the forest that `put_forest` wrote; every number that is followed is checked."""
    n_nodes = len(arrays["forest_left"])
    roots, feature = (
        numbers(arrays, f"forest_{name}", below)
        for name, below in (("roots", n_nodes), ("feature", n_features))
    )
    sides = [numbers(arrays, f"forest_{name}", n_nodes, least=_LEAF) for name in ("left", "right")]
    leaf, place = sides[0] == _LEAF, np.arange(n_nodes)
    require(roots.ndim == 1 and len(roots) > 0 and feature.shape == (n_nodes,), "forest")
    for side in sides:  # children come after their parents, so that every way ends in a leaf
        require(side.shape == (n_nodes,) and ((side > place) | leaf).all(), "forest")
        require((side[leaf] == _LEAF).all(), "forest")
    threshold = floats(arrays, "forest_threshold", (n_nodes,))
    value = floats(arrays, "forest_value", (n_nodes, n_classes))
    require((value >= 0).all(), "forest")
    return PlainForest(roots, sides[0], sides[1], feature, threshold, value)
