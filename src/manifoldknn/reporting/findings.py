"""What a run found out beside its answers: the same for the command and for Python."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manifoldknn import inspect
from manifoldknn.insight.inspection import GraphHealth
from manifoldknn.model.hidden_labels import hidden_labels
from manifoldknn.model.quality import off_manifold_limit
from manifoldknn.tables.outputs import answers
from manifoldknn.tables.session import Session, noted, stage
from manifoldknn.vote.hidden import HiddenLabels


@dataclass(frozen=True)
class Findings:
    """How sure answers are, how odd rows, and how good it all is."""

    confidence: NDArray[np.float64]  # probability of the answer, by row
    margin: NDArray[np.float64]  # its lead over other classes
    off_manifold: NDArray[np.float64]  # above 1: odder than 99 % of the rows
    hidden: HiddenLabels | None  # what hidden labels were called
    health: GraphHealth  # of the graph


def findings(session: Session, *, validate: bool) -> Findings:
    """Look a fitted table over; with `validate` labels are hidden to estimate the accuracy."""
    clf = session.classifier
    with stage(session.seconds, "off manifold"), noted(session.notes):
        off = -clf.score_samples() / off_manifold_limit(clf)
    hidden = None
    if validate:
        with stage(session.seconds, "validation"), noted(session.notes):
            hidden = hidden_labels(clf)
    with stage(session.seconds, "graph health"):
        health = inspect(clf, index=session.ids)
    codes = clf.fitted_.labels.numbers(clf.transduction_)
    confidence, margin = answers(clf.label_distributions_, codes, clf.unreached_)
    return Findings(confidence, margin, off, hidden, health)
