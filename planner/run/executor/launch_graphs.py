"""Calls that are launched together: recorded once as a graph of the device, they cost one launch in every later step.

Copies, waits and records are issued as before, so that a graph holds calls between two of these, on the compute stream
alone. What differs from step to step is called on its own: what draws random numbers, and what takes a number that has
changed, such as a learning rate. So is what makes the host wait, and what may do so unseen: an operator that PyTorch
does not define.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from planner.errors import first_line
from planner.graph import Graph
from planner.plan import SwapPlan
from planner.program import COLLECTIVES, BoundCall, Program
from planner.run.devices.device import GraphRecorder
from planner.run.executor.measurement import Temporaries
from planner.run.executor.step_program import ProgramSegment
from planner.torch_private import OpOverload
from planner.units import format_bytes, several

#: Launching a graph takes the host about as long as making two calls.
_LEAST_CALLS = 3
_KNOWN = frozenset({"aten", "prims"})


@dataclass(frozen=True, slots=True)
class _LaunchGraph:
    """So many calls, and what launches them."""

    calls: int
    launch: BoundCall


class LaunchGraphs:
    """The graphs of a step.

    Args:
        graph, program, plan: of the step.
        temporaries: the scratch memory of its calls, as measured in the first step.
        recorder: of the device.
        launch: makes a call on the compute stream.
    """

    def __init__(
        self,
        graph: Graph,
        program: Program,
        plan: SwapPlan,
        temporaries: Temporaries,
        recorder: GraphRecorder,
        launch: Callable[..., None],
    ) -> None:
        self._graph, self._plan, self._temporaries = graph, plan, temporaries
        self._recorder, self._launch = recorder, launch
        targets = [program.calls[op].target for op in plan.order]
        self._alone = {
            slot
            for slot, target in enumerate(targets)
            if graph.ops[plan.order[slot]].random or target in COLLECTIVES or not _known(target)
        }
        self._recorded: dict[int, _LaunchGraph] = {}  # by the slot of the first call
        self._slot = 0  # whose call is being recorded
        self._refused = ""
        self._recording_is_due = True

    def changed(self, slots: Collection[int]) -> None:
        """Call from now on on its own what takes a number that has changed, and record the others anew."""
        if not self._alone.issuperset(slots):
            self._alone.update(slots)
            self._recording_is_due = True

    def first(self, slot: int, issue: Callable[[], None]) -> None:
        """Issue a call in the first step, and see whether the host waits for the device in it."""
        if slot in self._alone:
            issue()
        elif self._recorder.host_waits(issue):
            self._alone.add(slot)

    def record(self, segments: Sequence[ProgramSegment]) -> None:
        """Record the graphs of a step's segments, without doing anything, unless they are recorded."""
        if not self._recording_is_due or self._refused:
            return
        self._recording_is_due = False
        recorded: dict[int, _LaunchGraph] = {}
        runs = [run for segment in segments for run in self._runs(segment)]
        missing = self._temporaries.missing_bytes({slot + k for slot, calls in runs for k in range(len(calls))})
        if missing:
            more = format_bytes(missing)
            self._refused = f"their temporary memory, apart from that of other calls, goes {more} over the budget"
            runs = []
        try:
            for slot, calls in runs:
                launch = self._recorder.record(partial(self._issue, slot, calls))
                recorded[slot] = _LaunchGraph(len(calls), BoundCall(launch, (), {}))
        except RuntimeError as error:
            recorded.clear()
            op = self._graph.ops[self._plan.order[self._slot]]
            self._refused = f"{op.target} cannot be recorded ({first_line(error)})"
        self._recorded = recorded  # those before are kept until now: PyTorch's memory of graphs must always have one

    def launches(self, segment: ProgramSegment) -> Iterator[tuple[int, BoundCall]]:
        """What a segment launches, and the slot of the first call in it."""
        slot, stop = segment.first, segment.first + len(segment.calls)
        while slot < stop:
            recorded = self._recorded.get(slot)
            yield slot, segment.calls[slot - segment.first] if recorded is None else recorded.launch
            slot += 1 if recorded is None else recorded.calls

    def __str__(self) -> str:
        """How many calls are launched together, in words; why none is; empty before any was recorded."""
        if self._refused:
            return f"none, as {self._refused}"
        if self._recording_is_due:
            return ""
        calls = sum(recorded.calls for recorded in self._recorded.values())
        return f"{calls:,} of {several(len(self._plan.order), 'call')} in {several(len(self._recorded), 'graph')}"

    def _runs(self, segment: ProgramSegment) -> Iterator[tuple[int, Sequence[BoundCall]]]:
        """Calls that can be launched together, and the slot of the first."""
        first = 0
        for place in range(len(segment.calls) + 1):
            if place == len(segment.calls) or segment.first + place in self._alone:
                if place - first >= _LEAST_CALLS:
                    yield segment.first + first, segment.calls[first:place]
                first = place + 1

    def _issue(self, slot: int, calls: Sequence[BoundCall]) -> None:
        for self._slot, call in enumerate(calls, slot):
            self._launch(*call)


def _known(target: object) -> bool:
    return isinstance(target, OpOverload) and target.namespace in _KNOWN
