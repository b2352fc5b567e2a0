"""Where and with what was measured: the machine and the versions."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

PACKAGES = ("numpy", "scipy", "scikit-learn", "manifoldknn", "graphlearning")


def machine():
    """Describe this machine by what matters to the numbers, and by nothing else."""
    return {
        "processor": _processor(),
        "cores": str(_cores()),
        "memory": _memory(),
        "system": _system(),
    }


def commit():
    """Return the commit that was measured, with a + where files had been changed since."""
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--abbrev=10", "--dirty=+", "--exclude=*"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()


def versions():
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = _source_version() if name == "manifoldknn" else "not installed"
    return found


def _source_version():
    """Read the version from a checkout that is on the path without being installed."""
    try:
        import manifoldknn
    except ImportError:
        return "not installed"
    return manifoldknn.__version__


def _processor():
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _cores():
    # What this process may use, which in a container is less than what there is.
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count()


def _memory():
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.0f} GB"
    except (AttributeError, OSError, ValueError):
        return "unknown"


def _system():
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return f"{platform.system()} {platform.release()}"
