"""Refusals of what is no graph, plan or result, such as a model, which say what to pass instead."""

from __future__ import annotations

from planner.errors import StowageError, given_type
from planner.graph import Graph
from planner.plan import SwapPlan


def require(name: str, value: object, wanted: type, instead: str, noun: str = "") -> None:
    """Check the type of an argument.

    Args:
        name: of the argument.
        value: what was given.
        wanted: the type.
        instead: what to pass, in the words that follow `pass`.
        noun: the type in a sentence, by default its name.

    Raises:
        StowageError: it is of another type.
    """
    if not isinstance(value, wanted):
        raise StowageError(f"{name} must be a {noun or wanted.__name__}, got {given_type(value)}; pass {instead}")


def require_graph(graph: object) -> None:
    """Check that an argument is a graph.

    Raises:
        StowageError: it is something else.
    """
    require("graph", graph, Graph, "the graph that planner.capture(step) returns")


def require_plan(plan: object) -> None:
    """Check that an argument is a plan of swaps.

    Raises:
        StowageError: it is something else.
    """
    require("plan", plan, SwapPlan, "the plan that planner.plan_swaps(graph, machine, budget) returns")
