"""What a graph or a plan says is on the device at its peak."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.graph import Graph, storage_lines
from planner.memory import lifetimes
from planner.plan import PlanIndex, SwapPlan, own_graph
from planner.snapshot.stacks import same_line
from planner.snapshot.tables import Ints


@dataclass(frozen=True, eq=False)
class PredictedPeak:
    """The storages on the device in the slot where they are most.

    Args:
        bytes: the predicted peak: of a plan the size of its arena.
        storage: `[held]`, ascending.
        sizes: `[held]`, their bytes.
        lines: `[held]`, the line of each as a snapshot names it.
        known_lines: every line of the graph.
    """

    bytes: int
    storage: Ints
    sizes: Ints
    lines: tuple[str, ...]
    known_lines: frozenset[str]


def predicted_peak(graph: Graph, plan: SwapPlan | None) -> PredictedPeak:
    """What is on the device at the peak of a step.

    Args:
        graph: the step.
        plan: its plan; None for the captured order with nothing swapped and no room lost between storages.

    Raises:
        StowageError: the plan is for another graph.
    """
    if plan is None:
        life = lifetimes(graph)
        slot = int(life.live_bytes.argmax()) if len(life.live_bytes) else 0
        there = np.flatnonzero((life.birth <= slot) & (slot < life.end))
        total = life.peak_bytes
    else:
        graph = own_graph(graph, plan)
        index = PlanIndex(graph, plan)
        changes = np.zeros(index.slots + 2, np.int64)
        np.add.at(changes, index.start, index.bytes)
        np.add.at(changes, index.stop, -index.bytes)
        slot = int(np.cumsum(changes)[: index.slots + 1].argmax())
        there = np.unique(index.storage[(index.start <= slot) & (slot < index.stop)])
        total = plan.peak_bytes
    sizes = np.array([graph.storages[storage].bytes for storage in there.tolist()], np.int64)
    lines = [same_line(line) for line in storage_lines(graph)]
    known = frozenset(same_line(op.source) for op in graph.ops if op.source)
    return PredictedPeak(total, there, sizes, tuple(lines[storage] for storage in there.tolist()), known)
