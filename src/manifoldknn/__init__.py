"""Classify data when almost nothing is labelled.

`ManifoldKNNClassifier` is the scikit-learn estimator, `as_published` the same as the paper
has it; the steps of the method
are functions of their own: `constrained_graph`, `tired_random_walk`,
`walk_weights`, `simplex_weights`. `suggest`, `find_label_errors` and `inspect` look
at a fitted classifier, `TableEncoder` makes features of tables as they come, `report` writes a
page, `persist` saves and loads it, `label` shows rows to label in a notebook, and the command
``manifoldknn`` does all of it for a table in a file.

Each name is imported when it is first asked for, so that ``import manifoldknn`` takes no
time and can be interrupted.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manifoldknn.classifier import ManifoldKNNClassifier, as_published
    from manifoldknn.device.memory import estimate_memory
    from manifoldknn.extend.simplex import simplex_weights
    from manifoldknn.graph.constrained import constrained_graph
    from manifoldknn.insight.dimension import intrinsic_dimension
    from manifoldknn.insight.inspection import inspect
    from manifoldknn.insight.label_errors import find_label_errors
    from manifoldknn.insight.suggestions import suggest
    from manifoldknn.labelling.widget import label
    from manifoldknn.reporting.report import report
    from manifoldknn.tables.encoder import TableEncoder
    from manifoldknn.walk.label_columns import tired_random_walk, walk_weights

__all__ = [
    "ManifoldKNNClassifier",
    "TableEncoder",
    "as_published",
    "constrained_graph",
    "estimate_memory",
    "find_label_errors",
    "inspect",
    "intrinsic_dimension",
    "label",
    "report",
    "simplex_weights",
    "suggest",
    "tired_random_walk",
    "walk_weights",
]
__version__ = "0.1.0"

_HOMES = {
    "ManifoldKNNClassifier": "classifier",
    "as_published": "classifier",
    "intrinsic_dimension": "insight.dimension",
    "constrained_graph": "graph.constrained",
    "inspect": "insight.inspection",
    "find_label_errors": "insight.label_errors",
    "estimate_memory": "device.memory",
    "report": "reporting.report",
    "label": "labelling.widget",
    "simplex_weights": "extend.simplex",
    "suggest": "insight.suggestions",
    "TableEncoder": "tables.encoder",
    "tired_random_walk": "walk.label_columns",
    "walk_weights": "walk.label_columns",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
