"""Figure 6: the answers of four nearest-neighbour methods on data set 2, circle and strip."""

from __future__ import annotations

from manifoldknn.experiments.toys import answers_experiment

__all__ = ["EXPERIMENT"]

EXPERIMENT = answers_experiment("fig6", "circle and strip", 2)
