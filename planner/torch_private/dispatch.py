"""Dispatch of calls to kernels: modes, autocast, and temporary overrides of kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from threading import get_ident
from typing import Any, NamedTuple

import torch
from torch._ops import OpOverload
from torch.amp import autocast_mode
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from torch.utils._python_dispatch import _disable_current_modes as no_modes

__all__ = [
    "Autocast",
    "Continuation",
    "TorchDispatchMode",
    "autocast_as",
    "autocast_enabled",
    "autocast_settings",
    "autocasting",
    "autocasting_for",
    "below_autograd",
    "default_device",
    "function_modes",
    "in_capture",
    "no_modes",
    "overriding",
    "plainly",
    "user_modes",
    "without_autocast",
]  # fmt: skip

#: The types of device that steps are captured for, each with an autocast of its own.
_DEVICES = ("cpu", "cuda")
#: As PyTorch has them: a capture for a device that is absent puts others in their place.
_is_autocast_enabled, _autocast_dtype = torch.is_autocast_enabled, torch.get_autocast_dtype
_AUTOCASTS = (torch._C.DispatchKey.AutocastCPU, torch._C.DispatchKey.AutocastCUDA)


def in_capture(thread: int, mode: TorchDispatchMode) -> bool:
    """Whether the running thread is a given one, or one that a backward pass has taken a dispatch mode to.

    Autograd makes the backward pass of what is on a GPU in a thread of its own, with the modes of the thread that asked
    for it.

    Args:
        thread: by `get_ident`.
        mode: the mode.
    """
    if get_ident() == thread:
        return True
    return torch._C._len_torch_dispatch_stack() > 0 and any(one is mode for one in _get_current_dispatch_mode_stack())


@contextmanager
def overriding(kernels: Mapping[OpOverload, Callable[..., Any]], mode: TorchDispatchMode) -> Iterator[None]:
    """Override operators by other functions for the calls of a capture that would reach a dispatch mode.

    Calls from within PyTorch's own kernels are overridden too. Other threads, and calls outside of any dispatch mode,
    are unaffected.

    Args:
        kernels: by operator of `aten`, a function that receives a function to continue without it, then the call's
            arguments.
        mode: of the capture, which this thread makes.
    """
    thread = get_ident()
    # the key at which a call under a dispatch mode enters, above autocast and autograd
    beyond = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.PythonTLSSnapshot)

    def answered(target: OpOverload, kernel: Callable[..., Any]) -> Callable[..., Any]:
        def answer(keys: Any, *args: Any, **kwargs: Any) -> Any:
            go_on = Continuation(target, keys & beyond)
            return (kernel if in_capture(thread, mode) else _plainly)(go_on, *args, **kwargs)

        return answer

    library: Any = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    try:
        for target, kernel in kernels.items():
            library.impl(target, answered(target, kernel), "PythonTLSSnapshot", with_keyset=True)
        yield
    finally:
        library._destroy()


class Continuation:
    """Continues a call of an operator without its override.

    Args:
        target: the operator.
        keys: of the kernels that follow.
    """

    def __init__(self, target: OpOverload, keys: Any) -> None:
        self.target, self._keys = target, keys

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it as autocast has it, if that is enabled."""
        return self.target.redispatch(self._keys, *args, **kwargs)

    def past_autocast(self, *args: Any, **kwargs: Any) -> Any:
        """Call it with these arguments; what it is made of is called as autocast has it."""
        keys = self._keys
        for autocast in _AUTOCASTS:
            keys = keys.remove(autocast)
        return self.target.redispatch(keys, *args, **kwargs)


def _plainly(go_on: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return go_on(*args, **kwargs)


@contextmanager
def plainly() -> Iterator[None]:
    """Run kernels without modes, derivatives and autocast."""
    modes = no_modes() if torch._C._len_torch_dispatch_stack() else nullcontext()
    with modes, without_autocast(), torch._C.DisableTorchFunction(), torch.no_grad():
        yield


class Autocast(NamedTuple):
    """The autocast of one type of device: whether it is enabled, and the dtype that it has or would have by default."""

    enabled: bool
    dtype: torch.dtype


def autocast_settings() -> tuple[Autocast, ...]:
    """This thread's autocast of each type of device that steps are captured for."""
    return tuple(Autocast(_is_autocast_enabled(one), _autocast_dtype(one)) for one in _DEVICES)


def autocast_enabled() -> bool:
    """Whether any autocast is enabled in this thread."""
    return any(_is_autocast_enabled(one) for one in _DEVICES)


def below_autograd() -> AbstractContextManager[None]:
    """Call operators without their derivatives, and without making them of others for the sake of those."""
    guard: AbstractContextManager[None] = torch._C._AutoDispatchBelowAutograd()
    return guard


def autocasting() -> bool:
    """Whether autocast was enabled at the call of the op that a dispatch mode is handling."""
    with torch._C._RestorePythonTLSSnapshot():  # type: ignore[attr-defined]
        return autocast_enabled()


@contextmanager
def autocast_as(settings: Sequence[Autocast], *, caching: bool | None = None) -> Iterator[None]:
    """Set autocast for a block, of those types of device whose setting is another.

    Args:
        settings: as `autocast_settings` returns them.
        caching: whether casts of weights are kept; None for the present setting.
    """
    with ExitStack() as stack:
        for device, wanted, present in zip(_DEVICES, settings, autocast_settings(), strict=True):
            if wanted.enabled or present.enabled:
                stack.enter_context(torch.autocast(device, wanted.dtype, wanted.enabled, caching))
        yield


@contextmanager
def autocasting_for(absent: str, present: str, mode: TorchDispatchMode) -> Iterator[None]:
    """Let autocast of an absent type of device, which does nothing, be that of another for a capture.

    What the step asks about it is answered so too, also by `torch.amp.custom_fwd`.

    Args:
        absent, present: the types of device.
        mode: of the capture, which this thread makes.
    """
    thread, made, cast = get_ident(), torch.autocast.__init__, autocast_mode._cast

    def there(device_type: str) -> str:
        return present if device_type == absent and in_capture(thread, mode) else device_type

    def make(
        self: torch.autocast, device_type: str, dtype: torch.dtype | None = None, *args: Any, **kwargs: Any
    ) -> None:
        if there(device_type) != device_type:
            dtype = dtype or _autocast_dtype(absent)
        made(self, there(device_type), dtype, *args, **kwargs)

    def enabled(device_type: str = "cuda") -> bool:  # which it is of if none is named
        return _is_autocast_enabled(there(device_type))

    def dtype_of(device_type: str) -> torch.dtype:
        in_force = there(device_type)
        return _autocast_dtype(in_force if _is_autocast_enabled(in_force) else device_type)

    with ExitStack() as stack:
        for owner, name, function in (
            (torch.autocast, "__init__", make),
            (torch, "is_autocast_enabled", enabled),
            (torch, "get_autocast_dtype", dtype_of),
            (torch, "get_autocast_gpu_dtype", lambda: dtype_of("cuda")),  # its older name
            (autocast_mode, "_cast", lambda value, device_type, dtype: cast(value, there(device_type), dtype)),
        ):
            stack.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, function)
        yield


def without_autocast() -> AbstractContextManager[None]:
    """Disable the autocast of every type of device for a block."""
    return autocast_as([Autocast(False, setting.dtype) for setting in autocast_settings()])


def function_modes() -> int:
    """Number of function modes that this thread has entered; a default device is one of them."""
    return torch._C._len_torch_function_stack()


def user_modes() -> tuple[object, ...]:
    """The modes that this thread has entered, which intercept every call of a function or an operator."""
    functions = function_modes()
    if not functions and not torch._C._len_torch_dispatch_stack():
        return ()
    modes = [torch._C._get_function_stack_at(place) for place in range(functions)]
    return (*modes, *_get_current_dispatch_mode_stack())


def default_device() -> str:
    """The device of new tensors; PyTorch's own query takes a hundred microseconds, and gives cpu without any mode."""
    return str(torch.get_default_device()) if function_modes() else "cpu"
