"""Step time against memory: the plans found for several budgets, and the lower bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.errors import StowageError, given_type
from planner.graph import Graph, fingerprint
from planner.swap import BudgetPoint
from planner.units import bytes_label, format_percent, format_seconds
from widgets.info.argument_types import require, require_graph
from widgets.info.residency_spans import Floats, Ints

#: A step of at least this share of ideal speed counts as equally fast.
_CLOSE = 0.98


@dataclass(frozen=True, eq=False)
class Pareto:
    """Budgets, and the best plan found for each.

    Args:
        name: name of the step.
        machine: name of the machine.
        budget_bytes: `[points]`, ascending.
        step_seconds: `[points]`, step time of the best plan found; never longer with more memory.
        bound_seconds: `[points]`, lower bound on the step time.
        ideal_seconds: step time with infinite memory.
        bytes_in, bytes_out: `[points]`, bytes copied per step.
        methods: `[points]`, the planner that found the plan.
    """

    name: str
    machine: str
    budget_bytes: Ints
    step_seconds: Floats
    bound_seconds: Floats
    ideal_seconds: float
    bytes_in: Ints
    bytes_out: Ints
    methods: tuple[str, ...]

    @property
    def summary(self) -> str:
        """The picture in one sentence."""
        share = self.ideal_seconds / self.step_seconds
        least = (
            f"within {bytes_label(self.budget_bytes[0])}, the step takes {format_seconds(self.step_seconds[0])}, "
            f"{format_percent(share[0])} of ideal speed"
        )
        close = np.flatnonzero(share >= _CLOSE)
        if not len(close):
            return f"No budget here comes within 2 % of the ideal {format_seconds(self.ideal_seconds)}; {least}."
        enough = bytes_label(self.budget_bytes[close[0]], round_up=True)
        if close[0] == 0:
            return f"{enough} is enough for a step within 2 % of the ideal {format_seconds(self.ideal_seconds)}."
        return f"{enough} is enough for a step within 2 % of the ideal {format_seconds(self.ideal_seconds)}; {least}."


def get_pareto(graph: Graph, points: Sequence[BudgetPoint]) -> Pareto:
    """Lay out a sweep.

    Args:
        graph: the step.
        points: what `sweep` returned.

    Raises:
        StowageError: `graph` is no graph, there is no point, or one is for another graph.
    """
    require_graph(graph)
    require(points, Sequence, "list of points", "what planner.swap.sweep(graph, machine) returns")
    if not points:
        raise StowageError("there is no point to draw; let the sweep run until it has planned for a budget")
    if not all(isinstance(point, BudgetPoint) for point in points):
        raise StowageError(
            f"{given_type(points[0])} is no point of a sweep over budgets, which this figure draws; see "
            "planner.swap.pareto.sweep"
        )
    if {point.plan.graph for point in points} != {fingerprint(graph)}:
        raise StowageError(f"these points are not for {graph.name}; sweep that graph, or draw the points' own graph")
    points = sorted(points, key=lambda point: point.budget_bytes)
    return Pareto(
        graph.name,
        points[0].plan.machine,
        np.array([point.budget_bytes for point in points], np.int64),
        np.array([point.step_seconds for point in points], np.float64),
        np.array([point.bound_seconds for point in points], np.float64),
        points[0].ideal_seconds,
        np.array([point.bytes_in for point in points], np.int64),
        np.array([point.bytes_out for point in points], np.int64),
        tuple(point.plan.method for point in points),
    )
