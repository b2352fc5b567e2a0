"""Data sets on which the method can be seen at work: the paper's, drawn and real."""

from manifoldknn.datasets.paper import PAPER_SETS, PaperData, load_paper
from manifoldknn.datasets.synthetic import (
    make_arch_and_s,
    make_circle_and_strip,
    make_knot,
    make_two_circles,
)

__all__ = [
    "PAPER_SETS",
    "PaperData",
    "load_paper",
    "make_arch_and_s",
    "make_circle_and_strip",
    "make_knot",
    "make_two_circles",
]
