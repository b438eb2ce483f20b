"""Refusals of what is no plan or result, such as a model, which say what to pass instead."""

from __future__ import annotations

from planner.errors import StowageError, given_type
from planner.graph import Graph
from planner.plan import SwapPlan


def require(value: object, wanted: type, what: str, instead: str) -> None:
    """Check the type of an argument.

    Args:
        value: what was given.
        wanted: the type.
        what: what it should be, such as `run`.
        instead: what to pass.

    Raises:
        StowageError: it is of another type.
    """
    if not isinstance(value, wanted):
        raise StowageError(f"{given_type(value)} is not a {what}; pass {instead}")


def require_graph(graph: object) -> None:
    """Check that an argument is a graph.

    Raises:
        StowageError: it is something else.
    """
    require(graph, Graph, "graph", "what planner.capture(step) returns")


def require_plan(plan: object) -> None:
    """Check that an argument is a plan of swaps.

    Raises:
        StowageError: it is something else.
    """
    require(plan, SwapPlan, "plan of swaps", "what planner.plan_swaps(graph, machine, budget) returns")
