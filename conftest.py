"""Leave out the examples in modules that need PyTorch, or Triton, where it is not installed."""

from importlib.util import find_spec

# All of the room but the seam itself and what it needs imports PyTorch.
_TORCH = [f"src/manifoldknn/device/{name}" for name in ("*/*", "[!ms]*.py")]
collect_ignore_glob = [] if find_spec("torch") else _TORCH
if not find_spec("triton"):
    collect_ignore_glob = [*collect_ignore_glob, "src/manifoldknn/device/walk/row_product.py"]
