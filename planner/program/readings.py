"""Values of a batch by which Python code chose what a step does, and the calls that they depend on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch

from planner.program.recorded_calls import Event, Layout

#: A number, or the shapes of a call's results.
Value = bool | int | float | complex | tuple[tuple[int, ...], ...]


class Leaf(NamedTuple):
    """A tensor that a replay starts from.

    Args:
        layout: the recorded layout.
        source: the index of a leaf of the batch, or a real tensor.
        name: for messages; `""` for a constant.
        copied: whether the replay writes to it.
    """

    layout: Layout
    source: int | torch.Tensor
    name: str
    copied: bool = False


class Reading(NamedTuple):
    """A value that Python code read.

    Args:
        call: the call that read it, or one whose results have shapes that depend on values.
        what: `"aten.all in module model at masks.py:12"`.
        value: the value read.
    """

    call: Event
    what: str
    value: Value


@dataclass(frozen=True)
class Readings:
    """Everything that Python code read while a step was captured, and how to compute it from a batch.

    Args:
        leaves: the tensors that the calls start from.
        calls: in order, the calls that the values depend on, including the readings.
    """

    leaves: tuple[Leaf, ...] = ()
    calls: tuple[Event | Reading, ...] = ()

    @property
    def values(self) -> tuple[tuple[str, Value], ...]:
        """The description of each reading, in order, with the value that the graph was captured for."""
        return tuple((call.what, call.value) for call in self.calls if isinstance(call, Reading))

    @property
    def shaped(self) -> frozenset[int]:
        """The recorded storages whose size was read."""
        calls = (call.call for call in self.calls if isinstance(call, Reading))
        return frozenset(layout.storage for call in calls for layout in call.made)
