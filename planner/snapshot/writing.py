"""A plan as the memory snapshot that a GPU would write if the plan were its allocator, for PyTorch's own viewer.

The viewer (pytorch.org/memory_viz) and `torch/cuda/_memory_viz.py` open it. The arena is one segment, each residency a
block, and every alloc and free an event at the predicted time of its slot. The arena and what is in it when the step
starts are there before the first event.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from planner.files import PATH, require_arguments, write_bytes
from planner.graph import Graph, storage_lines
from planner.plan import PlanIndex, SwapPlan, own_graph

#: Where the arena is: like an address of CUDA's, and one that numbers of JavaScript have exactly.
_BASE = 0x7F00_0000_0000
#: Segments are at least this large, and a multiple of it.
_SEGMENT = 2 * 2**20


def write(path: str | Path, graph: Graph, plan: SwapPlan) -> None:
    """Write a plan as a memory snapshot, atomically.

    Args:
        path: the file; the viewer expects a name that ends in `.pickle`.
        graph: the step.
        plan: its plan.

    Raises:
        StowageError: an argument is of another type, the plan is for another graph, or the file cannot be written.
    """
    require_arguments("snapshot.write", path=(path, PATH), graph=(graph, Graph), plan=(plan, SwapPlan))
    graph = own_graph(graph, plan)
    write_bytes(path, pickle.dumps(_Writer(graph, plan).snapshot(), protocol=4))


class _Writer:
    def __init__(self, graph: Graph, plan: SwapPlan) -> None:
        self._graph, self._index = graph, PlanIndex(graph, plan)
        self._frames = [_frames(graph, number, line) for number, line in enumerate(storage_lines(graph))]
        starts = np.append(plan.predicted.compute[:, 0], plan.predicted.seconds)
        self._microseconds = np.rint(1e6 * np.maximum.accumulate(starts)).astype(np.int64).tolist()
        self._size = max(-(-plan.peak_bytes // _SEGMENT), 1) * _SEGMENT

    def snapshot(self) -> dict[str, Any]:
        settings = {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0,
                    "expandable_segments": False}  # fmt: skip
        return {
            "segments": [self._segment()],
            "device_traces": [list(self._events())],
            "allocator_settings": settings,
            "external_annotations": [],
        }

    def _events(self) -> Iterator[dict[str, Any]]:
        index = self._index
        # in each slot, what leaves makes room for what comes; what is there when the step starts was allocated before
        comes = np.flatnonzero(~index.from_step_start).tolist()
        moments = [(int(index.start[number]), 1, number) for number in comes]
        moments += [(int(stop), 0, number) for number, stop in enumerate(index.stop) if index.ends[number]]
        for slot, begins, number in sorted(moments):
            storage, size = int(index.storage[number]), int(index.bytes[number])
            if not size:
                continue
            for action in ("alloc",) if begins else ("free_requested", "free_completed"):
                event = self._event(action, _BASE + int(index.offset[number]), size, self._frames[storage], slot)
                yield event | {"category": self._graph.storages[storage].kind.value}

    def _event(self, action: str, address: int, size: int, frames: list[dict[str, Any]], slot: int) -> dict[str, Any]:
        return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": self._microseconds[slot],
                "compile_context": "N/A", "user_metadata": "", "frames": frames}  # fmt: skip

    def _segment(self) -> dict[str, Any]:
        index, blocks, at = self._index, list[dict[str, Any]](), 0
        last = [
            number for number in np.argsort(index.offset).tolist() if not index.ends[number] and index.bytes[number]
        ]
        for number in last:
            offset, size = int(index.offset[number]), int(index.bytes[number])
            if offset > at:
                blocks.append(_block(at, offset - at, "inactive", []))
            blocks.append(_block(offset, size, "active_allocated", self._frames[int(index.storage[number])]))
            at = offset + size
        if at < self._size:
            blocks.append(_block(at, self._size - at, "inactive", []))
        used = sum(block["size"] for block in blocks if block["state"] != "inactive")
        return {"device": 0, "address": _BASE, "total_size": self._size, "allocated_size": used, "active_size": used,
                "requested_size": used, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0),
                "is_expandable": False, "frames": [], "blocks": blocks}  # fmt: skip


def _block(offset: int, size: int, state: str, frames: list[dict[str, Any]]) -> dict[str, Any]:
    requested = 0 if state == "inactive" else size
    return {
        "address": _BASE + offset, "size": size, "requested_size": requested, "state": state, "frames": frames,
    }  # fmt: skip


def _frames(graph: Graph, storage: int, line: str) -> list[dict[str, Any]]:
    """The storage in place of the function, at the line that it belongs to."""
    filename, _, number = line.rpartition(":")
    described = f"{graph.storages[storage].name} ({graph.storages[storage].kind.value.replace('_', ' ')})"
    return [{"filename": filename or graph.name, "line": int(number) if number.isdigit() else 0, "name": described}]
