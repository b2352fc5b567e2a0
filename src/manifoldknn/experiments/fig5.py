"""Figure 5: the answers of four nearest-neighbour methods on data set 1, two circles."""

from __future__ import annotations

from manifoldknn.experiments.toys import answers_experiment

__all__ = ["EXPERIMENT"]

EXPERIMENT = answers_experiment("fig5", "two circles", 1)
