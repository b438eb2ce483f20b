"""Segments of a step that fit in memory, and the memory layout for benchmarking them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from planner.graph import Graph
from planner.profile.signatures import ALIGNMENT


@dataclass
class Segment:
    """Consecutive ops, and the offsets of their storages in one slab.

    As in a plan, memory of storages that are made and dropped within the segment is used again, and results reuse the
    buffers of inputs that may be overwritten. Storages that exist before the segment keep their memory.

    Args:
        ops: in captured order.
        offsets: bytes from the slab's start, by storage.
        live_in: storages that exist before the segment.
        bytes: size of the slab.
    """

    ops: list[int] = field(default_factory=list)
    offsets: dict[int, int] = field(default_factory=dict)
    live_in: set[int] = field(default_factory=set)
    bytes: int = 0

    def add(self, graph: Graph, op: int, last_use: list[int]) -> None:
        """Append an op.

        Args:
            graph: of the op.
            op: the one after the segment's last.
            last_use: per storage, the op that uses it last.
        """
        self.ops.append(op)
        used = touched(graph, op)
        for storage in used:
            if storage not in self.offsets:
                self._place(graph, op, storage, last_use)
        for storage in used:
            if last_use[storage] == op and storage not in self.live_in and storage not in self._reused_buffers:
                self._free.setdefault(graph.storages[storage].bytes, []).append(self.offsets[storage])

    def growth(self, graph: Graph, op: int) -> int:
        """An upper bound on the bytes that the slab grows by if an op is appended."""
        return sum(_aligned(graph.storages[s].bytes) for s in touched(graph, op) if s not in self.offsets)

    def __post_init__(self) -> None:
        self._free: dict[int, list[int]] = {}
        self._reused_buffers: set[int] = set()

    def _place(self, graph: Graph, op: int, storage: int, last_use: list[int]) -> None:
        size = graph.storages[storage].bytes
        created = storage not in graph.reads[op] and not graph.storages[storage].live_in
        if not created:
            self.live_in.add(storage)
        elif (reused := self._reusable_buffer(graph, op, size, last_use)) >= 0:
            self._reused_buffers.add(reused)
            self.offsets[storage] = self.offsets[reused]
            return
        elif self._free.get(size):
            self.offsets[storage] = self._free[size].pop()
            return
        self.offsets[storage] = self.bytes
        self.bytes += _aligned(size)

    def _reusable_buffer(self, graph: Graph, op: int, size: int, last_use: list[int]) -> int:
        """A storage of the given size whose buffer the op's result may reuse, or -1."""
        for tensor in graph.ops[op].overwrites:
            storage = graph.tensors[tensor].storage
            created_here = (
                storage in self.offsets and storage not in self.live_in and storage not in self._reused_buffers
            )
            if created_here and last_use[storage] == op and graph.storages[storage].bytes == size:
                return storage
        return -1


def segments(graph: Graph, limit: int) -> Iterator[Segment]:
    """Cut a step into segments that take at most `limit` bytes, except where a single op takes more."""
    last_use = _last_uses(graph)
    segment = Segment()
    for op in graph.ops:
        if segment.ops and segment.bytes + segment.growth(graph, op.id) > limit:
            yield segment
            segment = Segment()
        segment.add(graph, op.id, last_use)
    if segment.ops:
        yield segment


def touched(graph: Graph, op: int) -> tuple[int, ...]:
    """The storages an op reads or writes, each once."""
    return tuple(dict.fromkeys((*graph.reads[op], *graph.writes[op])))


def _last_uses(graph: Graph) -> list[int]:
    last_use = [-1] * len(graph.storages)
    for op in graph.ops:
        for storage in touched(graph, op.id):
            last_use[storage] = op.id
    for storage in graph.output_storages:
        last_use[storage] = len(graph.ops)
    return last_use


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
