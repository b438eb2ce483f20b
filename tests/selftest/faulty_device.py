"""A CPU device with one fault, of the kind that a device's file may have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from planner.run import CpuDevice

#: Takes what a stream's method would do as a function, and its arguments.
Fault = Callable[..., Any]


def with_fault(stream: str, method: str, fault: Fault, every: int = 1) -> Callable[[int, int], CpuDevice]:
    """What makes devices with a fault.

    Args:
        stream: the attribute of the device that has it; "" for the device itself.
        method: of the stream.
        fault: called in place of it, with the method, the device and the arguments.
        every: only every so many calls have the fault.
    """

    def make(arena_bytes: int, host_bytes: int) -> CpuDevice:
        device = CpuDevice(arena_bytes, host_bytes)
        owner = getattr(device, stream) if stream else device
        real, count = getattr(owner, method), 0

        def faulty(*args: Any) -> Any:
            nonlocal count
            count += 1
            return real(*args) if count % every else fault(real, device, *args)

        setattr(owner, method, faulty)
        return device

    return make


def left_out(real: Fault, device: CpuDevice, *args: Any) -> None:
    """Nothing is done."""


def twice(real: Fault, device: CpuDevice, *args: Any) -> None:
    """It is done a second time."""
    real(*args)
    real(*args)


def moves_a_number(real: Fault, device: CpuDevice, function: Any, args: Any, kwargs: Any) -> None:
    """The first number of a result is the next larger one."""
    real(function, args, kwargs)
    for result in _results(function, args, kwargs):
        if result.numel() and result.is_floating_point():
            first = result[(0,) * result.dim()]
            first.copy_(torch.nextafter(first, torch.full_like(first, torch.inf)))
            return


def rounds(real: Fault, device: CpuDevice, function: Any, args: Any, kwargs: Any) -> None:
    """Results have a few bits less."""
    real(function, args, kwargs)
    for result in _results(function, args, kwargs):
        if result.is_floating_point():
            result.copy_(result.to(torch.bfloat16))


def writes_beyond(real: Fault, device: CpuDevice, function: Any, args: Any, kwargs: Any) -> None:
    """The last byte of the arena that is no argument's and no result's is overwritten."""
    real(function, args, kwargs)
    free = torch.ones_like(device.arena, dtype=torch.bool)
    for tensor in tree_leaves((args, kwargs)):
        if isinstance(tensor, Tensor) and tensor.numel():
            first = tensor.data_ptr() - device.arena.data_ptr()
            reach = sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride(), strict=True))
            free[max(first, 0) : max(first + (reach + 1) * tensor.itemsize, 0)] = False
    device.arena[int(free.nonzero()[-1])] = 7


def draws_more(real: Fault, device: CpuDevice, function: Any, args: Any, kwargs: Any) -> None:
    """One more random number is drawn."""
    real(function, args, kwargs)
    torch.rand(1)


def draws_less(real: Fault, device: CpuDevice, function: Any, args: Any, kwargs: Any) -> None:
    """Random numbers are those of the call before."""
    with _generator_kept():
        real(function, args, kwargs)


def loses_the_last_byte(real: Fault, device: CpuDevice, target: Tensor, source: Tensor) -> None:
    """A copy ends too early."""
    real(target[:-1], source[:-1])


def copies_backwards(real: Fault, device: CpuDevice, target: Tensor, source: Tensor) -> None:
    """A copy has its ends confused."""
    real(source, target)


def copies_a_byte_further(real: Fault, device: CpuDevice, target: Tensor, source: Tensor) -> None:
    """What is copied begins a byte later."""
    real(target[1:], source[:-1])


def holds_more(real: Fault, device: CpuDevice, *args: Any) -> int:
    """A call takes a MiB more than it does."""
    return int(real(*args)) + 2**20


def one_thing_at_a_time(arena_bytes: int, host_bytes: int) -> CpuDevice:
    """A device that copies when it is told to, before it does anything else, so that no wait is ever needed."""
    device = CpuDevice(arena_bytes, host_bytes)
    for stream in (device.swap_out, device.swap_in):

        def copy(target: Tensor, source: Tensor, stream: Any = stream) -> None:
            stream.begun += 1
            target.copy_(source)
            stream.spans.append((0.0, 0.0))

        stream.copy = copy  # type: ignore[method-assign]
        stream.fill = Tensor.fill_  # type: ignore[method-assign, assignment]
        stream.delay = lambda _: None  # type: ignore[method-assign]
    return device


def _results(function: Any, args: Any, kwargs: Any) -> list[Tensor]:
    """Tensors that a bound call writes."""
    found = [value for name, value in kwargs.items() if name.startswith("out") and isinstance(value, Tensor)]
    if found:
        return found
    last = args[-1] if args and isinstance(args[-1], tuple) else args
    return [value for value in last if isinstance(value, Tensor)][:1]


@contextmanager
def _generator_kept() -> Iterator[None]:
    state = torch.get_rng_state()
    try:
        yield
    finally:
        torch.set_rng_state(state)
