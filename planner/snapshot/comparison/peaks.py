"""The peak that was predicted and the one that was measured, and what is between them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from planner.graph import Graph
from planner.plan import SwapPlan
from planner.snapshot.comparison.libraries import LibraryBlocks
from planner.snapshot.comparison.prediction import PredictedPeak, predicted_peak
from planner.snapshot.comparison.rounding import segment_rounding
from planner.snapshot.memory_snapshot import NO_EVENTS, MemorySnapshot
from planner.snapshot.stacks import line_of
from planner.units import format_bytes, format_percent

#: A snapshot in which less of the predicted bytes is found seems to be of another step.
_LEAST_PAIRED = 0.5


class HeldBlock(NamedTuple):
    """A block in use at the measured peak.

    Args:
        bytes: what was asked for.
        stack: position in `Stacks`, -1 if unknown.
        kept: whether it is never freed.
    """

    bytes: int
    stack: int
    kept: bool


@dataclass(frozen=True, slots=True)
class LineComparison:
    """What a line holds at the measured peak, and at the predicted one.

    Args:
        line: the user's line as `model.py:123`; `""` if none is known.
        measured_bytes, predicted_bytes: before rounding.
    """

    line: str
    measured_bytes: int
    predicted_bytes: int


@dataclass(frozen=True, eq=False)
class PeakComparison:
    """Why a measured peak is not the predicted one. All parts add up to the difference, to the byte.

    Args:
        measured_bytes: reserved at the measured peak.
        predicted_bytes: the predicted peak.
        block_rounding_bytes: blocks are multiples of 512 bytes, and up to 1 MiB is not split off a large one.
        segment_rounding_bytes: free because segments are larger than the blocks they were made for.
        fragmentation_bytes: reserved and free for any other reason.
        library_bytes: what CUDA's libraries work in, by the names of their calls or the size of a workspace of cuBLAS.
        unattributed_bytes: blocks of which no line is known and that no storage of the prediction has the size of.
        arena_gap_bytes: negative, what the plan's arena has between its storages at the predicted peak.
        rest_bytes: blocks of known lines less the storages predicted: the error of the prediction.
        lines: the same line by line, the largest difference first.
        paired_bytes: of the storages at the predicted peak, those that have a block of their size in their line, or in
            a line that is none of the graph's.
        has_events: whether the snapshot has any; without, what was measured is what there is at the end.
    """

    measured_bytes: int
    predicted_bytes: int
    block_rounding_bytes: int
    segment_rounding_bytes: int
    fragmentation_bytes: int
    library_bytes: int
    unattributed_bytes: int
    arena_gap_bytes: int
    rest_bytes: int
    lines: tuple[LineComparison, ...]
    paired_bytes: int
    has_events: bool

    @property
    def paired(self) -> float:
        """The bytes that were found as a share of all that were predicted, between 0 and 1."""
        predicted = sum(row.predicted_bytes for row in self.lines)
        return self.paired_bytes / predicted if predicted else 1.0

    @property
    def is_of_another_step(self) -> bool:
        """Whether so little was found, less than half, that the snapshot seems to be of another step.

        Without events it cannot be known: at the end, a step's activations are gone.
        """
        return self.has_events and self.paired < _LEAST_PAIRED

    @property
    def pairing(self) -> str:
        """How much of what was predicted was found, in one sentence, and whether it is compared with the end alone."""
        found = f"{format_bytes(self.paired_bytes)} ({format_percent(self.paired)}) of what was predicted"
        text = f"{found} is found in the snapshot by line and size"
        if self.is_of_another_step:
            text += ", so it seems to be of another step, model or batch; compare it with the graph of its own step"
        return text + ("." if self.has_events else f"; {NO_EVENTS}.")

    @property
    def rows(self) -> Mapping[str, int]:
        """The parts by name; their sum is `measured_bytes - predicted_bytes`."""
        gaps = {"free in the plan's arena": self.arena_gap_bytes} if self.arena_gap_bytes else {}
        return {
            "blocks rounded up": self.block_rounding_bytes,
            "segments rounded up": self.segment_rounding_bytes,
            "fragmentation": self.fragmentation_bytes,
            "libraries": self.library_bytes,
            "without a line": self.unattributed_bytes,
            **gaps,
            "prediction's error": self.rest_bytes,
        }

    def __repr__(self) -> str:
        """The parts in one line."""
        parts = ", ".join(f"{name} {_signed(size)}" for name, size in self.rows.items() if size)
        return (
            f"<PeakComparison: {format_bytes(self.measured_bytes)} measured, {format_bytes(self.predicted_bytes)} "
            f"predicted: {parts or 'no difference'}; {self.pairing.rstrip('.')}>"
        )


def compare(measured: MemorySnapshot, graph: Graph, plan: SwapPlan | None = None) -> PeakComparison:
    """Explain the difference of a measured peak from the predicted one.

    Blocks and storages are paired by line and size, then by size alone where the block's line is none of the graph's:
    PyTorch runs the backward pass in a thread that no line of Python's is known of, and parameters are allocated before
    the step.

    Args:
        measured: a snapshot of a run of the step.
        graph: the step.
        plan: the plan that was run; without it, the captured order with nothing swapped is predicted.

    Raises:
        StowageError: the plan is for another graph.
    """
    predicted, peak = predicted_peak(graph, plan), measured.peak
    alive = measured.allocations.alive_after(peak.event)
    segments = segment_rounding(measured, alive)
    lives = measured.allocations
    kept = lives.end[alive] == len(measured.events)
    fields = (lives.requested_bytes[alive], lives.stack[alive], kept)
    held = [HeldBlock(*one) for one in zip(*(field.tolist() for field in fields), strict=True)]
    if plan is not None and any(one.bytes == plan.peak_bytes for one in held):  # its arena is one block
        held.remove(next(one for one in held if one.bytes == plan.peak_bytes))
        held += [HeldBlock(size, -1, True) for size in predicted.sizes.tolist()]
        gaps = predicted.bytes - int(predicted.sizes.sum())
        return _compared(measured, predicted, held, segments, extra=gaps)
    return _compared(measured, predicted, held, segments)


def _compared(
    measured: MemorySnapshot, predicted: PredictedPeak, held: list[HeldBlock], segments: int, extra: int = 0
) -> PeakComparison:
    peak = measured.peak
    wanted = Counter(zip(predicted.lines, predicted.sizes.tolist(), strict=True))
    lines: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for (line, size), count in wanted.items():
        lines[line][1] += size * count
    left, paired = list[tuple[HeldBlock, str]](), 0
    for one in held:
        line = _graph_line(measured, one.stack, predicted.known_lines)
        if wanted[line, one.bytes] > 0:
            wanted[line, one.bytes] -= 1
            lines[line][0] += one.bytes
            paired += one.bytes
        else:
            left.append((one, line))
    by_size: dict[int, list[str]] = defaultdict(list)
    for (line, size), count in wanted.items():
        by_size[size] += [line] * count
    libraries, library, unattributed = LibraryBlocks(), 0, 0
    for one, line in left:
        frames = measured.stacks.frames[one.stack] if one.stack >= 0 else ()
        if line not in predicted.known_lines and by_size[one.bytes]:
            lines[by_size[one.bytes].pop()][0] += one.bytes
            paired += one.bytes
        elif libraries.take(frames, one.bytes, one.kept):
            library += one.bytes
        elif line:
            lines[line][0] += one.bytes
        else:
            unattributed += one.bytes
    rows = sorted((LineComparison(line, *both) for line, both in lines.items()), key=_difference)
    fragmentation = peak.reserved_bytes - peak.allocated_bytes - segments
    return PeakComparison(
        peak.reserved_bytes, predicted.bytes, peak.allocated_bytes - peak.requested_bytes, segments, fragmentation,
        library, unattributed, int(predicted.sizes.sum()) - predicted.bytes + extra,
        sum(row.measured_bytes - row.predicted_bytes for row in rows), tuple(rows), paired, measured.has_events,
    )  # fmt: skip


def _graph_line(measured: MemorySnapshot, stack: int, known: frozenset[str]) -> str:
    """The innermost line of a stack that the graph has; otherwise the user's."""
    frames = measured.stacks.frames[stack] if stack >= 0 else ()
    return next((line for line in map(line_of, frames) if line in known), measured.line(stack))


def _difference(row: LineComparison) -> tuple[int, str]:
    return -abs(row.measured_bytes - row.predicted_bytes), row.line


def _signed(size: int) -> str:
    return f"{'-' if size < 0 else '+'}{format_bytes(abs(size))}"
