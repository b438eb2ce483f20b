"""How much more memory this process may take, so that nothing is begun that the system would end."""

from __future__ import annotations

from pathlib import Path

import psutil

_CGROUP = Path("/sys/fs/cgroup")


def free_bytes() -> int:
    """Bytes of host memory that are free, within the limits of a container too."""
    free = int(psutil.virtual_memory().available)
    try:
        limit = (_CGROUP / "memory.max").read_text().strip()
        if limit != "max":
            free = min(free, int(limit) - int((_CGROUP / "memory.current").read_text()))
    except (OSError, ValueError):
        pass  # no such limit
    return max(free, 0)
