"""Pictures; matplotlib is needed only once one is drawn.

`plot_classes` draws samples in two dimensions; `plot_decision`, `plot_graph` and
`plot_confidence` draw a fitted classifier and return a display, as scikit-learn's do.
"""

from manifoldknn.drawing.class_plot import plot_classes
from manifoldknn.drawing.displays import (
    ConfidenceDisplay,
    DecisionDisplay,
    GraphDisplay,
    plot_confidence,
    plot_decision,
    plot_graph,
)

__all__ = [
    "ConfidenceDisplay",
    "DecisionDisplay",
    "GraphDisplay",
    "plot_classes",
    "plot_confidence",
    "plot_decision",
    "plot_graph",
]
