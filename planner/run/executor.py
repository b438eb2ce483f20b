"""Running a plan: every call is bound once, a step is a walk over bound calls and what the streams need between them.

The executor believes its plan; `planner.run.run` has it validated first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import Tensor

from planner.capture.program import Program
from planner.capture.rewrites import Bound
from planner.errors import StowageError
from planner.graph import Graph
from planner.plan.swap_plan import SwapPlan
from planner.plan.timeline import Timeline
from planner.run.binding import Binder
from planner.run.device import Device
from planner.run.failures import explain
from planner.run.held import Held
from planner.run.measure import Clock, Temporaries
from planner.run.occupancy import Occupancy
from planner.run.places import Places
from planner.run.randomness import Pins, reordered
from planner.run.stress import POISON, Stress
from planner.run.walk import Segment, Walk

_TRIES = 4


@dataclass(frozen=True, slots=True)
class StepRecord:
    """What a step returned, and when everything happened.

    Args:
        outputs: copies of what the step returned, the loss first.
        timeline: measured.
        left: copies of what it leaves in Python's variables besides.
    """

    outputs: tuple[Tensor, ...]
    timeline: Timeline
    left: tuple[Tensor, ...] = ()


class Executor:
    """A plan on a device, ready to make steps; whoever made the device closes it.

    Args:
        graph: the plan's graph, with its program; workspaces are the plan's.
        plan: valid for the graph.
        device: with an arena of `plan.peak_bytes` and a host slab of `plan.host_bytes`.
        stress: whether to delay and poison, so that races show.
        generator: what random ops draw from; None for PyTorch's default.
        impatient: asked now and then, also while this is made and loaded; it may raise, which abandons that or the
            step.

    Raises:
        StowageError: the plan reads what is not there, or would have a kernel overwrite an input that it still reads.
    """

    def __init__(
        self,
        graph: Graph,
        plan: SwapPlan,
        device: Device,
        *,
        stress: bool = False,
        generator: torch.Generator | None = None,
        impatient: Callable[[], object] = lambda: None,
    ) -> None:
        self.graph = graph.with_workspaces(dict(plan.workspaces))
        self.plan, self.device = plan, device
        program: Program = graph.program
        self._program, self._stress, self._impatient = program, stress, impatient
        self._generator = torch.default_generator if generator is None else generator
        self._number = 0  # since it was loaded
        self._before = 0  # steps before that
        self._scalars = dict(program.scalars(0))  # may make the live model, whose tensors must be ordinary ones
        with torch.inference_mode():
            self._places = Places(plan, self.graph, device.arena, device.host)
            self._binder = Binder(self.graph, program, plan, self._places, self._generator)
            self._held = Held(self.graph, program, plan, self._places)
            calls = [self._bound(slot) for slot in range(len(plan.order))]
            self._pins = self._pin(calls) if reordered(self.graph, plan) else None
            delays = Stress(self.graph, plan, self._places) if stress else None
            self._segments = Walk(self.graph, plan, device, self._places, self._pins, delays).segments(calls)
        self._temporaries = Temporaries(self.graph, plan)
        self._clock = Clock(self.graph, plan, [len(segment.calls) for segment in self._segments])
        self._changing = self._changing_calls()
        self._occupancy = Occupancy(self.graph, plan, [len(segment.calls) for segment in self._segments])
        self._present: tuple[int, list[Any]] | None = None

    @property
    def peak_bytes(self) -> int:
        """The highest byte of the arena that a call, a copy or temporary memory has used so far."""
        return max(self._places.top_bytes, self._temporaries.top_bytes)

    def present(self) -> tuple[int, int, int] | None:
        """The step that is being made, the slot, and the bytes in the arena at this moment; None between steps.

        It may be asked from any thread, and costs the one that makes the step nothing.
        """
        for _ in range(_TRIES):
            present = self._present
            if present is None:
                return None
            number, marks = present
            _, begun = self.device.copied()
            reached = len(marks)
            done, again = self.device.copied()
            if self._present is present and reached == len(marks) and begun == again:  # else it was no one moment
                return number, *self._occupancy.at(reached, done, begun)
        return None

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Put parameters, buffers, optimizer state and constants where the plan has them when a step starts.

        Args:
            state: tensors by the keys of `TrainStep.state()`.
        """
        with torch.inference_mode():
            if self._stress:
                self.device.arena.fill_(POISON)
                self.device.host.fill_(POISON)
            self._held.load(state, self._impatient)
            self._before += self._number
            self._number = 0

    def state(self) -> dict[str, Tensor]:
        """Parameters, buffers and optimizer state where they lie between steps; the next step changes them."""
        return self._held.state()

    def step(self, batch: Sequence[Tensor]) -> StepRecord:
        """Make one step.

        Args:
            batch: the leaves of the batch.

        Raises:
            StowageError: an op raised, or used more temporary memory than the plan has for it; what the executor holds
                is then of no use until it is loaded again.
        """
        device = self.device
        scalars = self._program.scalars(self._number)
        with torch.inference_mode(), torch.autocast("cpu", enabled=False):  # the ops are those after autocast
            self._set_scalars(scalars)
            self._held.load_batch(batch)
            if self._pins is not None:
                self._pins.begin()
            start = device.begin()
            marks: list[Any] = []
            number = self._before + self._number
            self._present = number, marks
            try:
                (self._walk if number else self._first_walk)(marks)
                device.synchronize()
            finally:
                self._present = None
            marks.append(device.mark())
            if self._pins is not None:
                self._pins.pin(-1)
        self._number += 1
        seconds = device.seconds(start, marks)
        timeline = self._clock.timeline(seconds, *device.copy_seconds(start))
        return StepRecord(self._held.outputs(), timeline, self._held.left())

    def _bound(self, slot: int) -> Bound:
        self._impatient()
        return self._binder.bind(slot, self._scalars)

    def _walk(self, marks: list[Any]) -> None:
        stamp, mark = marks.append, self.device.mark
        for segment in self._segments:
            self._impatient()
            for function, args in segment.actions:
                function(*args)
            stamp(mark())
            done = len(marks)
            try:
                for function, args, kwargs in segment.calls:
                    function(*args, **kwargs)
                    stamp(mark())
            except Exception as error:
                self._stop(error, segment.first + len(marks) - done)

    def _first_walk(self, marks: list[Any]) -> None:
        """The same, while the memory that kernels take outside of the arena is measured."""
        for segment in self._segments:
            self._impatient()
            for function, args in segment.actions:
                function(*args)
            marks.append(self.device.mark())
            for slot, bound in enumerate(segment.calls, segment.first):
                try:
                    self._temporaries.run(slot, bound)
                except Exception as error:
                    self._stop(error, slot)
                marks.append(self.device.mark())

    def _stop(self, error: Exception, slot: int) -> NoReturn:
        if isinstance(error, StowageError):
            raise error
        raise explain(error, self.graph, self.plan.order[slot], self._before + self._number) from error

    def _set_scalars(self, values: Mapping[str, float]) -> None:
        """Bind the calls anew whose numbers are others in this step, such as the learning rate."""
        changed = {name for name, value in values.items() if self._scalars.get(name) != value}
        self._scalars = dict(values)
        if not changed:
            return
        for segment, place, slot, names in self._changing:
            if names & changed:
                segment.calls[place] = self._binder.bind(slot, values)

    def _changing_calls(self) -> list[tuple[Segment, int, int, frozenset[str]]]:
        names = [self._binder.scalar_names(op) for op in self.plan.order]
        return [
            (segment, place, slot, names[slot])
            for segment in self._segments
            for place, slot in enumerate(range(segment.first, segment.first + len(segment.calls)))
            if names[slot]
        ]

    def _pin(self, calls: list[Bound]) -> Pins:
        slots = {op: slot for slot, op in enumerate(self.plan.order) if self.graph.ops[op].random}
        return Pins(self.graph, {op: calls[slot] for op, slot in slots.items()}, self._generator)
