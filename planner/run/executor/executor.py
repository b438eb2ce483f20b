"""Execution of a plan: every call is bound once; a step makes the bound calls and issues the stream work between them.

The executor trusts its plan; `planner.run.run` has it validated first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import torch
from torch import Tensor

from planner.errors import StowageError
from planner.graph import Graph
from planner.plan import PlanIndex, SwapPlan, Timeline
from planner.program import BoundCall, Outputs, Program
from planner.run.devices.device import DeviceRngStates, RuntimeDevice
from planner.run.devices.repeated_draws import RepeatedDraws
from planner.run.executor.arena.arena_views import ArenaViews
from planner.run.executor.arena.binder import Binder
from planner.run.executor.arena.memory_accesses import plan_accesses
from planner.run.executor.arena.step_io import StepIO
from planner.run.executor.collective_calls import CollectiveCalls
from planner.run.executor.failures import explain
from planner.run.executor.launch_graphs import LaunchGraphs
from planner.run.executor.measurement import Clock, Temporaries
from planner.run.executor.occupancy import Occupancy
from planner.run.executor.step_program import ProgramSegment, StepProgram
from planner.run.executor.stress import POISON, Stress

_TRIES = 4


def reordered(graph: Graph, plan: SwapPlan) -> bool:
    """Whether a plan first draws the random numbers of a graph in a different order from the captured one."""
    drawn: dict[int, int] = {}  # by op that draws numbers of its own, the op that has them first in the plan
    for op in plan.order:
        if graph.ops[op].random:
            drawn.setdefault(graph.ops[op].drawn_first_by, op)
    return [*drawn] != sorted(drawn) or any(first != op for first, op in drawn.items())


@dataclass(frozen=True, slots=True)
class StepRecord:
    """The outputs and the measured timeline of a step.

    Args:
        outputs: copies of the step's outputs, the loss first, then the tensors of its extras.
        timeline: measured.
        left: copies of the tensors that the step writes to Python variables.
        skipped: whether the step has updated nothing, because a gradient was not finite.
    """

    outputs: Outputs
    timeline: Timeline
    left: tuple[Tensor, ...] = ()
    skipped: bool = False


class Executor:
    """A plan on a device, ready to make steps; the caller closes the device.

    Args:
        graph: the plan's graph, with its program; workspaces are the plan's.
        plan: valid for the graph.
        device: with an arena of `plan.peak_bytes` and a host slab of `plan.host_bytes`.
        graphs: whether calls may be launched together, from the second step on, where the device records graphs.
        stress: whether to add random delays and poison memory, to expose races.
        seed: of the delays.
        generator: the generator that random ops draw from; None for the device's default.
        check_cancelled: called periodically, also during construction and loading; may raise to abandon these or the
            step.

    Raises:
        StowageError: the graph was captured for another device, the plan reads a tensor that is not on the device, or a
            kernel would overwrite an input that it still reads.
    """

    def __init__(
        self,
        graph: Graph,
        plan: SwapPlan,
        device: RuntimeDevice,
        *,
        graphs: bool = False,
        stress: bool = False,
        seed: int = 0,
        generator: torch.Generator | None = None,
        check_cancelled: Callable[[], object] = lambda: None,
    ) -> None:
        if graph.device != device.name:
            raise StowageError(
                f"{graph.name} was captured for {graph.device} and cannot run on {device.name}: capture it with "
                f'device="{device.name}"'
            )
        self.graph = graph.with_workspaces(dict(plan.workspaces))
        self.plan, self.device = plan, device
        program: Program = graph.program
        self._program, self._check_cancelled = program, check_cancelled
        self._generator = device.default_generator if generator is None else generator
        self._number = 0  # steps since the last load
        self._skipped = 0  # those of them that have updated nothing
        self._before = 0  # steps before the last load
        self._scalars = dict(program.scalars(0))  # may make the live model, whose tensors must be ordinary ones
        self._temporaries = Temporaries(self.graph, plan, device)
        collectives = CollectiveCalls(device, self._temporaries, self._explained)
        with torch.inference_mode():
            index = PlanIndex(self.graph, plan)
            self._views = ArenaViews(index, device.arena, device.host)
            self._binder = Binder(self.graph, program, plan, self._views, self._generator)
            self._step_io = StepIO(self.graph, program, plan, self._views)
            calls = [self._bound(slot) for slot in range(len(plan.order))]
            self._rng_states = self._make_rng_states(calls) if reordered(self.graph, plan) else None
            draws = None if self._rng_states else RepeatedDraws(index, self._generator)
            accesses = plan_accesses(self._views, self._binder, calls)
            self._delays = Stress(self._views, accesses, seed) if stress else None
            self._segments = StepProgram(
                self.graph, plan, device, self._views, accesses, self._rng_states, draws, self._delays,
                collectives.issue,
            ).segments(calls)  # fmt: skip
        self._collectives = collectives
        sizes = [len(segment.calls) for segment in self._segments]
        self._clock = Clock(index, sizes, marks_ops=device.marks_ops)
        self._changing_calls_by_name = self._changing_calls()
        self._graphs = self._make_graphs() if graphs else None
        self._occupancy = Occupancy(index, sizes, marks_ops=device.marks_ops)
        self._present: tuple[int, list[Any]] | None = None

    @property
    def peak_bytes(self) -> int:
        """The highest byte of the arena that a call, a copy or scratch memory has used so far."""
        return max(self._views.top_bytes, self._temporaries.top_bytes)

    @property
    def scratch_bytes(self) -> int:
        """The most memory that an op has taken at once outside of the arena, where that is another memory's."""
        return self._temporaries.scratch_bytes

    @property
    def library_bytes(self) -> int:
        """Device memory that libraries have kept since the first step."""
        return self._temporaries.library_bytes

    def present(self) -> tuple[int, int, int] | None:
        """The current step, its slot, and the bytes in use in the arena; None between steps.

        May be called from any thread, at no cost to the thread that makes the step.
        """
        for _ in range(_TRIES):
            present = self._present
            if present is None:
                return None
            number, marks = present
            _, begun = self.device.copied()
            reached = self.device.passed(marks)
            done, again = self.device.copied()
            if (
                self._present is present and reached == self.device.passed(marks) and begun == again
            ):  # a consistent reading
                return number, *self._occupancy.at(reached, done, begun)
        return None

    @property
    def launched_together(self) -> str:
        """How many calls of a step are launched together, in words; empty where the device has no graphs."""
        return "" if self._graphs is None else str(self._graphs)

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Copy parameters, buffers, optimizer state and constants to where the plan has them when a step starts.

        Args:
            state: tensors by the keys of `TrainStep.state()`.
        """
        with torch.inference_mode():
            self.device.synchronize()  # a step that was abandoned may still be copying
            if self._delays is not None:
                self.device.arena.fill_(POISON)
                self.device.host.fill_(POISON)
            self._step_io.load(state, self._check_cancelled)
            self._before += self._number
            self._number = self._skipped = 0

    def reseed(self, seed: int) -> None:
        """Begin the delays of stress mode anew, from another seed; load a state next.

        Raises:
            ValueError: the steps are made without stress.
        """
        if self._delays is None:
            raise ValueError("no seed to set: these steps are made without stress")
        self._delays.reseed(seed)

    def close(self) -> None:
        """Let go of the device's memory at once, though parts of this refer to it in circles; it is of no use then."""
        vars(self).clear()

    def state(self) -> dict[str, Tensor]:
        """Views of parameters, buffers and optimizer state at their place between steps; the next step changes them."""
        return self._step_io.state()

    def step(self, batch: Sequence[Tensor]) -> StepRecord:
        """Make one step.

        Args:
            batch: the leaves of the batch.

        Raises:
            StowageError: an op raised, or used more scratch memory than the plan has for it; the executor's state is
                then invalid until it is loaded again.
        """
        device = self.device
        scalars = self._program.scalars(self._number, self._skipped)
        # captured ops include autocast's casts
        with torch.inference_mode(), torch.autocast(device.name, enabled=False), device.within(self.plan.budget_bytes):
            self._set_scalars(scalars)
            self._step_io.load_batch(batch)
            if self._rng_states is not None:
                self._rng_states.begin()
            if self._graphs is not None and self._before + self._number:
                self._graphs.record(self._segments)
            start = device.begin()
            self._collectives.measured = not self._before + self._number
            marks: list[Any] = []
            number = self._before + self._number
            self._present = number, marks
            try:
                if number and device.marks_ops:
                    self._run_segments(marks)
                else:
                    self._run_plainly(marks, first=not number)
                device.synchronize()
            except RuntimeError as error:
                if isinstance(error.__cause__, StowageError):  # explained where it was raised
                    raise error.__cause__ from error.__cause__.__cause__
                raise
            finally:
                self._present = None
            marks.append(device.mark())
            if self._rng_states is not None:
                self._rng_states.restore(-1)
        self._number += 1
        seconds = device.seconds(start, marks)
        timeline = self._clock.timeline(seconds, *device.copy_seconds(start), device.communication_seconds(start))
        outputs = Outputs(self._step_io.outputs(), self._program.extras)
        skipped = self._step_io.skipped()
        self._skipped += skipped
        return StepRecord(outputs, timeline, self._step_io.left(), skipped)

    def _bound(self, slot: int) -> BoundCall:
        self._check_cancelled()
        return self._binder.bind(slot, self._scalars)

    def _run_segments(self, marks: list[Any]) -> None:
        """Issue all segments, with a mark after every op; nothing else happens between two of them."""
        stamp, mark, launch = marks.append, self.device.mark, self.device.compute.launch
        for segment in self._segments:
            self._check_cancelled()
            for function, args in segment.actions:
                function(*args)
            stamp(mark())
            done = len(marks)
            try:
                for function, args, kwargs in segment.calls:
                    launch(function, args, kwargs)
                    stamp(mark())
            except Exception as error:
                self._stop(error, segment.first + len(marks) - done)

    def _run_plainly(self, marks: list[Any], *, first: bool) -> None:
        """The same for devices whose marks cost, and for the first step.

        That one measures the scratch memory that kernels allocate outside of the arena.
        """
        device, graphs, launch = self.device, self._graphs, self.device.compute.launch
        run = self._temporaries.run
        if first:
            self._temporaries.begin()
        for segment in self._segments:
            self._check_cancelled()
            for function, args in segment.actions:
                function(*args)
            marks.append(device.mark())
            together = None if first or graphs is None else graphs.launches(segment)
            for slot, bound in together or enumerate(segment.calls, segment.first):
                try:
                    if not first:
                        launch(*bound)
                    elif graphs is None:
                        run(slot, bound)
                    else:
                        graphs.first(slot, partial(run, slot, bound))
                except Exception as error:
                    self._stop(error, slot)
                if device.marks_ops:
                    marks.append(device.mark())
            if segment.calls and not device.marks_ops:
                marks.append(device.mark())
        if first:
            self._temporaries.end()

    def _stop(self, error: Exception, slot: int) -> NoReturn:
        if isinstance(error, StowageError):
            raise error
        raise self._explained(error, slot) from error

    def _explained(self, error: Exception, slot: int) -> StowageError:
        return explain(error, self.graph, self.plan, slot, self._before + self._number)

    def _set_scalars(self, values: Mapping[str, float]) -> None:
        """Rebind the calls whose numbers differ in this step, such as the learning rate."""
        changed = {name for name, value in values.items() if self._scalars.get(name) != value}
        self._scalars = dict(values)
        if not changed:
            return
        rebound = [one for one in self._changing_calls_by_name if one[-1] & changed]
        for segment, place, slot, _ in rebound:
            segment.calls[place] = self._binder.bind(slot, values)
        if self._graphs is not None:
            self._graphs.changed([slot for _, _, slot, _ in rebound])

    def _changing_calls(self) -> list[tuple[ProgramSegment, int, int, frozenset[str]]]:
        names = [self._binder.scalar_names(op) for op in self.plan.order]
        return [
            (segment, place, slot, names[slot])
            for segment in self._segments
            for place, slot in enumerate(range(segment.first, segment.first + len(segment.calls)))
            if names[slot]
        ]

    def _make_graphs(self) -> LaunchGraphs | None:
        recorder = self.device.graph_recorder
        if recorder is None:
            return None
        return LaunchGraphs(
            self.graph, self._program, self.plan, self._temporaries, recorder, self.device.compute.launch
        )

    def _make_rng_states(self, calls: list[BoundCall]) -> DeviceRngStates:
        ops = self.graph.ops
        slots = {op: slot for slot, op in enumerate(self.plan.order) if ops[op].random and ops[op].draws_as < 0}
        return self.device.rng_states(self.graph, {op: calls[slot] for op, slot in slots.items()}, self._generator)
