"""A graph made ready for planning on a machine: how long each op runs there and the temporary memory it takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.graph import Graph
from planner.machine.measure import measure_ops
from planner.machine.roofline import op_seconds
from planner.machine.types import Machine
from planner.progress import Progress


@dataclass(frozen=True, eq=False)
class Timed:
    """A graph on a machine.

    Args:
        graph: its workspaces are those of the machine.
        seconds: durations, shape (ops,).
    """

    graph: Graph
    seconds: NDArray[np.float64]


def timed(graph: Graph, machine: Machine, *, progress: Progress = True, remeasure: bool = False) -> Timed:
    """Time a graph: measured on the attached CPU, by the roofline on any other machine.

    Args:
        graph: as `capture` returns it.
        machine: what is to run it.
        progress: True shows how far it is, False shows nothing; a function is called with the share done, 0 to 1, and
            what is being done.
        remeasure: measure anew what was measured before and kept on disk.

    Raises:
        StowageError: as `measure_ops`.
    """
    if machine.device.kind != "cpu":
        return Timed(graph, op_seconds(graph, machine))
    measured = measure_ops(graph, machine, progress=progress, remeasure=remeasure)
    needed = {op: int(size) for op, size in enumerate(measured.workspace_bytes) if size > 0}
    return Timed(graph.with_workspaces(needed), measured.seconds)
