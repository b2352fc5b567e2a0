"""Where single precision serves for a walk on one scale, and where it did not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_LOG_RANGE = 60.0  # of degrees, within which single precision neither over- nor underflows
_LEAST_TOL = 1e-5  # accuracy that it can give if nothing cancels


def single_precision_serves(log_degrees: NDArray[np.float64], tol: float) -> bool:
    """Tell whether weights of such a graph can be had in single precision, as accurate as asked."""
    return tol >= _LEAST_TOL and bool(np.ptp(log_degrees) < _LOG_RANGE)


def too_small(log_scale: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell which rows' largest weights are too small for the others to be accurate."""
    small: NDArray[np.bool_] = ~(log_scale >= 0.5 * np.log(np.finfo(np.float32).tiny))
    return small
