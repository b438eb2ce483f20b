"""A sentence for a figure of a graph that is given something else."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def of_graph(draw: Callable[P, R]) -> Callable[P, R]:
    """Have a figure refuse a first argument that is no graph, and say where one comes from.

    Args:
        draw: the figure, whose first argument is `graph`.
    """

    @wraps(draw)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        from planner.errors import StowageError, given_type
        from planner.graph import Graph

        given = args[:1] if args else tuple(value for name, value in kwargs.items() if name == "graph")
        for graph in given:
            if not isinstance(graph, Graph):
                raise StowageError(f"{given_type(graph)} is not a graph; pass what planner.capture(step) returns")
        return draw(*args, **kwargs)

    return checked
