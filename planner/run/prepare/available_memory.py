"""How much more memory this process may take before the system kills it."""

from __future__ import annotations

from pathlib import Path

import psutil

#: Where Linux mounts the control groups, and where it lists those of this process.
_GROUPS, _OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
#: For both cgroup versions: the controller, the files of a group's limit and use, and the reclaimable part of the use.
_VERSIONS = (
    ("", "memory.max", "memory.current", "inactive_file"),
    ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def free_bytes(groups: Path = _GROUPS, own: Path = _OWN) -> int:
    """Bytes of host memory that are free, also within the limits of a container.

    Args:
        groups: folder of the control groups.
        own: file that lists this process's groups.
    """
    free = int(psutil.virtual_memory().available)
    for folder, limit, used, dropped in _VERSIONS:
        for group in _with_parents(groups / folder, _path(own, folder)):
            free = min(free, _left(group, limit, used, dropped, free))
    return max(free, 0)


def _path(own: Path, controller: str) -> str:
    """The path of the group that limits this process's memory, relative to the root of the groups."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return ""
    named = {
        controllers: path for _, controllers, path in (line.split(":", 2) for line in lines if line.count(":") > 1)
    }
    return next((path for names, path in named.items() if controller in names.split(",")), "").lstrip("/")


def _with_parents(root: Path, path: str) -> list[Path]:
    """A group and all groups that contain it; a container may see its own group as the root."""
    inside = root / path
    return [inside, *(parent for parent in inside.parents if parent.is_relative_to(root))]


def _left(group: Path, limit: str, used: str, dropped: str, otherwise: int) -> int:
    """Bytes that a group may still take; its file cache counts as free."""
    try:
        most, now = int((group / limit).read_text()), int((group / used).read_text())
        details = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        return most - now + int(details.get(dropped, 0))
    except (OSError, ValueError):
        return otherwise  # no such limit
