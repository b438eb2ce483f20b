"""What calls return, found on tensors without memory."""

from __future__ import annotations

from typing import Any

import torch

from planner import torch_private as private
from planner.partition.workers.events.worker_events import refuse
from planner.program import Backend, Layout, ScalarRef

#: Shape and type of what a call returns; None for what is no tensor.
Returned = tuple[tuple[tuple[int, ...], torch.dtype] | None, ...]

#: What calls returned, for all graphs of all workers, which make the same calls over and over.
_known: dict[object, Returned] = {}
_MOST_KNOWN = 10_000


class FakeCalls:
    """Calls on tensors without memory; calls that look alike are made once.

    Args:
        backend: of the device that the graph is for.
    """

    def __init__(self, backend: Backend) -> None:
        """Begin without calls."""
        self._backend = backend
        self._mode = private.FakeTensorMode(allow_non_fake_inputs=True)

    def returned(self, op: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Returned:
        """What a call returns.

        Args:
            op: the op that it is for, for messages.
            target, args, kwargs: the call, with layouts for tensors.

        Raises:
            StowageError: the kernel refuses such arguments.
        """
        key = self._backend.device, torch.get_default_dtype(), target, repr(_plain((args, kwargs)))
        known = _known.get(key)
        if known is None:
            with self._mode, torch.no_grad():
                made: dict[Layout, torch.Tensor] = {}
                try:
                    found = self._backend.fake_call(target, _faked(args, made), _faked(kwargs, made))
                except (RuntimeError, ValueError, TypeError, IndexError) as error:
                    raise refuse(op, f"{target} does not run on chunks: {error}") from error
            values = found if isinstance(found, list | tuple) else [found]
            known = tuple(
                (tuple(value.shape), value.dtype) if isinstance(value, torch.Tensor) else None for value in values
            )
            if len(_known) >= _MOST_KNOWN:
                _known.clear()
            _known[key] = known
        return known

    def check(
        self, op: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], results: tuple[Layout | None, ...]
    ) -> None:
        """Check that a call returns tensors of the right shapes.

        Raises:
            StowageError: it does not.
        """
        for value, result in zip(self.returned(op, target, args, kwargs), results, strict=True):
            if result is not None and value != (result.shape, result.dtype):
                shape = None if value is None else list(value[0])
                raise refuse(op, f"{target} on chunks makes {shape} in place of {list(result.shape)}")


def _plain(value: Any) -> Any:
    if isinstance(value, Layout):
        return value.shape, value.strides, str(value.dtype)
    if type(value) is tuple or type(value) is list:
        return tuple(_plain(item) for item in value)
    return {name: _plain(item) for name, item in value.items()} if type(value) is dict else value


def _faked(value: Any, made: dict[Layout, torch.Tensor]) -> Any:
    if isinstance(value, Layout):
        if value not in made:
            made[value] = torch.empty_strided(value.shape, value.strides, dtype=value.dtype)
        return made[value]
    if isinstance(value, ScalarRef):
        return 0.5
    if type(value) is tuple or type(value) is list:
        return [_faked(item, made) for item in value]
    return {name: _faked(item, made) for name, item in value.items()} if type(value) is dict else value
