"""Fake tensors, and what code outside of PyTorch may learn about them."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from types import FrameType
from typing import Any, cast

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)

from planner.errors import StowageError

__all__ = [
    "DATA_DEPENDENT",
    "UNSUPPORTED",
    "FakeTensor",
    "FakeTensorMode",
    "FakeTensorStandIn",
    "addresses_refused",
    "device_of",
    "fake_tensor",
    "quiet",
    "tracing_hidden",
]  # fmt: skip

_TORCH = f"{Path(torch.__file__).parent}{os.sep}"

#: Raised by an op whose result depends on the values of tensors.
DATA_DEPENDENT = (DataDependentOutputException, DynamicOutputShapeException)

#: Raised by an op that has no fake kernel.
UNSUPPORTED = (UnsupportedFakeTensorException, UnsupportedOperatorException)


@contextmanager
def quiet() -> Iterator[None]:
    """Prevent fake tensors from logging the traceback of an error that is also raised."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


def device_of(tensor: torch.Tensor) -> torch.device:
    """The device of a tensor, or the one that a fake tensor represents; PyTorch's own query is an operator call."""
    return tensor.fake_device if isinstance(tensor, FakeTensor) else tensor.device


def fake_tensor(
    mode: FakeTensorMode,
    shape: Sequence[int],
    strides: Sequence[int],
    dtype: torch.dtype,
    device: torch.device,
    storage: torch.UntypedStorage | None = None,
    offset: int = 0,
) -> FakeTensor:
    """Make a fake tensor as PyTorch's fake kernels make their results.

    Args:
        mode: the mode that it belongs to.
        shape, strides, dtype, device: of the tensor; strides in elements.
        storage, offset: for a view, a fake tensor's storage, and where in it the tensor begins, in elements.
    """
    with torch._C._DisableTorchDispatch():
        if storage is None:
            elements = torch.empty_strided(shape, strides, dtype=dtype, device="meta")
        else:
            elements = torch.empty(0, dtype=dtype, device="meta")
            elements.set_(storage, offset, shape, strides)
    return FakeTensor(mode, elements, device)


@contextmanager
def addresses_refused() -> Iterator[None]:
    """Refuse `data_ptr()` of fake tensors, which have no address, to code outside of PyTorch in this thread.

    Raises:
        StowageError: such code called it.
    """
    thread, kind = get_ident(), cast(Any, FakeTensor)

    def data_ptr(tensor: torch.Tensor) -> int:
        frame = sys._getframe(1)
        if get_ident() == thread and not frame.f_code.co_filename.startswith(_TORCH):
            raise StowageError(
                f"data_ptr() at {Path(frame.f_code.co_filename).name}:{frame.f_lineno} asks where a tensor lies, which "
                "a plan decides: let the step not depend on it"
            )
        return torch.Tensor.data_ptr(tensor)

    kind.data_ptr = data_ptr
    try:
        yield
    finally:
        del kind.data_ptr


@contextmanager
def tracing_hidden(hide: bool) -> Iterator[FakeTensorStandIn]:
    """Hide from code outside of PyTorch in this thread that tensors are fake.

    Such code checks `isinstance(x, torch._subclasses.FakeTensor)`. PyTorch's own code still gets the true answer.

    Args:
        hide: if False, such code gets the true answer too, and `asked` records that it checked.
    """
    package: Any = torch._subclasses
    before = package.FakeTensor
    package.FakeTensor = asked = FakeTensorStandIn(
        "FakeTensor", (), {"thread": get_ident(), "truthful": not hide, "asked": False}
    )
    try:
        yield asked
    finally:
        package.FakeTensor = before


class FakeTensorStandIn(type):
    """Replaces `FakeTensor` while a step is traced: for code outside of PyTorch, no tensor need appear to be fake.

    Attributes:
        asked: whether such code has checked if a tensor is fake.
    """

    thread: int
    truthful: bool
    asked: bool

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, FakeTensor) and cls._answers(sys._getframe(1))

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, FakeTensor) and cls._answers(sys._getframe(1))

    def __getattr__(cls, name: str) -> Any:
        return getattr(FakeTensor, name)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Create a fake tensor."""
        return FakeTensor(*args, **kwargs)

    def _answers(cls, frame: FrameType) -> bool:
        if get_ident() != cls.thread or frame.f_code.co_filename.startswith(_TORCH):
            return True
        cls.asked = True
        return cls.truthful
