"""Whether capturing a step for a GPU without one gives the calls that it has there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from planner.capture import capture_as_absent
from planner.graph import Graph
from planner.selftest.sample_steps import PlannedStep


def unlike_calls(tested: PlannedStep) -> int:
    """How many calls of a step are not in its graph as captured without the device, or only there.

    Args:
        tested: a step, captured on the device.
    """
    there, without = calls(tested.graph), calls(capture_as_absent(tested.step, tested.graph.device))
    return max((there - without).total(), (without - there).total())


def calls(graph: Graph) -> Counter[str]:
    """The calls of a graph, with the layouts of what they read and make."""

    def laid(tensors: Iterable[int]) -> str:
        found = (graph.tensors[tensor] for tensor in tensors)
        return " ".join(f"{one.dtype}{one.shape}{one.strides}" for one in found)

    return Counter(f"{op.target}({op.attributes}) {laid(op.inputs)} -> {laid(op.outputs)}" for op in graph.ops)
