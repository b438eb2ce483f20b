"""Positions that do not depend on the batch's values: looked up beyond a table's rows, they are refused.

Fake tensors have no values, so a model that looks up position 1024 of a table with 1024 rows runs on them without the
error that eager PyTorch raises. Positions that the step counts itself, as by `torch.arange`, are computed for real.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import torch

from planner import torch_private as private
from planner.errors import StowageError
from planner.graph import Phase
from planner.program import ALLOCATIONS, Event, Layout, Leaf, Memory

#: Positions that are computed from more bytes than this are not checked.
_MOST_BYTES = 2**24


def refuse_positions_out_of_range(events: Sequence[Event], constants: Mapping[Layout, torch.Tensor]) -> None:
    """Refuse a step that looks up rows which its tables do not have, as far as that depends on shapes alone.

    Args:
        events: all calls of the step, in order.
        constants: tensors that are neither persistent nor computed.

    Raises:
        StowageError: it looks up such a row.
    """
    made: set[int] = set()
    for event in events:
        made |= {layout.storage for layout in event.made} - {layout.storage for layout in event.arguments}
    known = {layout.storage: value for layout, value in constants.items() if value.device.type == "cpu"}
    for number, event in enumerate(events):
        for positions, rows, least in _lookups(event):
            memory = _memory(events, number, positions, made, constants, known.keys())
            if memory is None:
                continue
            lowest, highest = (int(memory.result(_reduction(each, positions))) for each in ("amin", "amax"))
            if highest >= rows or lowest < least:
                where = f"module {event.module}" if event.module else "the model"
                line = f" at {event.source}" if event.source else ""
                raise StowageError(
                    f"{where}{line} looks up row {highest if highest >= rows else lowest} of a table with {rows} rows "
                    f"({event.target}): make the sequence shorter, or the table longer"
                )


def _lookups(event: Event) -> Iterator[tuple[Layout, int, int]]:
    """The positions that a call looks up, of how many rows, and the least position that is one."""
    if event.kernel == "embedding":
        found = [(event.args[1], event.args[0].shape[0], 0)]
    elif event.kernel == "index":
        pairs = zip(event.args[1], event.args[0].shape, strict=False)
        found = [(positions, rows, -rows) for positions, rows in pairs if positions is not None]
    else:
        return
    for positions, rows, least in found:
        if positions.elements and not positions.dtype.is_floating_point and positions.dtype is not torch.bool:
            yield positions, rows, least


def _memory(
    events: Sequence[Event], end: int, positions: Layout, made: Collection[int],
    constants: Mapping[Layout, torch.Tensor], known: Collection[int],
) -> Memory | None:  # fmt: skip
    """The real values of positions before the call at `end`, or None if not constants and shapes alone decide them."""
    needed, size = {positions.storage}, 0
    calls: list[Event] = []
    if positions.storage not in made and positions.storage not in known:
        return None
    for event in reversed(events[:end]):
        written = {layout.storage for layout in (*event.made, *event.mutated)}
        if written.isdisjoint(needed):
            continue
        sources = {layout.storage for layout in event.arguments}
        size += sum(layout.bytes for layout in event.made)
        unknown = event.target.namespace != "aten" or any(not (one in made or one in known) for one in sources)
        if unknown or event.random or event.kernel in ALLOCATIONS or size > _MOST_BYTES:
            return None
        needed |= sources
        calls.append(event)
    leaves = [
        Leaf(layout, value, "", copied=True)
        for layout, value in constants.items()
        if layout.storage in needed and layout.storage in known
    ]
    memory = Memory(leaves)
    with private.plainly():
        for event in reversed(calls):
            memory.run(_on_host(event))
    return memory


def _on_host(event: Event) -> Event:
    """The call with its result in host memory."""
    if event.kwargs.get("device") is None:
        return event
    return event._replace(kwargs={**event.kwargs, "device": torch.device("cpu")})


def _reduction(name: str, layout: Layout) -> Event:
    return Event(getattr(torch.ops.aten, name).default, (layout,), {}, (), Phase.FORWARD, "", "")
