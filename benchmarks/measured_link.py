"""The speed at which workers of this machine exchange bytes."""

from __future__ import annotations

import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from shutil import rmtree
from statistics import median
from threading import Barrier

import torch

from planner.machine import Link
from planner.run.workers.communication.shared_memory import SharedMemory
from planner.run.workers.communication.transports import SHARED_MEMORY, shared_folder

_SMALL, _LARGE = 1024, 8 * 2**20
_TIMES = 100


def measured_link() -> Link:
    """Time exchanges of two processes through shared memory, small ones for the latency and large ones for the rest."""
    context = get_context("spawn")
    folder, _ = shared_folder(2, SHARED_MEMORY)
    try:
        barrier, own = context.Barrier(2), context.Queue()
        processes = [context.Process(target=_exchange, args=(folder, worker, barrier, own)) for worker in range(2)]
        for process in processes:
            process.start()
        small, large = map(max, zip(own.get(), own.get(), strict=True))
        for process in processes:
            process.join()
    finally:
        rmtree(folder)
    bandwidth = (_LARGE - _SMALL) / (large - small)
    return Link(bandwidth, duplex_bandwidth=2 * bandwidth, latency=small)


def _exchange(folder: Path, worker: int, barrier: Barrier, found: object) -> None:
    torch.set_num_threads(1)
    end = SharedMemory(folder, worker, 2)
    barrier.wait()
    end.connect()
    found.put(tuple(_seconds(end, 1 - worker, size) for size in (_SMALL, _LARGE)))  # type: ignore[attr-defined]


def _seconds(end: SharedMemory, peer: int, size: int) -> float:
    part, into = torch.zeros(size, dtype=torch.uint8), torch.zeros(size, dtype=torch.uint8)
    return median(_timed(lambda: end.exchange({peer: part}, {peer: into})) for _ in range(_TIMES))


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
