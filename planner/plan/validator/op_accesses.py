"""Which storages the op of each slot reads and writes."""

from __future__ import annotations

from dataclasses import dataclass

from planner.graph import Graph
from planner.plan.schema.swap_plan import SwapPlan


@dataclass(frozen=True, slots=True)
class SlotAccesses:
    """What ops read and write, by slot, each storage once; an op that runs again leaves `Op.first_run_only` alone."""

    reads: list[tuple[int, ...]]
    writes: list[tuple[int, ...]]

    def touched(self, slot: int) -> tuple[int, ...]:
        """The storages that the op of a slot reads or writes, each once."""
        return tuple(dict.fromkeys((*self.reads[slot], *self.writes[slot])))


def slot_accesses(plan: SwapPlan, graph: Graph) -> SlotAccesses:
    """Find the accesses of a plan whose order names ops of the graph."""
    found = SlotAccesses([], [])
    ran: set[int] = set()
    for op in plan.order:
        found.reads.append(graph.reads_again[op] if op in ran else graph.reads[op])
        found.writes.append(graph.writes_again[op] if op in ran else graph.writes[op])
        ran.add(op)
    return found
