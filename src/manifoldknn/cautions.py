"""What a user is warned of before a fit goes ahead."""

from __future__ import annotations

from manifoldknn.exceptions import (
    EverythingLabeledWarning,
    GraphSizeWarning,
    OneClassWarning,
    warn_caller,
)
from manifoldknn.labels import EncodedLabels


def usable_graph_neighbors(graph_neighbors: int, n_samples: int) -> int:
    """Return the number of neighbours that so few samples can have, warning if it is less.

    Parameters
    ----------
    graph_neighbors : int
        What was asked for.
    n_samples : int
        Number of rows.

    Returns
    -------
    int
        At most ``n_samples - 1``.
    """
    if graph_neighbors < n_samples:
        return graph_neighbors
    warn_caller(
        f"graph_neighbors={graph_neighbors}, but there are only {n_samples} rows: "
        f"using {n_samples - 1}. Lower graph_neighbors or add rows.",
        GraphSizeWarning,
    )
    return n_samples - 1


def warn_about_labels(labels: EncodedLabels, *, everything: bool) -> None:
    """Warn of labels that leave little to decide.

    Parameters
    ----------
    labels : EncodedLabels
        The labels.
    everything : bool
        Whether labels for all rows are worth a warning: not in a stream, where
        unlabelled rows may follow.
    """
    if len(labels.classes) == 1:
        warn_caller(
            f"Only the class {labels.classes[0]} is labelled, so every row will get it: label at "
            "least one row of another class.",
            OneClassWarning,
        )
    if everything and (labels.codes >= 0).all():
        warn_caller(
            "Every row is labelled, so there is nothing to infer. The labels begin with "
            f"{', '.join(map(str, labels.classes[:5]))}: mark unlabelled rows with -1 (None or '' "
            "among strings), or name your marker with unlabeled=.",
            EverythingLabeledWarning,
        )
