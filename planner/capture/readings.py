"""Values of a batch by which Python code chose what a step does, and what they follow from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch

if TYPE_CHECKING:
    from planner.capture.events import Event, Layout

#: A number, or the shapes of what a call returns.
Value = bool | int | float | complex | tuple[tuple[int, ...], ...]


class Leaf(NamedTuple):
    """Where a replay begins.

    Args:
        layout: as it was recorded.
        source: the place of a leaf of the batch, or a real tensor.
        name: for messages; `""` for a constant.
        copied: whether the replay writes to it.
    """

    layout: Layout
    source: int | torch.Tensor
    name: str
    copied: bool = False


class Reading(NamedTuple):
    """A value that was handed to Python code.

    Args:
        call: the call that read it, or one whose results have shapes that follow from values.
        what: `"aten.all in module model at masks.py:12"`.
        value: what it read.
    """

    call: Event
    what: str
    value: Value


@dataclass(frozen=True)
class Readings:
    """All that Python code read while a step was captured, and how to compute it from a batch.

    Args:
        leaves: what the calls start from.
        calls: in order, the calls that the values follow from, and the readings among them.
    """

    leaves: tuple[Leaf, ...] = ()
    calls: tuple[Event | Reading, ...] = ()

    @property
    def values(self) -> tuple[tuple[str, Value], ...]:
        """What was read, in order, and the values that the graph was captured for."""
        return tuple((call.what, call.value) for call in self.calls if isinstance(call, Reading))

    @property
    def shaped(self) -> frozenset[int]:
        """The recorded storages whose size was read."""
        calls = (call.call for call in self.calls if isinstance(call, Reading))
        return frozenset(layout.storage for call in calls for layout in call.made)
