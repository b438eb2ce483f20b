"""Whether eager PyTorch can make the first steps of a run beside it."""

from __future__ import annotations

from planner.capture.step import Step
from planner.graph import Graph
from planner.memory import step_peak
from planner.run.headroom import free_bytes


def why_unchecked(graph: Graph, step: Step, *, followed: bool) -> str:
    """Why eager PyTorch should not make a step beside the run, in words; empty where it may.

    Args:
        graph: of the step.
        step: live.
        followed: whether the run's steps are made in the thread of whoever asks for them.
    """
    if not followed and any(op.random for op in graph.ops):
        return "its ops draw from PyTorch's generator, which others may use at the same time (check=True checks)"
    state = sum(tensor.nbytes for tensor in step.state().values())
    needed = max(0, step_peak(graph) - state)
    if needed > free_bytes():
        return f"eager PyTorch needs {needed / 2**30:.1f} GiB more than is free (check=True tries)"
    return ""
