"""A graph prepared for planning on a machine: the duration and the scratch memory of each op there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.graph import Graph
from planner.machine import Machine, op_seconds
from planner.profile.measure import measure_ops
from planner.progress import ShowProgress


@dataclass(frozen=True, eq=False)
class TimedGraph:
    """A graph on a machine.

    Args:
        graph: with the workspaces of the machine.
        seconds: durations, shape (ops,).
    """

    graph: Graph
    seconds: NDArray[np.float64]


def timed(graph: Graph, machine: Machine, *, progress: ShowProgress = True, remeasure: bool = False) -> TimedGraph:
    """Time a graph: measured on the attached CPU, predicted by the roofline model on any other machine.

    Args:
        graph: as `capture` returns it.
        machine: the machine to plan for.
        progress: True shows progress, False shows nothing; a function is called with the share done, 0 to 1, and a
            status text.
        remeasure: measure again the ops whose costs are cached on disk.

    Raises:
        StowageError: as `measure_ops`.
    """
    if machine.device.kind != "cpu":
        return TimedGraph(graph, op_seconds(graph, machine))
    measured = measure_ops(graph, machine, progress=progress, remeasure=remeasure)
    needed = {op: int(size) for op, size in enumerate(measured.workspace_bytes) if size > 0}
    return TimedGraph(graph.with_workspaces(needed), measured.seconds)
