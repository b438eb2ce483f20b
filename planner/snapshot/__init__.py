"""Memory snapshots of CUDA devices: what PyTorch's allocator really did, beside what was planned."""

from planner.snapshot.comparison.peaks import LineComparison, PeakComparison, compare
from planner.snapshot.loading.opcodes import check_plain
from planner.snapshot.loading.reading import read
from planner.snapshot.memory_snapshot import NO_EVENTS, LineBytes, MemorySnapshot
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
from planner.snapshot.writing import write

__all__ = [
    "ACTIONS", "NO_EVENTS", "STATES", "Action", "Allocations", "BlockState", "LineBytes", "LineComparison",
    "MemoryBlocks", "MemoryEvents", "MemorySegments", "MemorySnapshot", "MemoryUsage", "PeakComparison", "ReservedPeak",
    "ReservedSpans", "StackFrame", "Stacks", "check_plain", "compare", "read", "write",
]  # fmt: skip
