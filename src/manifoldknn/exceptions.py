"""Warnings of our own, so that each can be silenced or turned into an error by name."""

__all__ = [
    "EverythingLabeledWarning",
    "GraphSizeWarning",
    "ManifoldKNNWarning",
    "OneClassWarning",
    "UnreachedError",
    "UnreachedWarning",
]


class ManifoldKNNWarning(UserWarning):
    """What all warnings of this package have in common."""


class EverythingLabeledWarning(ManifoldKNNWarning):
    """Every row has a label, so perhaps the unlabelled marker was not understood."""


class OneClassWarning(ManifoldKNNWarning):
    """Only one class is labelled, so it is the only possible answer."""


class GraphSizeWarning(ManifoldKNNWarning):
    """More graph neighbours were asked for than there are other rows."""


class UnreachedWarning(ManifoldKNNWarning):
    """Some rows are connected to no labelled sample."""


class UnreachedError(ValueError):
    """Some rows are connected to no labelled sample, and `on_unreached` says "raise"."""
