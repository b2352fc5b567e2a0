"""Leave out the examples in modules that need PyTorch where it is not installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["src/manifoldknn/device/*/*"]
