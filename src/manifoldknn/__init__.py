"""Classify data when almost nothing is labelled.

`ManifoldKNNClassifier` is the scikit-learn estimator; the steps of the method
are functions of their own: `constrained_graph`, `tired_random_walk`,
`walk_weights`, `simplex_weights`.
"""

from manifoldknn.classifier import ManifoldKNNClassifier
from manifoldknn.dimension import intrinsic_dimension
from manifoldknn.graph import constrained_graph
from manifoldknn.memory import estimate_memory
from manifoldknn.simplex import simplex_weights
from manifoldknn.walk import tired_random_walk, walk_weights

__all__ = [
    "ManifoldKNNClassifier",
    "constrained_graph",
    "estimate_memory",
    "intrinsic_dimension",
    "simplex_weights",
    "tired_random_walk",
    "walk_weights",
]
__version__ = "0.1.0.dev0"
