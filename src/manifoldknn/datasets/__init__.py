"""Data sets on which the method can be seen at work."""

from manifoldknn.datasets.synthetic import make_arch_and_s

__all__ = ["make_arch_and_s"]
