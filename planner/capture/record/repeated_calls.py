"""Results of calls on fake tensors like those of an equal call before, which saves asking PyTorch's fake kernels again.

The layers of a model make the same calls on tensors of the same shapes, and PyTorch takes ten times as long to find
what its fake kernels say of one as to make a tensor without memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

import torch

from planner import torch_private as private

#: Of operators whose results depend on values, and of those that give a tensor another shape or storage.
_UNREPEATABLE = frozenset({
    torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape, torch.Tag.inplace_view,
})  # fmt: skip
#: Values whose type says with them what a kernel is given.
_PLAIN = (int, float, complex, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)


class _NotPlainError(Exception):
    """An argument does not say by itself what a kernel is given."""


class _Result(NamedTuple):
    """A tensor that a call returns.

    Args:
        shape, strides, dtype, device: of it.
        offset: into the storage of the first argument, in elements; -1 if it has one of its own.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    offset: int


#: What a call returns: its first argument, a tensor, or several; None for what is no tensor.
_Found = None | _Result | tuple["_Result | None", ...]


class RepeatedCalls:
    """Calls operators on fake tensors, and answers a call that equals an earlier one from that.

    An operator is called each time if its result depends on values, or shares memory with others than its first
    argument, or if it writes into others than that.

    Args:
        call: calls an operator on fake tensors, as `Backend.fake_call`.
        fake: the mode that fake tensors are created in.
    """

    def __init__(self, call: Callable[[Any, Sequence[Any], Mapping[str, Any]], Any], fake: private.FakeTensorMode):
        self._call, self._fake = call, fake
        self._known: dict[tuple[Any, ...], _Found] = {}

    def __call__(self, target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call an operator on fake tensors.

        Args:
            target: the overload.
            args, kwargs: its arguments.
        """
        if not _is_repeatable(target):
            return self._call(target, args, kwargs)
        try:
            key = (target, torch.is_grad_enabled(), torch.get_default_dtype(), _key(args), _key(kwargs))
        except _NotPlainError:
            return self._call(target, args, kwargs)
        if key in self._known:
            return self._made(self._known[key], args)
        result = self._call(target, args, kwargs)
        with suppress(_NotPlainError):
            if args and _writes(target) == (result is args[0]) and key[-2] == _key(args):
                self._known[key] = _found(args, kwargs, result)
        return result

    def _made(self, found: _Found, args: Sequence[Any]) -> Any:
        if found is None:
            return args[0]
        if isinstance(found, _Result):
            return self._tensor(found, args)
        return tuple(None if each is None else self._tensor(each, args) for each in found)

    def _tensor(self, found: _Result, args: Sequence[Any]) -> torch.Tensor:
        storage = None if found.offset < 0 else args[0].untyped_storage()
        return private.fake_tensor(
            self._fake, found.shape, found.strides, found.dtype, found.device, storage, max(found.offset, 0)
        )


@cache
def _is_repeatable(target: Any) -> bool:
    """Whether an operator's arguments alone say how its results are laid out, and it writes into the first only."""
    return target.namespace == "aten" and not {*target.tags} & _UNREPEATABLE and _writes(target) is not None


@cache
def _writes(target: Any) -> bool | None:
    """Whether an operator writes into its first argument; None if it writes into others."""
    arguments = target._schema.arguments
    written = [place for place, each in enumerate(arguments) if each.alias_info and each.alias_info.is_write]
    return None if written not in ([], [0]) else bool(written)


def _key(value: Any) -> Any:
    """What of an argument a fake kernel's results depend on."""
    if isinstance(value, torch.Tensor):
        plain = type(value) is private.FakeTensor and value.layout is torch.strided and value.constant is None
        if not plain or private.lazy(value):
            raise _NotPlainError
        return value.shape, value.stride(), value.storage_offset(), value.dtype, private.device_of(value)
    if isinstance(value, list | tuple):
        return type(value), *(_key(item) for item in value)
    if isinstance(value, Mapping):
        return tuple((name, _key(item)) for name, item in value.items())
    if isinstance(value, _PLAIN):
        return type(value), value  # 1, 1.0 and True are equal
    raise _NotPlainError


def _found(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> _Found:
    """What is kept of the results of a call; raises where they cannot be made again from it."""
    if result is args[0]:
        return None
    storages = [_storage(each) for each in private.tensors((args, kwargs))]
    several = isinstance(result, tuple)
    kept = tuple(None if each is None else _kept(each, args, storages) for each in (result if several else (result,)))
    own = [_storage(each) for each in private.tensors(result)]
    if len({*own}) < len(own) or not own:
        raise _NotPlainError
    return kept if several else kept[0]


def _kept(tensor: Any, args: Sequence[Any], storages: Sequence[int]) -> _Result:
    if not isinstance(tensor, torch.Tensor):
        raise _NotPlainError
    _key(tensor)
    identity, offset = _storage(tensor), int(tensor.storage_offset())
    if (
        tensor.requires_grad
        or tensor.layout is not torch.strided
        or any(tensor is each for each in private.tensors(args))
    ):
        raise _NotPlainError
    if identity not in storages:
        if offset or tensor.untyped_storage().nbytes() != _extent(tensor):
            raise _NotPlainError
        offset = -1
    elif not isinstance(args[0], torch.Tensor) or _storage(args[0]) != identity:
        raise _NotPlainError
    return _Result(tuple(tensor.shape), tensor.stride(), tensor.dtype, private.device_of(tensor), offset)


def _storage(tensor: torch.Tensor) -> int:
    return private.storage_identity(tensor.untyped_storage())


def _extent(tensor: torch.Tensor) -> int:
    """Bytes from the first to the last element."""
    if not tensor.numel():
        return 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return (last + 1) * tensor.dtype.itemsize
