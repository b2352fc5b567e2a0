"""Large tensors to NumPy arrays, quickly.

Copying straight into fresh memory waits for one page after the other to be handed out.
Here pieces arrive in two buffers that the device may write to by itself, and all cores
move them on while the next piece is under way.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from manifoldknn.base import Array

_PIECE = 1 << 24  # bytes


def to_numpy(values: Tensor) -> Array:
    """Return a tensor as a NumPy array; it shares memory with a tensor that is on the CPU.

    >>> import torch
    >>> from manifoldknn.device.transfer import to_numpy
    >>> to_numpy(torch.arange(3))
    array([0, 1, 2])
    """
    if values.device.type != "cuda" or values.nbytes <= _PIECE:
        return np.asarray(values.cpu().numpy())
    flat = values.contiguous().view(-1)
    answer = torch.empty(flat.shape, dtype=flat.dtype)
    size = _PIECE // flat.element_size()
    with torch.cuda.device(values.device):
        buffers = [torch.empty(size, dtype=flat.dtype, pin_memory=True) for _ in range(2)]
        arrived = [torch.cuda.Event() for _ in range(2)]
        pieces = list(zip(flat.split(size), answer.split(size)))
        for number in range(len(pieces) + 1):
            if number < len(pieces):
                source = pieces[number][0]
                buffers[number % 2][: len(source)].copy_(source, non_blocking=True)
                arrived[number % 2].record()
            if number:
                target = pieces[number - 1][1]
                arrived[(number - 1) % 2].synchronize()
                target.copy_(buffers[(number - 1) % 2][: len(target)])
    return np.asarray(answer.view(values.shape).numpy())
