"""How exactly PyTorch multiplies matrices of single precision, set for a while."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

_PRECISION = threading.RLock()  # PyTorch has one setting for all threads


@contextmanager
def matrix_precision(name: str) -> Iterator[None]:
    """Multiply matrices of single precision in full ("highest") or by TF32 ("high") inside.

    With "high", products of CUDA devices round what they multiply to 11 bits. PyTorch keeps this
    for the whole process. Other threads wait here until the block ends, so that products are what
    their certificate takes them for; the user's setting comes back.
    """
    with _PRECISION:
        if getattr(torch.backends.cuda.matmul, "fp32_precision", None) is None:
            restore = _set_by_one_name(name)
        else:
            restore = _set_by_backend(name)
        try:
            yield
        finally:
            restore()


def _set_by_one_name(name: str) -> Callable[[], None]:
    """Set the precision as PyTorch below 2.9 wants it."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    return lambda: torch.set_float32_matmul_precision(before)


def _set_by_backend(name: str) -> Callable[[], None]:
    """Set the precision as PyTorch from 2.9 on wants it; its older functions then may refuse."""
    on: Any = torch.backends
    wanted = {on.cuda.matmul: "tf32" if name == "high" else "ieee", on.mkldnn.matmul: "ieee"}
    before = {place: place.fp32_precision for place in wanted}
    for place, precision in wanted.items():
        place.fp32_precision = precision

    def restore() -> None:
        for place, precision in before.items():
            place.fp32_precision = "none"  # what torch.backends.fp32_precision says, if anything
            if place.fp32_precision != precision:
                place.fp32_precision = precision

    return restore
