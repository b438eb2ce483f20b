"""A step as a list of segments: stream actions followed by bound calls with nothing between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from planner.errors import StowageError
from planner.graph import Graph
from planner.plan import SwapPlan
from planner.program import BoundCall
from planner.run.devices.device import Event, RuntimeDevice, RuntimeStream
from planner.run.executor.arena_views import ArenaViews
from planner.run.executor.rng_states import RngStates
from planner.run.executor.stream_dependencies import SlotStep, schedule
from planner.run.executor.stress import POISON, Stress

_MOST_CALLS = 32  # between two points at which a step may be abandoned

Action = tuple[Callable[..., Any], tuple[Any, ...]]


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
        plan, device, views: the plan, the device and the arena views.
        rng_states: the RNG states; None if random ops keep their captured order.
        stress: delays and poison; None for neither.
    """

    def __init__(
        self,
        graph: Graph,
        plan: SwapPlan,
        device: RuntimeDevice,
        views: ArenaViews,
        rng_states: RngStates | None,
        stress: Stress | None,
    ) -> None:
        self._graph, self._plan, self._device, self._views = graph, plan, device, views
        self._rng_states, self._stress = rng_states, stress
        steps = schedule(views.index)
        self._op_events: dict[int, Event] = {s: device.event() for s, step in enumerate(steps) if step.recorded}
        self._out_events = [device.event() for _ in plan.swap_outs]
        self._in_events = [device.event() for _ in plan.swap_ins]
        self._steps = steps

    def segments(self, calls: Sequence[BoundCall]) -> list[ProgramSegment]:
        """The segments of the step; the last one has no calls and is the step's end.

        Args:
            calls: the bound call of every slot.
        """
        found = [ProgramSegment(0)]
        for slot, step in enumerate(self._steps):
            actions = self._between(slot, step)
            if slot == len(calls) or (actions and found[-1].calls) or len(found[-1].calls) == _MOST_CALLS:
                found.append(ProgramSegment(slot))
            found[-1].actions += actions
            found[-1].calls += calls[slot : slot + 1]
        return found

    def _between(self, slot: int, step: SlotStep) -> list[Action]:
        """The stream actions after the op in slot - 1 and before the one in slot."""
        compute = self._device.compute
        actions: list[Action] = []
        if self._stress is not None:
            actions += [(compute.fill, (dead, POISON)) for dead in self._stress.dead.get(slot, ())]
        if slot - 1 in self._op_events:
            actions.append((compute.record, (self._op_events[slot - 1],)))
        actions += self._copies(step)
        if step.await_out >= 0:
            actions.append((compute.wait, (self._out_events[step.await_out],)))
        if step.await_in >= 0:
            actions.append((compute.wait, (self._in_events[step.await_in],)))
        if slot < len(self._plan.order):
            if self._stress is not None:
                actions += [(compute.fill, (new, POISON)) for new in self._stress.new.get(slot, ())]
                actions.append((self._stress.slot, (compute,)))
            op = self._plan.order[slot]
            if self._rng_states is not None and self._graph.ops[op].random:
                actions.append((compute.launch, (self._rng_states.restore, (op,), {})))
        return actions

    def _copies(self, step: SlotStep) -> list[Action]:
        actions: list[Action] = []
        for out in step.outs:
            entry = self._plan.swap_outs[out.index]
            stay = self._views.index.residency_until(entry.storage, entry.release)
            place = self._views.index.host_residency(entry.storage, entry.ready, entry.release)
            if stay is None or place is None:
                raise self._homeless(entry.storage)
            source, target = self._views.device_bytes(stay), self._views.host_bytes(place)
            before = [self._op_events[out.after_op]] if out.after_op >= 0 else []
            actions += self._copy(self._device.swap_out, before, target, source, self._out_events[out.index])
        for copy in step.ins:
            arrival = self._plan.swap_ins[copy.index]
            landing = self._views.index.residency_from(arrival.storage, arrival.start)
            origin = self._views.index.host_residency(arrival.storage, arrival.start - 1, arrival.use)
            if landing is None or origin is None:
                raise self._homeless(arrival.storage)
            source, target = self._views.host_bytes(origin), self._views.device_bytes(landing)
            before = [self._op_events[copy.after_op]] if copy.after_op >= 0 else []
            before += [self._out_events[copy.after_out]] if copy.after_out >= 0 else []
            actions += self._copy(self._device.swap_in, before, target, source, self._in_events[copy.index])
        return actions

    def _copy(
        self, stream: RuntimeStream, before: list[Event], target: Tensor, source: Tensor, done: Event
    ) -> list[Action]:
        actions: list[Action] = [(stream.wait, (event,)) for event in before]
        if self._stress is not None:
            actions += [(self._stress.copy, (stream,)), (stream.fill, (target, POISON))]
        actions.append((stream.copy, (target, source)))
        if self._stress is not None:
            actions.append((self._stress.copy, (stream,)))
        return [*actions, (stream.record, (done,))]

    def _homeless(self, storage: int) -> StowageError:
        name = self._graph.storages[storage].name
        return StowageError(f"the plan copies {name} but has no place for one end of the copy; plan again")
