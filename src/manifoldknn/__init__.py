"""Classify data when almost nothing is labelled.

`ManifoldKNNClassifier` is the scikit-learn estimator; the steps of the method
are functions of their own: `constrained_graph`, `tired_random_walk`,
`walk_weights`, `simplex_weights`. `suggest`, `find_label_errors` and `inspect` look
at a fitted classifier, `persist` saves and loads it, and the command ``manifoldknn``
does all of it for a table in a file.
"""

from manifoldknn.classifier import ManifoldKNNClassifier
from manifoldknn.dimension import intrinsic_dimension
from manifoldknn.graph import constrained_graph
from manifoldknn.inspection import inspect
from manifoldknn.label_errors import find_label_errors
from manifoldknn.memory import estimate_memory
from manifoldknn.simplex import simplex_weights
from manifoldknn.suggestions import suggest
from manifoldknn.walk import tired_random_walk, walk_weights

__all__ = [
    "ManifoldKNNClassifier",
    "constrained_graph",
    "estimate_memory",
    "find_label_errors",
    "inspect",
    "intrinsic_dimension",
    "simplex_weights",
    "suggest",
    "tired_random_walk",
    "walk_weights",
]
__version__ = "0.1.0.dev0"
