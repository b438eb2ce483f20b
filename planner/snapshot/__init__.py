"""Memory snapshots of CUDA devices: what PyTorch's allocator really did, beside what was planned."""

from planner.snapshot.memory_snapshot import LineBytes, MemorySnapshot
from planner.snapshot.opcodes import check_plain
from planner.snapshot.reading import read
from planner.snapshot.segment_spans import ReservedSpans
from planner.snapshot.tables import (
    ACTIONS,
    STATES,
    Action,
    Allocations,
    BlockState,
    MemoryBlocks,
    MemoryEvents,
    MemorySegments,
    StackFrame,
    Stacks,
)
from planner.snapshot.usage import MemoryUsage, ReservedPeak

__all__ = [
    "ACTIONS", "STATES", "Action", "Allocations", "BlockState", "LineBytes", "MemoryBlocks", "MemoryEvents",
    "MemorySegments", "MemorySnapshot", "MemoryUsage", "ReservedPeak", "ReservedSpans", "StackFrame", "Stacks",
    "check_plain", "read",
]  # fmt: skip
