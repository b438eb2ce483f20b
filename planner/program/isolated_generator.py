"""Drawing from a separate generator in place of PyTorch's default one, which other threads use at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from threading import get_ident
from typing import Any

import torch

from planner import torch_private as private
from planner.errors import StowageError
from planner.program.kernels.rewrites import DRAWING


class _OfTheThread:
    """Replaces a default generator: where `is_here` says so, it is another generator."""

    def __init__(self, generator: torch.Generator, default: torch.Generator, is_here: Callable[[], bool]) -> None:
        self._generator, self._default, self._is_here = generator, default, is_here

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator if self._is_here() else self._default, name)


@contextmanager
def as_default(
    generator: torch.Generator,
    capture: private.TorchDispatchMode | None = None,
    of_gpus: torch.Generator | None = None,
) -> Iterator[None]:
    """Redirect this thread's use of the default generator by `torch`'s functions to another one.

    Args:
        generator: draws on the CPU. One thread at a time may do this.
        capture: a mode that a step is captured in. Then seeds and states of the GPUs' generators are redirected, too,
            also in the threads that its backward pass is made in.
        of_gpus: the generator in the place of the GPUs' then; None for the same one.
    """
    random: Any = torch.random
    before, before_there = random.default_generator, torch.cuda.default_generators
    thread = get_ident()

    def is_here() -> bool:
        return get_ident() == thread if capture is None else private.in_capture(thread, capture)

    random.default_generator = _OfTheThread(generator, torch.default_generator, is_here)
    there = generator if of_gpus is None else of_gpus
    instead: Any = tuple(_OfTheThread(there, default, is_here) for default in before_there)
    if capture is not None:
        torch.cuda.default_generators = instead
    try:
        yield
    finally:
        random.default_generator = before
        if torch.cuda.default_generators is instead:  # PyTorch makes them when a GPU is first used
            torch.cuda.default_generators = before_there


class _DrawMode(private.TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Makes ops of this thread that draw on a generator's device draw from it, and reports the bytes of new tensors."""

    def __init__(self, generator: torch.Generator, note: Callable[[int], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._generator, self._note = generator, note
        self._bytes = 0

    def __torch_dispatch__(
        self,
        func: private.OpOverload,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = dict(kwargs or {})
        if not private.is_deterministic(func, args, kwargs) and self._generator.device.type == _device_type(
            args, kwargs
        ):
            result = self._draw(func, args, kwargs)
        else:
            result = func(*args, **kwargs)
        made_of = next(private.tensors((args, kwargs)), None)
        if isinstance(result, torch.Tensor) and made_of is None:
            self._bytes += 0 if result.is_meta or result.layout is not torch.strided else result.nbytes
            self._note(self._bytes)
        return result

    def _draw(self, func: private.OpOverload, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        named = kwargs.get("generator")
        if named is not None and named is not torch.default_generator:
            return func(*args, **kwargs)
        drawn = _drawn(func, args, {**kwargs, "generator": self._generator})
        if drawn is not NotImplemented:
            return drawn
        raise StowageError(
            f"{func} in a function that makes the model or the batch knows no generator but PyTorch's default one: "
            "draw by an operator that takes a generator, such as torch.rand or torch.randint, or pass what it makes"
        )


@contextmanager
def drawing_from(generator: torch.Generator, note: Callable[[int], None] = lambda _: None) -> Iterator[None]:
    """Redirect all draws of this thread on a generator's device, and all seeds that it sets, to that generator.

    Args:
        generator: draws on the device of the default one. One thread at a time may do this.
        note: called with the total bytes so far of tensors created from no other tensor; it may raise.

    Raises:
        StowageError: an op draws that can only draw from the default generator.
    """
    with as_default(generator), _DrawMode(generator, note):
        yield


def _device_type(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    device = kwargs.get("device")
    if device is None:
        given = next(private.tensors((args, kwargs)), None)
        device = torch.get_default_device() if given is None else given.device
    return torch.device(device).type


def _drawn(func: private.OpOverload, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Return what an op draws from the generator among its arguments; NotImplemented if it does not accept one."""
    if has_generator(func):
        return func(*args, **kwargs)
    if func in _ALIKE:
        result = torch.empty_like(args[0], **{name: kwargs[name] for name in kwargs if name != "generator"})
        bound = DRAWING[func](result, *args, **kwargs)
        bound.function(*bound.args, **bound.kwargs)
        return result
    packet = func.overloadpacket
    if any(has_generator(getattr(packet, name)) for name in packet.overloads()):
        return packet(*args, **kwargs)
    return NotImplemented


@cache
def has_generator(func: Callable[..., Any]) -> bool:
    """Whether an operator has an argument `generator`."""
    return any(argument.name == "generator" for argument in private.schema(func).arguments)


#: Ops that draw a tensor like another one; not every version of PyTorch lets them take a generator.
_ALIKE = [func for func in DRAWING if str(func).partition(".")[2].partition(".")[0].endswith("_like")]
