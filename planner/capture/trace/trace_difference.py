"""Comparison of two traces of a step: whether they make the same calls, and the first difference if not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from planner import torch_private as private
from planner.capture.trace.trace import Trace
from planner.program import Event, Layout

#: By storage of the second trace's batch, the corresponding storage of the first, and the offset to add (in elements).
_Moved = Mapping[int, tuple[int, int]]


def trace_difference(known: Trace, now: Trace) -> str:
    """Describe the first difference between two traces; empty if there is none.

    The batches may have their tensors in a different order.

    Args:
        known: the earlier trace.
        now: the other trace.
    """
    ours, theirs = dict(known.batch), dict(now.batch)
    if ours.keys() != theirs.keys():
        return "a step with other tensors in its batch"
    moved = {theirs[name].storage: (one.storage, one.offset - theirs[name].offset) for name, one in ours.items()}
    if all(there == (storage, 0) for storage, there in moved.items()):
        moved = {}
    for before, after in zip(known.events, now.events, strict=False):
        if not _same(_parts(before), _parts(after), moved):
            if before.target is after.target:
                return f"{_where(after)} with other arguments than were captured"
            return f"{_where(after)} where {before.target} was captured"
    if len(known.events) != len(now.events):
        longer = max(known.events, now.events, key=len)
        event = longer[min(len(known.events), len(now.events))]
        return f"{len(now.events)} calls where {len(known.events)} were captured, and {_where(event)} is new or gone"
    if not _same(_facts(known), _facts(now), moved):
        return "the same calls for other results"
    return ""


def _facts(traced: Trace) -> tuple[Any, ...]:
    """Everything that a trace records apart from its calls."""
    batch = tuple(layout for _, layout in sorted(traced.batch))
    persistent = tuple((one.key, one.layout, one.replaced) for one in traced.persistent)
    scalars = tuple(sorted((one.name, *rest) for one, rest in traced.scalars.items()))
    constants = tuple(item for pair in traced.constants for item in pair)
    rest = tuple(sorted(traced.literals)), scalars, tuple(sorted(traced.representatives.items()))
    outputs = tuple(traced.outputs), traced.extras, traced.overflow
    return batch, outputs, tuple(traced.gradients.items()), persistent, constants, rest


def _parts(event: Event) -> tuple[Any, ...]:
    return event.target, event.args, tuple(event.kwargs.items()), event.results, event.draws_as


def _where(event: Event) -> str:
    module = f" in module {event.module}" if event.module else ""
    return f"{event.target}{module}{f' at {event.source}' if event.source else ''}"


def _same(one: Any, other: Any, moved: _Moved) -> bool:
    """Whether two arguments have the same type and bits, with the second's storages mapped by `moved`."""
    if one is other and not moved:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, Layout):
        storage, offset = moved.get(other.storage, (other.storage, 0))
        return bool(one == (other._replace(storage=storage, offset=other.offset + offset) if moved else other))
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(_same(a, b, moved) for a, b in zip(one, other, strict=True))
    if isinstance(one, torch.Tensor):
        return _same_bits(one, other)
    if isinstance(one, torch.ScriptObject):  # such as a profiler's record: only the class can be compared
        return True
    return repr(one) == repr(other) if isinstance(one, float | complex) else bool(one == other)


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one is other:
        return True
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    with private.no_modes():
        flat = [tensor.detach().contiguous().reshape(-1).view(torch.uint8) for tensor in (one, other)]
        return bool(torch.equal(*flat))
