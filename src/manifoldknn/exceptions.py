"""Warnings and errors of our own, so that each can be silenced or caught by name."""

import sys
import warnings

__all__ = [
    "ClusterLostError",
    "ColumnWarning",
    "DeviceWarning",
    "EverythingLabeledWarning",
    "GraphSizeWarning",
    "ManifoldKNNWarning",
    "MetricWarning",
    "OneClassWarning",
    "TooFewLabelsError",
    "UnlabeledScoreWarning",
    "UnreachedError",
    "UnreachedWarning",
    "warn_caller",
]


class ManifoldKNNWarning(UserWarning):
    """What all warnings of this package have in common."""


class ColumnWarning(ManifoldKNNWarning):
    """Columns of a table were not plain to read, or hold what was not there at the fit."""


class DeviceWarning(ManifoldKNNWarning):
    """A model was fitted on a GPU that is not there."""


class EverythingLabeledWarning(ManifoldKNNWarning):
    """Every row has a label, so perhaps the unlabelled marker was not understood."""


class OneClassWarning(ManifoldKNNWarning):
    """Only one class is labelled, so it is the only possible answer."""


class GraphSizeWarning(ManifoldKNNWarning):
    """More graph neighbours were asked for than there are other rows."""


class MetricWarning(ManifoldKNNWarning):
    """A searcher that was brought along measures other distances than the classifier."""


class UnlabeledScoreWarning(ManifoldKNNWarning):
    """Rows without a label were to be scored, as by ordinary cross-validation."""


class UnreachedWarning(ManifoldKNNWarning):
    """Some rows are connected to no labelled sample."""


class TooFewLabelsError(ValueError):
    """The labels are too few to be divided into folds."""


class ClusterLostError(RuntimeError):
    """The workers of a cluster, or its scheduler, are gone."""


class UnreachedError(ValueError):
    """Some rows are connected to no labelled sample, and `on_unreached` says "raise"."""


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn, pointing at the line outside this package and scikit-learn that led here.

    Parameters
    ----------
    message : str
        What happened and what to do.
    category : type
        Kind of warning.
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(_OURS):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


_OURS = ("manifoldknn.", "sklearn.")
