"""What of a plan is expressed in ordinary PyTorch and what is left out, in words and bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from planner.apply.schedule.absences import SavedAbsences
from planner.apply.schedule.hook_calls import HookCalls
from planner.apply.schedule.live_bytes import StepPeak
from planner.graph import PERSISTENT, Graph, Kind
from planner.plan import PlanIndex, SwapPlan
from planner.units import format_bytes, several

_NAMES = {
    Kind.PARAMETER: "parameters", Kind.BUFFER: "buffers", Kind.OPTIMIZER_STATE: "optimizer state",
    Kind.INPUT: "batch", Kind.ACTIVATION: "activations that autograd does not save", Kind.GRADIENT: "gradients",
    Kind.OUTPUT: "outputs", Kind.WORKSPACE: "scratch memory",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class AppliedPart:
    """A part of a plan.

    Args:
        what: it in words.
        storages: how many storages it is about.
        bytes: their bytes, each counted once.
    """

    what: str
    storages: int
    bytes: int

    def __str__(self) -> str:
        if not self.storages:
            return self.what
        return f"{self.what}: {several(self.storages, 'tensor')}, {format_bytes(self.bytes)}"


def expressed(graph: Graph, found: SavedAbsences) -> tuple[AppliedPart, ...]:
    """What hooks do.

    Args:
        graph: of the step.
        found: what the plan swaps and recomputes of that which autograd saves.
    """
    offloaded = {absence.storage for absence in found.swapped}
    return tuple(_part("saved tensors offloaded to the host and copied back", graph, offloaded))


def left_out(graph: Graph, index: PlanIndex, calls: HookCalls, found: SavedAbsences) -> tuple[AppliedPart, ...]:
    """What the plan does and hooks do not.

    Args:
        graph: of the step.
        index: of the plan.
        calls: of the hooks in the step.
        found: what the plan swaps and recomputes of that which autograd saves.
    """
    plan = index.plan
    moved = {copy.storage for copy in plan.swap_ins} | {copy.storage for copy in plan.swap_outs}
    repeated = {storage for slot in index.repeats for storage in index.writes[slot]}
    parts = list(
        _part(
            "swaps of saved tensors at moments at which autograd calls no hook",
            graph,
            found.unreachable,
        )
    )
    for kind in Kind:
        rest = {one for one in moved - set(calls.members) if graph.storages[one].kind is kind}
        stays = " left on the device" if kind in PERSISTENT | {Kind.INPUT} else ""
        parts += _part(f"swaps of {_NAMES[kind]}{stays}", graph, rest)
    parts += _part("recomputation of saved tensors, which stay on the device", graph, found.recomputed)
    parts += _part("recomputation of other tensors", graph, repeated - found.recomputed)
    if index.first_runs != tuple(range(len(graph.ops))):
        parts.append(AppliedPart("the plan's order of ops: PyTorch runs them as the model's code calls them", 0, 0))
    parts.append(AppliedPart("addresses: PyTorch's allocator chooses them", 0, 0))
    return tuple(parts)


def beyond_the_plan(graph: Graph, plan: SwapPlan, peak: StepPeak) -> tuple[AppliedPart, ...]:
    """What the whole step has on the device at its peak although the plan has freed it, or swaps it.

    Args:
        graph: of the step.
        plan: which is applied.
        peak: of the step in ordinary PyTorch.
    """
    moved = {copy.storage for copy in plan.swap_ins} | {copy.storage for copy in plan.swap_outs}
    return (
        *_part("parameters, optimizer state and others that the plan swaps and hooks do not", graph, peak.left & moved),
        *_part(
            "inputs whose memory the plan makes a result in, and PyTorch frees after it is made", graph, peak.reused
        ),
        *_part("saved tensors that autograd holds beyond their last use", graph, peak.held),
    )


def advice(index: PlanIndex, found: SavedAbsences) -> str:
    """What to do instead where a plan does something and hooks do nothing of it; empty otherwise.

    Args:
        index: of the plan.
        found: what the plan swaps and recomputes of that which autograd saves.
    """
    plan = index.plan
    moves = bool(plan.swap_ins or plan.swap_outs)
    if found.swapped or not (moves or index.repeats):
        return ""
    if not moves:
        return 'it only recomputes, which hooks cannot do; plan with method="swap", or run it with planner.run'
    if index.repeats:
        return (
            'it swaps no saved tensor when hooks can, and recomputes; plan with method="swap", or run it with '
            "planner.run"
        )
    return "it swaps no saved tensor when hooks can; plan within a smaller budget, or run it with planner.run"


def _part(what: str, graph: Graph, storages: Iterable[int]) -> Iterator[AppliedPart]:
    found = set(storages)
    if found:
        yield AppliedPart(what, len(found), sum(graph.storages[storage].bytes for storage in found))
