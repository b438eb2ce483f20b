"""Memory snapshots as PyTorch 2.11 to 2.13 write them, from Python and from C++, with and without what is optional.

The format is in `torch/cuda/memory.py` and `torch/cuda/_memory_viz.py` (BSD licence), and what writes it in
`torch/csrc/cuda/Module.cpp` and `memory_snapshot.cpp`.
"""

from __future__ import annotations

from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy as np

from planner.errors import StowageError
from planner.finalizers import without_garbage_collection
from planner.snapshot.loading.fields import codes, column, rows, sizes, whole
from planner.snapshot.loading.unpickling import unpickle
from planner.snapshot.memory_snapshot import MemorySnapshot
from planner.snapshot.stacks import StackTable
from planner.snapshot.tables import ACTIONS, STATES, Action, Ints, MemoryBlocks, MemoryEvents, MemorySegments
from planner.units import several

_ACTIONS = {action.value: number for number, action in enumerate(ACTIONS)}
#: PyTorch's documentation gives one of them another name.
_STATES = {state.value: number for number, state in enumerate(STATES)} | {"active_awaiting_free": 1}
_RECORD = "record with torch.cuda.memory._record_memory_history() before the step"


def read(path: str | Path, device: int | None = None) -> MemorySnapshot:
    """Read a file that `torch.cuda.memory._dump_snapshot` wrote; nothing in it is executed.

    Args:
        path: the file.
        device: number of the device; by default the only one of which there is anything.

    Raises:
        StowageError: the file cannot be read, is no snapshot, holds nothing, or something of several devices.
    """
    try:
        with without_garbage_collection():
            return _snapshot(Path(path).name, unpickle(path), device)
    except StowageError as error:
        raise StowageError(f"{path} cannot be read as a memory snapshot: {error}") from error


def _snapshot(name: str, data: Any, device: int | None) -> MemorySnapshot:
    if isinstance(data, list):  # torch.cuda.memory_snapshot() alone
        data = {"segments": data}
    if not isinstance(data, dict):
        raise StowageError(f"it is {type(data).__name__}, not a dict; give what _dump_snapshot wrote")
    if "segments" not in data:
        raise StowageError("it has no segments; give what _dump_snapshot wrote")
    segments, traces = rows(data["segments"], "segments"), data.get("device_traces", [])
    if not isinstance(traces, list):
        raise StowageError(f"its device_traces are {type(traces).__name__}, not a list")
    devices = whole(column(segments, "device", "segment", 0), "device", "segment")
    chosen = _device(device, {*devices.tolist(), *(number for number, trace in enumerate(traces) if trace)})
    table = StackTable()
    ours = [segment for segment, of in zip(segments, devices.tolist(), strict=True) if of == chosen]
    held, blocks = _segments(ours, table)
    events = _events(rows(traces[chosen], "events") if chosen < len(traces) else [], table)
    found = MemorySnapshot(name, chosen, held, blocks, events, table.stacks())
    _ = found.peak  # refuses what does not add up
    return found


def _device(asked: int | None, there: set[int]) -> int:
    listed = ", ".join(map(str, sorted(there)[:8]))
    if not there:
        raise StowageError(f"it has no segments and no events; {_RECORD}")
    if asked is None and len(there) > 1:
        raise StowageError(f"it has {several(len(there), 'device')}; choose one of {listed}")
    chosen = next(iter(there)) if asked is None else asked
    if chosen not in there:
        raise StowageError(f"it has nothing of device {chosen}; choose {listed}")
    return chosen


def _segments(segments: list[dict[str, Any]], table: StackTable) -> tuple[MemorySegments, MemoryBlocks]:
    address = whole(column(segments, "address", "segment"), "address", "segment")
    size = sizes(column(segments, "total_size", "segment"), "total_size", "segment")
    order = np.argsort(address, kind="stable")
    over = np.flatnonzero((address + size)[order][:-1] > address[order][1:])
    if len(over):
        raise StowageError(f"segments overlap at address {address[order][over[0] + 1]:,}; copy it again")
    segments = [segments[at] for at in order.tolist()]
    kinds = column(segments, "segment_type", "segment", "large")
    held = MemorySegments(
        address[order], size[order],
        whole(column(segments, "stream", "segment", 0), "stream", "segment", -(2**62)),
        np.array([kind != "small" for kind in kinds], np.bool_),
        np.array([segment.get("is_expandable") is True for segment in segments], np.bool_),
    )  # fmt: skip
    return held, _blocks(held, segments, table)


def _blocks(held: MemorySegments, segments: list[dict[str, Any]], table: StackTable) -> MemoryBlocks:
    inside = [rows(blocks, "blocks") for blocks in column(segments, "blocks", "segment", [])]
    blocks = list(chain.from_iterable(inside))
    segment = np.repeat(np.arange(len(inside)), [len(one) for one in inside])
    size = sizes(column(blocks, "size", "block"), "size", "block")
    address = _addresses(held, blocks, segment, size)
    filled = np.bincount(segment, size, len(inside)).astype(np.int64)
    wrong = np.flatnonzero((filled != held.bytes) & (np.bincount(segment, minlength=len(inside)) > 0))
    if len(wrong):
        at = wrong[0]
        raise StowageError(f"segment {at:,} has {held.bytes[at]:,} bytes and its blocks {filled[at]:,}; copy it again")
    asked = [one.get("requested_size", bytes_) for one, bytes_ in zip(blocks, size.tolist(), strict=True)]
    return MemoryBlocks(
        segment, address, size, sizes(asked, "requested_size", "block"),
        codes(column(blocks, "state", "block"), _STATES, "state", "block"),
        np.array([table.add(one.get("frames")) for one in blocks], np.int64),
    )  # fmt: skip


def _addresses(held: MemorySegments, blocks: list[dict[str, Any]], segment: Ints, size: Ints) -> Ints:
    """Blocks follow each other without a gap."""
    before = np.cumsum(size) - size
    first = np.searchsorted(segment, segment)
    address = held.address[segment] + before - before[first] if len(size) else np.zeros(0, np.int64)
    said = [one.get("address", where) for one, where in zip(blocks, address.tolist(), strict=True)]
    wrong = np.flatnonzero(whole(said, "address", "block") != address)
    if len(wrong):
        raise StowageError(f"block {wrong[0]:,} is not where the one before it ends; copy it again")
    return np.asarray(address, np.int64)


def _events(events: list[dict[str, Any]], table: StackTable) -> MemoryEvents:
    action = codes(column(events, "action", "event"), _ACTIONS, "action", "event")
    oom = action == _ACTIONS[Action.OOM]
    where = [
        event.get("device_free" if failed else "addr", 0 if failed or not size else None)
        for event, failed, size in zip(events, oom.tolist(), column(events, "size", "event"), strict=True)
    ]
    times = [-1 if time is None else time for time in column(events, "time_us", "event", None)]
    return MemoryEvents(
        action, whole(where, "addr", "event"), sizes(column(events, "size", "event"), "size", "event"),
        whole(column(events, "stream", "event", 0), "stream", "event", -(2**62)),
        whole(times, "time_us", "event", -1),
        np.fromiter(map(table.add, map(dict.get, events, repeat("frames"))), np.int64, len(events)),
    )  # fmt: skip
