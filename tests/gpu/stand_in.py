"""A GPU whose memory is the host's and whose kernels are the CPU's, so that all but the kernels of a run on one is run.

To what captures, it is an imitated GPU. To what runs, tensors made on "cuda" are the host's, streams do their work at
once, and the GPU's generator is one of the CPU's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch

import planner.run  # noqa: F401 (before PyTorch is changed)
from planner.profile.attached_machine import attached_cpu
from tests.gpu.allocator import Allocator
from tests.gpu.imitated import imitate_gpu
from tests.run.kernel_graph import KernelGraph

_GENERATOR = torch.Generator


class StandInEvent:
    """An event with the interface of `torch.cuda.Event`."""

    def __init__(self, *_: Any, enable_timing: bool = False) -> None:
        self._timed, self._seconds = enable_timing, 0.0

    def record(self) -> None:
        self._seconds = perf_counter()

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, other: StandInEvent) -> float:
        if not (self._timed and other._timed):
            raise RuntimeError("both events must be timed")
        return 1e3 * (other._seconds - self._seconds)


class StandInStream:
    """A stream with the interface of `torch.cuda.Stream`."""

    def __init__(self, *_: Any) -> None:
        pass

    def wait_event(self, event: StandInEvent) -> None:
        pass

    def record_event(self, event: StandInEvent) -> None:
        event.record()

    def synchronize(self) -> None:
        pass


class StandInGraph:
    """A graph with the interface of `torch.cuda.CUDAGraph`."""

    def __init__(self) -> None:
        self._kernels = KernelGraph()

    def capture_begin(self, pool: object, capture_error_mode: str) -> None:
        self._kernels.__enter__()

    def capture_end(self) -> None:
        self._kernels.__exit__(None, None, None)

    def replay(self) -> None:
        self._kernels.replay()


class _AnyGenerator(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _GENERATOR)


class StandInGenerator(metaclass=_AnyGenerator):
    """What makes generators; all draw on the CPU."""

    def __new__(cls, device: object = "cpu") -> Any:
        """Make one."""
        return _GENERATOR("cpu" if _is_gpu(device) else device)


class Runtime:
    """CUDA's runtime, which pins pages and remembers which.

    Args:
        pinned: the bytes pinned by their first address.
        failing: what pinning returns, an error of CUDA; 0 pins.
        allocator: counts PyTorch's memory of the GPU.
    """

    def __init__(self) -> None:
        self.pinned: dict[int, int] = {}
        self.failing = 0
        self.allocator = Allocator()

    def cudaHostRegister(self, address: int, size: int, _flags: int) -> int:  # noqa: N802
        if not self.failing:
            assert address % 4096 == 0
            self.pinned[address] = size
        return self.failing

    def cudaHostUnregister(self, address: int) -> int:  # noqa: N802
        del self.pinned[address]
        return 0


def _set_stream(stream: StandInStream) -> None:
    torch.cuda.current_stream = lambda *_: stream  # type: ignore[assignment]


@contextmanager
def _stream(_: StandInStream) -> Iterator[None]:
    yield


def stand_in() -> Runtime:
    """Give this process, for good, a GPU that is the CPU; returns what pins memory for it."""
    imitate_gpu()
    runtime, cuda = Runtime(), torch.cuda
    fixed = {
        "current_device": 0, "init": None, "is_initialized": True, "_sleep": None,
        "get_device_name": "the CPU as a GPU", "current_stream": StandInStream(), "cudart": runtime,
        "graph_pool_handle": (0, 1), "empty_cache": None, "get_sync_debug_mode": 0, "set_sync_debug_mode": None,
    }  # fmt: skip
    for name, value in fixed.items():
        setattr(cuda, name, lambda *_, value=value, **__: value)
    counted = runtime.allocator
    counts: dict[str, Callable[[], Any]] = {
        "memory_allocated": lambda: counted.allocated, "memory_reserved": lambda: counted.reserved,
        "max_memory_allocated": lambda: counted.most, "reset_peak_memory_stats": counted.reset,
        "mem_get_info": counted.free_and_total, "get_per_process_memory_fraction": lambda: counted.fraction,
    }  # fmt: skip
    for name, count in counts.items():
        setattr(cuda, name, lambda *_, count=count, **__: count())
    cuda.set_per_process_memory_fraction = lambda fraction, *_: counted.limit(fraction)  # type: ignore[assignment]
    for name in ("cublas_workspace_size", "cublaslt_workspace_size"):
        setattr(torch.backends.cuda, name, lambda: 0)
    properties = SimpleNamespace(name="the CPU as a GPU", total_memory=counted.total)
    cuda.get_device_properties = lambda *_: properties  # type: ignore[assignment]
    cuda.default_generators = (torch.default_generator,)  # which its kernels draw from
    made: Any = {
        "Stream": StandInStream,
        "Event": StandInEvent,
        "CUDAGraph": StandInGraph,
        "stream": _stream,
        "device": _stream,
        "set_stream": _set_stream,
    }
    for name, value in made.items():
        setattr(cuda, name, value)
    _put_on_the_host(counted)
    attached = attached_cpu()
    machine = replace(attached, name="auto", devices=(replace(attached.device, kind="cuda"),))
    patch("planner.profile.attached_machine.attached", lambda: machine).start()
    return runtime


def _put_on_the_host(counted: Allocator) -> None:
    """Make tensors of the GPU on the host, but for those that a step is captured on; those made anew are counted."""
    for name in ("zeros", "empty"):
        setattr(torch, name, _elsewhere(getattr(torch, name), counted.follow))
    torch.Event, torch.Generator = StandInEvent, StandInGenerator  # type: ignore[assignment, misc]
    torch.Tensor.to = _elsewhere(torch.Tensor.to, copy=True)  # type: ignore[assignment, method-assign]


def _elsewhere(
    function: Callable[..., Any], made: Callable[[Any], object] = lambda _: None, **more: Any
) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> Any:
        if torch._C._len_torch_dispatch_stack() or not any(map(_is_gpu, (*args, *kwargs.values()))):
            return function(*args, **kwargs)
        host = torch.device("cpu")
        moved = tuple(host if _is_gpu(value) else value for value in args)
        result = function(*moved, **{name: host if _is_gpu(value) else value for name, value in kwargs.items()}, **more)
        made(result)
        return result

    return called


def _is_gpu(value: object) -> bool:
    return (isinstance(value, str) and value.startswith("cuda")) or (
        isinstance(value, torch.device) and value.type == "cuda"
    )
