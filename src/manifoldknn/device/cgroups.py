"""What the control groups of this process leave it: the limits of containers and batch jobs.

Linux keeps a tree of groups, each with a limit and with what its processes use; a process may take
what the tightest group on the way from its own to the root has left. Files that were read lie in
memory too and count as used, though the kernel drops them when somebody needs the room.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple


class _Names(NamedTuple):
    """Where a version of the interface keeps its numbers."""

    mount: str
    limit: str
    used: str
    dropped_first: str


_SECOND = _Names("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file")
_FIRST = _Names(
    "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
)


def room_in_groups(root: Path = Path("/")) -> int | None:
    """Return how many bytes the control groups of this process have left.

    That is the least that a group on the way to the root has left; None where no group sets a
    limit, or there are none. ``proc`` and ``sys`` lie below `root`.
    """
    left = [
        room
        for names, path in _memberships(root)
        for folder in _way_up(root / names.mount, path)
        if (room := _room(folder, names)) is not None
    ]
    return min(left, default=None)


def _memberships(root: Path) -> Iterator[tuple[_Names, str]]:
    """Yield the groups of this process that may limit memory."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0" and not controllers:
            yield _SECOND, path
        elif "memory" in controllers.split(","):
            yield _FIRST, path


def _way_up(mount: Path, path: str) -> Iterator[Path]:
    """Yield the folders from a group up to the root of its tree.

    Inside a container the path may be that of the host, which is not there, or lead out of what
    is mounted; the root of the tree is then the container's own group.
    """
    inner = PurePosixPath(path.lstrip("/"))
    for group in [inner, *inner.parents]:
        if ".." not in group.parts:
            yield mount / group


def _room(folder: Path, names: _Names) -> int | None:
    """Return what one group has left, or None if it sets no limit."""
    try:
        limit = (folder / names.limit).read_text().strip()
        if limit == "max":
            return None
        used = int((folder / names.used).read_text())
        return max(0, int(limit) - max(0, used - _file_cache(folder, names.dropped_first)))
    except (OSError, ValueError):
        return None


def _file_cache(folder: Path, name: str) -> int:
    """Return how many bytes hold files that nobody has used for long."""
    try:
        lines = (folder / "memory.stat").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.split()[:1] == [name]), 0)
