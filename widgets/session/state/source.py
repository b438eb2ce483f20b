"""The source of a session: a step, a graph, or a plan with its graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planner.errors import StowageError, given_type
from planner.graph import Graph
from planner.partition import PartitionPlan
from planner.plan import SwapPlan
from planner.step import Step


@dataclass(frozen=True, eq=False)
class Source:
    """The source of a session; without a graph, the step is captured.

    Args:
        step: the step to capture and run, or None.
        graph: the graph, or None if the step must be captured.
        plan: the plan to show first, or None.
        phrases: facts about the step that its graph does not contain.
    """

    step: Step | None
    graph: Graph | None
    plan: SwapPlan | None
    phrases: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name to use before there is a graph."""
        return self.graph.name if self.graph is not None else self.step.name if self.step is not None else ""


def read_source(given: Any) -> Source:
    """Interpret the source that was given.

    Args:
        given: a step, a graph, or a pair of a step or a graph and a plan for it.

    Raises:
        StowageError: it is none of these.
    """
    if isinstance(given, tuple) and len(given) == 2 and any(isinstance(one, SwapPlan) for one in given):
        plan, other = given if isinstance(given[0], SwapPlan) else given[::-1]
        about = read_source(other)
        return Source(about.step, about.graph, plan, about.phrases)
    if isinstance(given, Step):
        return Source(given, None, None, (_trained_by(given),))
    if isinstance(given, Graph):
        return Source(None, given, None, ())
    if isinstance(given, SwapPlan):
        raise StowageError("a plan alone does not say what its storages are: give the pair (graph, plan)")
    if isinstance(given, tuple) and any(isinstance(one, PartitionPlan) for one in given):
        raise StowageError(
            "a partition is drawn by widgets.partition_splits, level_bytes, worker_peaks and tensor_blocks (graph, "
            "partition); a view looks for its own: give it the step or the graph"
        )
    raise StowageError(
        f"{given_type(given)} cannot be shown: give a TrainStep, an InferenceStep, a graph, or the pair (graph, plan)"
    )


def _trained_by(step: Step) -> str:
    optimizer = getattr(step, "optimizer", None)
    return "inference" if optimizer is None else type(optimizer).__name__
