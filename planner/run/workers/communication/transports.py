"""The transports between the workers of one machine, by name."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

from planner.errors import StowageError
from planner.machine import Link
from planner.run.workers.communication.gloo import Gloo
from planner.run.workers.communication.shared_memory import EXCHANGE_FILE, SharedMemory, exchange_bytes
from planner.run.workers.communication.transport import Transport

SHARED_MEMORY, GLOO = "shared memory", "gloo"

#: By name, what makes the end of one worker: from the folder of all, its number, and how many there are.
TRANSPORTS: dict[str, Callable[[Path, int, int], Transport]] = {SHARED_MEMORY: SharedMemory, GLOO: Gloo}

#: What plans expect of exchanges, from what they took in steps of a GPT on two busy cores; gloo's over TCP.
_LINKS = {SHARED_MEMORY: Link(2e9, 4e9, 6e-5), GLOO: Link(0.5e9, 1e9, 2e-4)}

_MEMORY_FOLDER = "/dev/shm"  # files in it are in memory


def shared_folder(workers: int, transport: str | None) -> tuple[Path, str]:
    """Make the folder through which workers find each other; returns it and the name of their transport.

    Args:
        workers: how many.
        transport: of `TRANSPORTS`; None for shared memory where there is enough, and gloo otherwise.

    Raises:
        StowageError: there is no such transport, or too little shared memory for the one that was asked for.
    """
    if transport not in (None, *TRANSPORTS):
        raise StowageError(f"there is no transport {transport!r}: take one of {', '.join(map(repr, TRANSPORTS))}")
    if transport != GLOO:
        with suppress(OSError):
            return _memory_folder(workers), SHARED_MEMORY
        if transport == SHARED_MEMORY:
            raise StowageError(
                f"{workers} workers need {exchange_bytes(workers) / 2**20:.0f} MiB of shared memory, and "
                f'{_MEMORY_FOLDER} has less to give: make it larger, or take transport="{GLOO}"'
            )
    return Path(mkdtemp(prefix="stowage-")), GLOO


def exchange_link(transport: str | None) -> Link:
    """What plans expect of exchanges between workers of this machine by a transport, which is asked for by name."""
    return _LINKS[transport or SHARED_MEMORY]


def _memory_folder(workers: int) -> Path:
    folder = Path(mkdtemp(prefix="stowage-", dir=_MEMORY_FOLDER))
    try:
        with (folder / EXCHANGE_FILE).open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, exchange_bytes(workers))  # or a write would end the worker later
    except OSError:
        (folder / EXCHANGE_FILE).unlink(missing_ok=True)
        folder.rmdir()
        raise
    return folder
