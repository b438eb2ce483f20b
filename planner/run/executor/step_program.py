"""A step as a list of segments: stream actions followed by bound calls with nothing between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from planner.graph import Graph
from planner.plan import SwapPlan
from planner.program import BoundCall
from planner.run.devices.device import DeviceRngStates, Event, RuntimeDevice, RuntimeStream
from planner.run.devices.repeated_draws import RepeatedDraws
from planner.run.executor.arena.arena_views import ArenaViews
from planner.run.executor.arena.memory_accesses import PlanAccesses
from planner.run.executor.stream_dependencies import CollectiveStep, SlotStep, schedule
from planner.run.executor.stress import POISON, Stress

_MOST_CALLS = 32  # between two points at which a step may be abandoned
_MOST_UNMARKED = 512  # the same where ops are not marked: what is launched can hardly be abandoned

Action = tuple[Callable[..., Any], tuple[Any, ...]]
_NOTHING = BoundCall(lambda: None, (), {})


@dataclass(slots=True)
class ProgramSegment:
    """Calls with nothing between them, the slot of the first, and the actions before it."""

    first: int
    actions: list[Action] = field(default_factory=list)
    calls: list[BoundCall] = field(default_factory=list)


class StepProgram:
    """Compiles a plan to segments.

    Args:
        graph: with the plan's workspaces.
        plan, device, views, accesses: the plan, the device, the arena views, and what ops and copies access.
        rng_states: the RNG states; None if all numbers are first drawn in captured order.
        draws: what gives random ops the numbers that were drawn before; None if the RNG states do.
        stress: delays and poison; None for neither.
        communicate: called with the slot of a collective and its call, issues it to the communication stream.
    """

    def __init__(
        self,
        graph: Graph,
        plan: SwapPlan,
        device: RuntimeDevice,
        views: ArenaViews,
        accesses: PlanAccesses,
        rng_states: DeviceRngStates | None,
        draws: RepeatedDraws | None,
        stress: Stress | None,
        communicate: Callable[[int, BoundCall], None],
    ) -> None:
        self._communicate = communicate
        self._graph, self._plan, self._device, self._views = graph, plan, device, views
        self._rng_states, self._draws, self._stress = rng_states, draws, stress
        self._steps = steps = schedule(views.index, accesses)
        outs, ins = [copy for step in steps for copy in step.outs], [copy for step in steps for copy in step.ins]
        beside = [step.collective for step in steps if step.collective is not None]

        def events(awaited: Iterable[int]) -> dict[int, Event]:
            return {entry: device.event() for entry in sorted({*awaited} - {-1})}

        self._op_events = events([*(copy.after_op for copy in (*outs, *ins)), *(each.after_op for each in beside)])
        self._out_events = events([
            *(copy.after_copy for copy in ins), *(step.await_out for step in steps),
            *(each.after_out for each in beside),
        ])  # fmt: skip
        self._in_events = events([
            *(copy.after_copy for copy in outs), *(step.await_in for step in steps),
            *(each.after_in for each in beside),
        ])  # fmt: skip
        self._collective_events = events([
            *(copy.after_collective for copy in (*outs, *ins)), *(step.await_collective for step in steps),
        ])  # fmt: skip

    def segments(self, calls: Sequence[BoundCall]) -> list[ProgramSegment]:
        """The segments of the step; the last one has no calls and is the step's end.

        Args:
            calls: the bound call of every slot.
        """
        found, most = [ProgramSegment(0)], _MOST_CALLS if self._device.marks_ops else _MOST_UNMARKED
        for slot, step in enumerate(self._steps):
            actions = self._between(slot, step)
            if step.collective is not None:
                actions += self._collective(step.collective, slot, calls[slot])
            if slot == len(calls) or (actions and found[-1].calls) or len(found[-1].calls) == most:
                found.append(ProgramSegment(slot))
            found[-1].actions += actions
            found[-1].calls += calls[slot : slot + 1] if step.collective is None else [_NOTHING]
        return found

    def _between(self, slot: int, step: SlotStep) -> list[Action]:
        """The stream actions after the op in slot - 1 and before the one in slot."""
        compute = self._device.compute
        actions: list[Action] = []
        if self._draws is not None:
            actions += [(compute.launch, (action, args, {})) for action, args in self._draws.after(slot - 1)]
        if self._stress is not None:
            actions += [(compute.fill, (dead, POISON)) for dead in self._stress.dead.get(slot, ())]
        if slot - 1 in self._op_events:
            actions.append((compute.record, (self._op_events[slot - 1],)))
        actions += self._copies(step)
        if step.await_out >= 0:
            actions.append((compute.wait, (self._out_events[step.await_out],)))
        if step.await_in >= 0:
            actions.append((compute.wait, (self._in_events[step.await_in],)))
        if step.await_collective >= 0:
            actions.append((compute.wait, (self._collective_events[step.await_collective],)))
        if slot < len(self._plan.order) and step.collective is None:
            if self._stress is not None:
                actions += [(compute.fill, (new, POISON)) for new in self._stress.new.get(slot, ())]
                actions.append((self._stress.slot, (compute,)))
            op = self._graph.ops[self._plan.order[slot]]
            if self._rng_states is not None and op.random:
                actions.append((compute.launch, (self._rng_states.restore, (op.drawn_first_by,), {})))
            if self._draws is not None:
                actions += [(compute.launch, (action, args, {})) for action, args in self._draws.before(slot)]
        return actions

    def _copies(self, step: SlotStep) -> list[Action]:
        actions: list[Action] = []
        for out in step.outs:
            before = self._events(self._op_events, out.after_op) + self._events(self._in_events, out.after_copy)
            before += self._events(self._collective_events, out.after_collective)
            done = self._out_events.get(out.index)
            actions += self._copy(self._device.swap_out, before, *self._views.out_ends(out.index), done)
        for copy in step.ins:
            before = self._events(self._op_events, copy.after_op) + self._events(self._out_events, copy.after_copy)
            before += self._events(self._collective_events, copy.after_collective)
            done = self._in_events.get(copy.index)
            actions += self._copy(self._device.swap_in, before, *self._views.in_ends(copy.index), done)
        return actions

    def _collective(self, step: CollectiveStep, slot: int, call: BoundCall) -> list[Action]:
        stream = self._device.communication
        before = self._events(self._op_events, step.after_op) + self._events(self._out_events, step.after_out)
        before += self._events(self._in_events, step.after_in)
        actions: list[Action] = [(stream.wait, (event,)) for event in before]
        if self._stress is not None:
            actions += [(stream.fill, (new, POISON)) for new in self._stress.new.get(slot, ())]
            actions.append((self._stress.copy, (stream,)))
        actions.append((self._communicate, (slot, call)))
        if self._stress is not None:
            actions.append((self._stress.copy, (stream,)))
        done = self._collective_events.get(step.index)
        return actions if done is None else [*actions, (stream.record, (done,))]

    def _events(self, events: Mapping[int, Event], entry: int) -> list[Event]:
        return [events[entry]] if entry >= 0 else []

    def _copy(
        self, stream: RuntimeStream, before: list[Event], target: Tensor, source: Tensor, done: Event | None
    ) -> list[Action]:
        actions: list[Action] = [(stream.wait, (event,)) for event in before]
        if self._stress is not None:
            actions += [(self._stress.copy, (stream,)), (stream.fill, (target, POISON))]
        actions.append((stream.copy, (target, source)))
        if self._stress is not None:
            actions.append((self._stress.copy, (stream,)))
        return actions if done is None else [*actions, (stream.record, (done,))]
