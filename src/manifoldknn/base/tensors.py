"""PyTorch, imported when it is asked for: devices, tensors, tiles that fit into memory."""

import importlib.util
import logging
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from manifoldknn.base import Array, Bools

logger = logging.getLogger(__name__)

DEVICES = "'auto', 'cpu', 'cuda', 'cuda:N' or 'mps'"
_NAME = re.compile(r"auto|cpu|cuda(:\d+)?|mps(:0)?|torch:cpu")
_SHARE_OF_FREE = 0.25  # of the device's free memory, for one tile and what is made of it
_HOST_BYTES = 1 << 28
_LEAST_ROWS = 16
_NO_MEMORY = ("out of memory", "ALLOC_FAILED", "can't allocate memory", "not enough memory")


def is_tensor(value: Any) -> bool:
    """Tell whether a value is a tensor of PyTorch, without importing that.

    >>> is_tensor([1.0, 2.0])
    False
    """
    kinds = type(value).__mro__
    return any(kind.__module__ == "torch" and kind.__name__ == "Tensor" for kind in kinds)


def as_numpy(value: Any) -> Any:
    """Return a dense tensor as a NumPy array, on the CPU; anything else as it is.

    A dtype that NumPy lacks becomes float32. Memory is shared with a tensor on the CPU.
    """
    if not is_tensor(value):
        return value
    check_dense(value)
    value = value.detach().cpu()
    if str(value.dtype) in ("torch.bfloat16",) or "float8" in str(value.dtype):
        value = value.float()
    return value.resolve_conj().resolve_neg().numpy()


def check_dense(value: Any) -> None:
    """Raise ValueError if a tensor, a user's X or y, is sparse, in whatever layout."""
    if str(value.layout) != "torch.strided":
        raise ValueError(
            f"A tensor has the layout {value.layout}, but tensors must be dense here: pass its "
            "to_dense()."
        )


def chosen_rows(X: Any, mask: Bools) -> Any:
    """Return some rows of samples, of a tensor as an array."""
    if not is_tensor(X):
        return X[mask]
    import torch

    return as_numpy(X[torch.as_tensor(np.flatnonzero(mask), device=X.device)])


def check_device(device: Any) -> None:
    """Raise ValueError unless `device` is one that may be understood."""
    if not _NAME.fullmatch(named(device)):
        raise ValueError(f"device={device!r} must be {DEVICES}.")


def named(device: Any) -> str:
    """Return the name of a device; "" of what is neither a name nor a ``torch.device``.

    >>> named("cuda:1"), named(1)
    ('cuda:1', '')
    """
    kind = type(device)
    is_device = kind.__module__ == "torch" and kind.__name__ == "device"
    return str(device) if isinstance(device, str) or is_device else ""


def chosen_device(device: Any, X: Any) -> Any:
    """Return the device that a fit on X runs on, None for the CPU without PyTorch.

    "auto" is the CPU unless X is a tensor on another device. "torch:cpu" runs the GPU's code on the
    CPU: slowly, to try or test it. Raises ImportError where PyTorch is not installed, ValueError
    where there is no such device.
    """
    check_device(device)
    device = named(device)
    elsewhere = is_tensor(X) and X.device.type != "cpu"
    if device == "cpu" or (device == "auto" and not elsewhere):
        return None
    if device == "auto":
        return X.device
    if importlib.util.find_spec("torch") is None:
        raise ImportError(
            f"device={device!r} needs PyTorch: pip install 'manifoldknn[gpu]', or use device='cpu'."
        )
    import torch

    kind = device.partition(":")[0]
    if kind == "torch":
        return torch.device("cpu")
    _check_present(torch, device, kind)
    if elsewhere and X.device.type == kind and ":" not in device:
        return X.device
    if device == "cuda":
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device(device)


def _check_present(torch: Any, device: str, kind: str) -> None:
    present = torch.cuda.is_available() if kind == "cuda" else torch.backends.mps.is_available()
    if not present:
        made_for = "CUDA" if kind == "cuda" else "Apple's Metal"
        raise ValueError(
            f"device={device!r}, but PyTorch {torch.__version__} finds no such GPU: install a "
            f"driver and a build of PyTorch made for {made_for} (https://pytorch.org says which), "
            "or use device='cpu'."
        )
    number = int(device.partition(":")[2] or 0)
    if kind == "cuda" and number >= torch.cuda.device_count():
        raise ValueError(
            f"device={device!r}, but there are {torch.cuda.device_count()} GPUs, counted from 0: "
            "use device='cuda'."
        )


def moved(values: Any, device: Any, dtype: Any = None) -> Any:
    """Return an array or a tensor as a contiguous tensor on a device, not copied if it is there.

    Another `dtype` is converted to on the device.
    """
    import torch

    if not is_tensor(values):
        array = np.ascontiguousarray(values)
        if not array.flags.writeable:  # PyTorch has no tensors that are read-only, and would warn
            array = array.copy()
        values = torch.from_numpy(array)
    values = values.detach().to(device)
    return (values if dtype is None else values.to(dtype)).contiguous()


def doubles(device: Any) -> Any:
    """Return the device itself, or the CPU where it has no double precision."""
    import torch

    return torch.device("cpu") if device.type == "mps" else device


def free_bytes(device: Any) -> int:
    """Return how many bytes of a device's memory may be taken.

    What the driver and PyTorch's own store have free; on the CPU and on "mps", a fixed amount that
    leaves room for others.
    """
    import torch

    if device.type != "cuda":
        return 4 * _HOST_BYTES
    free, _ = torch.cuda.mem_get_info(device)
    held = torch.cuda.memory_stats(device)  # asked once: it takes as long as a small product
    reserved, used = (
        held.get(f"{name}_bytes.all.current", 0) for name in ("reserved", "allocated")
    )
    return int(free + reserved - used)


def tile_rows(device: Any, bytes_per_row: float, most_bytes: float) -> int:
    """Return how many rows to work on at a time, at least 1.

    A row takes `bytes_per_row` with all that is made of it, and a tile no more than `most_bytes`
    however much is free.
    """
    room = min(_SHARE_OF_FREE * free_bytes(device), most_bytes)
    return max(1, int(room / max(1.0, bytes_per_row)))


def with_tiles(
    work: Callable[[slice], None], n_rows: int, rows: int, device: Any, *, least: int = _LEAST_ROWS
) -> None:
    """Do some work tile by tile, in smaller tiles once memory runs out.

    `work` does the rows of a slice, and may do them again; `rows` are those of the first tile. A
    tile of only `least` rows that does not fit is an error.
    """
    start = 0
    while start < n_rows:
        part = slice(start, min(start + rows, n_rows))
        try:
            work(part)
        except RuntimeError as error:
            if not is_out_of_memory(error) or rows <= least:
                raise
            rows = max(least, min(rows, part.stop - part.start) // 2)
            logger.info("out of memory on %s: going on with %d rows at a time", device, rows)
        else:
            start = part.stop
            continue
        release(device)  # outside the handler, which would keep the tile alive


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error says that a device's memory is used up."""
    import torch

    said = str(error)
    return isinstance(error, torch.OutOfMemoryError) or any(words in said for words in _NO_MEMORY)


def release(device: Any) -> None:
    """Give back what PyTorch keeps for later."""
    import torch

    if device.type == "cuda":
        torch.cuda.empty_cache()


def to_host(values: Any, dtype: Any = None) -> Array:
    """Return a tensor as an array that does not share memory with it."""
    array: Array = values.detach().cpu().numpy()
    shared = values.device.type == "cpu"
    return array.astype(dtype or array.dtype, copy=shared)
