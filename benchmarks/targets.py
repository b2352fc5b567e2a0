"""What the numbers are held against: ratios, exponents, and whether a target is met."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Target:
    """A measured value and the largest that is wanted.

    Attributes
    ----------
    what : str
        What is measured.
    value : float or None
        The measured value; None if there is none.
    limit : float or None
        The largest value that meets the target; None for a value given for information.
    unit : str
        Written after both.
    strict : bool
        Whether the limit itself is already too much.
    """

    what: str
    value: float | None
    limit: float | None
    unit: str = ""
    strict: bool = False

    @property
    def verdict(self):
        """One of "met", "MISSED", "not measured" and "no target"."""
        if self.limit is None:
            return "no target"
        if self.value is None or math.isnan(self.value):
            return "not measured"
        met = self.value < self.limit if self.strict else self.value <= self.limit
        return "met" if met else "MISSED"

    @property
    def measured(self):
        """The value as text, empty if there is none."""
        return "" if self.value is None else self._written(self.value)

    @property
    def wanted(self):
        """The target as text, empty if there is none."""
        if self.limit is None:
            return ""
        return f"{'<' if self.strict else '≤'} {self._written(self.limit)}"

    def _written(self, value):
        number = f"{value:.3g}" if value < 100 else f"{value:,.0f}"
        return f"{number} {self.unit}".strip()


def ratio(numerator, denominator):
    """Divide, or None where either is missing or the divisor is not positive."""
    if numerator is None or denominator is None or denominator <= 0:
        return None
    return numerator / denominator


def exponent(sizes, values):
    """Fit p in value ∝ sizeᵖ by least squares on the logarithms.

    Parameters
    ----------
    sizes, values : sequences of float
        Measurements; None where one is missing.

    Returns
    -------
    float or None
        The exponent; None with fewer than two sizes or a value that is not positive.
    """
    pairs = [(size, value) for size, value in zip(sizes, values) if value is not None]
    if len({size for size, _ in pairs}) < 2 or any(value <= 0 for _, value in pairs):
        return None
    log_size, log_value = np.log(np.array(pairs, dtype=float)).T
    log_size = log_size - log_size.mean()
    return float(log_size @ log_value / (log_size @ log_size))
