"""The processes that workers run in."""

import os
from pathlib import Path

_FORKS = b"planner.run.workers.processes.fork_server"


def worker_processes() -> list[int]:
    """The processes that were forked for workers of this process, in the order of their numbers."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
            command = stat.with_name("cmdline").read_bytes()
        except OSError:
            continue  # it has ended meanwhile
        if _FORKS in command and fields[0] != "Z":
            parents[int(stat.parent.name)] = int(fields[1])
    servers = {process for process, parent in parents.items() if parent == os.getpid()}
    return sorted(process for process, parent in parents.items() if parent in servers)
