"""Plans for a device that the step was not captured for."""

from __future__ import annotations

from planner.graph import Graph
from planner.machine.machine_types import Machine


def approximation(graph: Graph, machine: Machine) -> str:
    """In what a plan for a machine may differ from one made there, in a sentence; empty if the graph is the machine's.

    Args:
        graph: of the step.
        machine: that it is planned for.
    """
    if graph.device == machine.device.kind:
        return ""
    here, there = ("the CPU", "a GPU") if graph.device == "cpu" else ("a GPU", "a CPU")
    return (
        f"the step was captured for {here}: kernels of {there}, above all of attention and of convolutions, may keep "
        "other bytes; plan again there before you run"
    )
