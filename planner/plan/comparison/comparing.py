"""Comparing two plans of one graph."""

from __future__ import annotations

from planner.errors import StowageError
from planner.files import require_arguments
from planner.graph import Graph, Kind, storage_lines
from planner.plan.comparison.plan_comparison import PlanComparison, PlanFigures, TensorDifference, Treatment
from planner.plan.comparison.unlike_memory import unlike_memory
from planner.plan.index import PlanIndex
from planner.plan.own_graph import own_graph
from planner.plan.replay import memory_over_time, residency_seconds
from planner.plan.schema.swap_plan import SwapPlan
from planner.plan.summary import bytes_copied, recompute_seconds
from planner.plan.validator import validate


def compare_plans(graph: Graph, first: SwapPlan, second: SwapPlan) -> PlanComparison:
    """Say in what two plans of one step differ: figures, what happens to each tensor, and memory over time.

    Args:
        graph: the step.
        first, second: two plans of it, for any budgets and machines.

    Raises:
        StowageError: an argument is of another type, the plans are of different graphs or not of this one, or the
            validator refuses one.
    """
    require_arguments("compare_plans", graph=(graph, Graph), first=(first, SwapPlan), second=(second, SwapPlan))
    if first.graph != second.graph:
        raise StowageError(
            "the two plans are of different graphs, so they share no tensors; give two plans of one graph"
        )
    own_graph(graph, first)
    for name, plan in (("first", first), ("second", second)):
        if problems := validate(plan, graph):
            raise StowageError(f"the {name} plan is not valid: {problems[0]}")
    one, other = _Replayed(graph, first), _Replayed(graph, second)
    lines, tensors, same = storage_lines(graph), list[TensorDifference](), 0
    for storage in graph.storages:
        if not storage.bytes or storage.kind is Kind.WORKSPACE:
            continue
        treatments = one.treatment(storage.id), other.treatment(storage.id)
        if treatments[0] is treatments[1]:
            same += 1
            continue
        tensors.append(
            TensorDifference(
                storage.id, storage.name, storage.kind, storage.bytes, lines[storage.id], *treatments,
                one.spans(storage.id), other.spans(storage.id),
            )
        )  # fmt: skip
    tensors.sort(key=lambda tensor: (-tensor.bytes, tensor.storage))
    memory = one.memory, other.memory
    return PlanComparison(
        graph.name, first, second, one.figures(), other.figures(), tuple(tensors), same, *memory,
        unlike_memory(one.index, *memory, min(first.predicted.seconds, second.predicted.seconds)),
    )  # fmt: skip


class _Replayed:
    """What is asked of one of the plans."""

    def __init__(self, graph: Graph, plan: SwapPlan) -> None:
        self.plan, self.graph = plan, own_graph(graph, plan)
        self.index = PlanIndex(self.graph, plan)
        begins, ends = residency_seconds(self.index, plan.predicted.spans)
        ends[~self.index.ends] = plan.predicted.seconds
        self._spans = list(zip(begins.tolist(), ends.tolist(), strict=True))
        self._copied = {copy.storage for copy in plan.swap_outs} | {copy.storage for copy in plan.swap_ins}
        self._made_again = set(self.index.storage[self.index.recomputed].tolist())
        self.memory = memory_over_time(self.index, plan.predicted.spans)

    def treatment(self, storage: int) -> Treatment:
        """What happens to a storage."""
        if storage in self._copied:
            return Treatment.BOTH if storage in self._made_again else Treatment.SWAPPED
        return Treatment.RECOMPUTED if storage in self._made_again else Treatment.KEPT

    def spans(self, storage: int) -> tuple[tuple[float, float], ...]:
        """When a storage is on the device, in seconds."""
        return tuple(self._spans[number] for number in self.index.numbers(storage))

    def figures(self) -> PlanFigures:
        """The key figures."""
        plan, (into, out) = self.plan, bytes_copied(self.graph, self.plan)
        return PlanFigures(
            plan.method, plan.machine, plan.budget_bytes, plan.peak_bytes, plan.host_bytes, plan.predicted.seconds,
            plan.predicted.stall_seconds, recompute_seconds(plan), out, into, len(self.index.repeats),
        )  # fmt: skip
