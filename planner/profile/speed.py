"""Measured speeds of the attached machine: copies one way and both ways at once, and matrix products."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from queue import SimpleQueue

import numpy as np
import torch
from torch import Tensor

from planner.machine import Link

_COPY_BYTES = 64 * 2**20
_SMALL_BYTES = 4096
_REPEATS = 9
_HANDOVERS = 60
#: Rows and columns that are enough for full speed, and on a CPU for a third of the time; and seconds that one product
#: of them may take, or smaller ones will do: of types that a processor has no instructions for, they take 100 times as
#: long.
_MATMUL_SIZE = {"cpu": 1024, "cuda": 4096}
_MATMUL_SECONDS = 0.1
#: Copied within a device's memory: on a GPU more than its caches hold, for far longer than a launch and a wait take.
_MEMORY_BYTES = {"cpu": _COPY_BYTES, "cuda": 2**28}


def measure_link(device: torch.device, other: torch.device | None = None) -> Link:
    """Measure copies between a device and host memory, made by background threads as the executor's are.

    Args:
        device: the device.
        other: a second device instead of host memory.

    Returns:
        Bandwidth of one direction alone and of both together, and the time of the smallest copy from its submission to
        the thread until its completion is seen.
    """
    one_way = [_pair(device, other, _COPY_BYTES)]
    both_ways = [*one_way, _pair(device, other, _COPY_BYTES)[::-1]]
    bandwidth = _COPY_BYTES / _copy_seconds(one_way)
    together = 2 * _COPY_BYTES / _copy_seconds(both_ways)
    latency = _handover_seconds(*_pair(device, other, _SMALL_BYTES))
    # both directions together are never slower than one alone, nor more than twice as fast; timing noise may differ
    return Link(bandwidth, min(max(together, bandwidth), 2 * bandwidth), latency)


def measure_matmul(device: torch.device, dtype: torch.dtype) -> float:
    """FLOP/s that a square matrix product reaches, one as large as takes no longer than it is worth."""
    size = _MATMUL_SIZE[device.type] // 8
    while size < _MATMUL_SIZE[device.type] and 8 * min(_matmul_seconds(device, dtype, size, 2)) < _MATMUL_SECONDS:
        size *= 2
    return 2 * size**3 / _typical(_matmul_seconds(device, dtype, size, _REPEATS))


def _matmul_seconds(device: torch.device, dtype: torch.dtype, size: int, repeats: int) -> list[float]:
    a, b = (torch.ones(size, size, dtype=dtype, device=device) for _ in range(2))
    out = torch.empty_like(a)
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        torch.mm(a, b, out=out)
        _finish(device)
        seconds.append(time.perf_counter() - start)
    return seconds


def measure_memory(device: torch.device) -> float:
    """Bytes per second that a device reads and writes together while it copies within its own memory."""
    source = torch.ones(_MEMORY_BYTES[device.type], dtype=torch.uint8, device=device)
    destination = torch.empty_like(source)
    seconds = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        destination.copy_(source)
        _finish(device)
        seconds.append(time.perf_counter() - start)
    return 2 * source.nbytes / _typical(seconds)


def _typical(seconds: Sequence[float]) -> float:
    """The median of the faster third: other programs only make calls slower, on a busy machine most of them."""
    return statistics.median(sorted(seconds)[: -(-len(seconds) // 3)])


def _pair(device: torch.device, other: torch.device | None, size: int) -> tuple[Tensor, Tensor]:
    source = torch.ones(size, dtype=torch.uint8, device=device)
    if other is not None:
        return source, torch.ones(size, dtype=torch.uint8, device=other)
    return source, torch.ones(size, dtype=torch.uint8, device="cpu", pin_memory=device.type == "cuda")


def _copy_seconds(pairs: Sequence[tuple[Tensor, Tensor]]) -> float:
    """Seconds until all (source, destination) pairs are copied, each by a separate thread."""
    start = threading.Barrier(len(pairs))
    spans: list[list[float]] = [[] for _ in pairs]

    def work(position: int, source: Tensor, destination: Tensor) -> None:
        with _own_stream(source, destination):
            for _ in range(_REPEATS):
                start.wait()
                begin = time.perf_counter()
                _copy(destination, source)
                spans[position].append(time.perf_counter() - begin)

    threads = [
        threading.Thread(target=work, args=(position, *pair), daemon=True) for position, pair in enumerate(pairs)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return _typical([max(pair_seconds) for pair_seconds in zip(*spans, strict=True)])


def _handover_seconds(source: Tensor, destination: Tensor) -> float:
    work: SimpleQueue[threading.Event | None] = SimpleQueue()

    def copy_on_request() -> None:
        with _own_stream(source, destination):
            while (done := work.get()) is not None:
                _copy(destination, source)
                done.set()

    thread = threading.Thread(target=copy_on_request, daemon=True)
    thread.start()
    seconds = []
    for _ in range(_HANDOVERS):
        done = threading.Event()
        begin = time.perf_counter()
        work.put(done)
        done.wait()
        seconds.append(time.perf_counter() - begin)
    work.put(None)
    thread.join()
    return _typical(seconds)


def _copy(destination: Tensor, source: Tensor) -> None:
    if source.device.type == destination.device.type == "cpu":
        # as in the executor: on this thread alone, and without the interpreter's lock
        np.copyto(destination.numpy(), source.numpy())
        return
    destination.copy_(source, non_blocking=True)
    _finish(source.device)
    _finish(destination.device)


def _own_stream(*tensors: Tensor) -> AbstractContextManager[object]:
    for tensor in tensors:
        if tensor.is_cuda:
            own = torch.cuda.Stream(tensor.device)  # type: ignore[no-untyped-call]
            return torch.cuda.stream(own)
    return nullcontext()


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.current_stream(device).synchronize()
