"""Data sets on which the method can be seen at work."""

from manifoldknn.datasets.synthetic import (
    make_arch_and_s,
    make_circle_and_strip,
    make_knot,
    make_two_circles,
)

__all__ = ["make_arch_and_s", "make_circle_and_strip", "make_knot", "make_two_circles"]
