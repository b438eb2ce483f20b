"""Plans for a device that the step was not captured for."""

from __future__ import annotations

from planner.graph import Graph
from planner.machine.machine_types import Machine


def approximation(graph: Graph, machine: Machine | None = None) -> str:
    """In what a plan for a machine may differ from one made there, in a sentence; empty if the graph is the machine's.

    Args:
        graph: of the step.
        machine: that it is planned for; None for one with the device that the step was captured for.
    """
    if machine is not None and graph.device != machine.device.kind:
        return _OF_THE_CPU if graph.device == "cpu" else _OF_A_GPU
    return _ABSENT if graph.approximate else ""


_OF_THE_CPU = (
    "the step was captured for the CPU: kernels of a GPU, above all of attention and dropout, and its autocast keep "
    "other bytes; capture it with those, by device cuda, which needs no GPU, and plan again on the GPU before you run"
)
_OF_A_GPU = (
    "the step was captured for a GPU: kernels of a CPU, above all of attention and dropout, and its autocast keep "
    "other bytes; plan again on the CPU before you run"
)
_ABSENT = (
    "the step was captured without a GPU: its attention is that of cards of compute capability 8.0 or more, kernels of "
    "cuDNN may keep other bytes, and recurrent layers do; plan again on the GPU before you run"
)
