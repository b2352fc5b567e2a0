"""Figure 7: the answers of four nearest-neighbour methods on data set 3, knot."""

from __future__ import annotations

from manifoldknn.experiments.toys import answers_experiment

__all__ = ["EXPERIMENT"]

EXPERIMENT = answers_experiment("fig7", "knot", 3)
