"""How often answers are right: rows without a label do not count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manifoldknn.base import Bools, Ints
from manifoldknn.base.labels import encode_further
from manifoldknn.base.samples import check_same_length
from manifoldknn.exceptions import UnlabeledScoreWarning, warn_caller

if TYPE_CHECKING:
    from manifoldknn.classifier import ManifoldKNNClassifier

_NO_CLASS_OF_IT = -2  # -1 is no answer
_HOW = "cross-validate with manifoldknn.model_selection.SemiSupervisedSplit"


def true_codes(model: ManifoldKNNClassifier, y: Any, n_rows: int) -> tuple[Ints, Bools]:
    """Return class numbers of the labelled among new rows, and which these are.

    A class that the model does not know is -2. ValueError if there is no label.
    """
    check_same_length(model, n_rows, y)
    known = model.fitted_.labels
    joint, codes = encode_further(y, known, unlabeled=model.unlabeled)
    judged = codes >= 0
    n_left = len(codes) - int(judged.sum())
    if n_left == len(codes):
        raise ValueError(f"y has no label, so there is nothing to score: {_HOW}.")
    if n_left:
        warn_caller(
            f"{n_left} of {len(codes)} rows to score have no label and do not count: {_HOW}, which "
            "tests labelled rows only and learns from all others.",
            UnlabeledScoreWarning,
        )
    numbers = known.numbers(joint.classes)
    numbers[numbers < 0] = _NO_CLASS_OF_IT
    return numbers[codes[judged]], judged
