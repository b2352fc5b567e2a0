"""What a user is warned of before a fit goes ahead, and told about the labels afterwards."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from manifoldknn.base.labels import EncodedLabels
from manifoldknn.exceptions import (
    EverythingLabeledWarning,
    GraphSizeWarning,
    OneClassWarning,
    warn_caller,
)

if TYPE_CHECKING:
    from manifoldknn.classifier import ManifoldKNNClassifier
    from manifoldknn.graph.weights import ConstrainedGraph
    from manifoldknn.vote.walks import Walked

_FARTHEST = 1e9  # size of a logarithm of a weight, or of a density
_DIGITS = 100 / np.finfo(np.float64).eps  # roundings of both signs add up to less than all of them
_UNEQUAL = 5  # times as many labels as another class has


def usable_graph_neighbors(graph_neighbors: int, n_samples: int) -> int:
    """Return the number of neighbours that so few samples can have, warning if it is less."""
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

    Labels for all rows are not worth a warning in a stream, where unlabelled rows may follow.
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


def warned_of_far_rows(walk: Walked, graph: ConstrainedGraph, alpha: float, tol: float) -> Walked:
    """Return a walk that does not claim to be accurate where its numbers have lost their digits.

    A logarithm of -1e9 is known to 1e-7, and sums of many are less well. Beside 1 - α, which is
    what A leaves of the slowest walk, such roundings count more the nearer α is to 1. It is a
    warning where the nearest neighbours of a row are so far, or all labels, however many steps
    away.
    """
    farthest = -min(_FARTHEST, tol * (1.0 - alpha) * _DIGITS)
    scale = walk.similarities.log_scale
    far = int(((scale < farthest) & np.isfinite(scale)).sum())
    logs = graph.log_weights.data if graph.is_sparse else graph.log_weights
    if ((logs < farthest) & np.isfinite(logs)).any():
        far = max(far, int((graph.log_degrees() < farthest).sum()))
    if not far:
        return walk
    warn_caller(
        f"{far} rows are so far from others, beside sigma, that numbers have too few digits for "
        "them: their answers may be less accurate than tol. Raise sigma, or look for outliers.",
        ConvergenceWarning,
    )
    return replace(walk, converged=False)


def label_advice(classifier: ManifoldKNNClassifier) -> list[str]:
    """Return what the numbers of labels per class mean, where that is not plain.

    That is for classes with one label, and where one has over five times the labels of another.
    """
    counts = np.bincount(classifier.fitted_.labels.codes[classifier.labeled_indices_])
    names, out = classifier.classes_, []
    single = names[counts == 1]
    if len(single):
        more = f" and {len(single) - 5} more" if len(single) > 5 else ""
        out.append(
            f"Classes with one label only ({', '.join(map(str, single[:5]))}{more}): how often "
            "their rows are right is unknown. Label one more row of each, or better two."
        )
    least, most = int(counts.argmin()), int(counts.argmax())
    if counts[most] > _UNEQUAL * counts[least]:
        how = classifier.class_prior if isinstance(classifier.class_prior, str) else "given"
        means = {
            "equal": "Classes count equally all the same. Only if the rows to label were drawn at "
            "random, set class_prior='labeled'.",
            "labeled": "With class_prior='labeled' that is how common they are taken to be, which "
            "is right only if the rows to label were drawn at random.",
            "given": "How common classes are is taken from class_prior all the same.",
        }[how]
        if classifier.sharpness_ is None:
            means = "With vote='neighbors' that favours it; vote='classes' is fair to both."
        out.append(
            f"Class {names[most]} has {counts[most]} labels and class {names[least]} only "
            f"{counts[least]}. {means}"
        )
    return out


def confidence_words(classifier: ManifoldKNNClassifier) -> str:
    """Return what a confidence is, and how far its size can be trusted."""
    if classifier.sharpness_ is None:
        return "the share of the vote, which is no probability"
    if classifier.calibrated_:
        return "a probability, calibrated on labels that were hidden"
    if len(classifier.classes_) == 1:
        return "a guess, not calibrated: only one class is labelled"
    if isinstance(classifier.sharpness, str):
        if classifier.hidden_labels_ is not None:
            return "a guess, not calibrated: hidden labels were reached by one class at most"
        return "a guess, not calibrated: no class has two labels, so none could be hidden"
    return "a guess, not calibrated: the sharpness was given, not learned from hidden labels"


def partner_words(classifier: ManifoldKNNClassifier) -> list[str]:
    """Return what a forest has to say in the vote, on the command line; nothing without one."""
    if classifier.partner_ is None:
        return []
    if classifier.partner_weight_ > 0:
        return [
            "a forest has a say: 200 trees learned from the labelled rows, and speak beside the "
            f"graph with weight {classifier.partner_weight_:.2g}, from hidden labels; "
            "--partner none leaves it out"
        ]
    why = "hidden labels are found without it" if classifier.hidden_labels_ else "none was hidden"
    return [f"a forest has no say: {why}"]
