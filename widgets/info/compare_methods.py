"""The speeds that several methods reach within the same budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.errors import StowageError
from planner.graph import Graph, fingerprint
from planner.plan import recompute_seconds
from planner.swap import BudgetPoint
from planner.units import bytes_label, format_percent
from widgets.info.argument_types import require, require_graph
from widgets.info.residency_spans import Floats, Ints


@dataclass(frozen=True, eq=False)
class MethodSpeeds:
    """What one method reaches.

    Args:
        method: its name.
        budget_bytes: `[points]`, ascending.
        share_of_ideal: `[points]`, speed relative to infinite memory, from 0 to 1.
        bytes_moved: `[points]`, bytes copied per step, in and out.
        recompute_seconds: `[points]`, the time in which ops run again.
    """

    method: str
    budget_bytes: Ints
    share_of_ideal: Floats
    bytes_moved: Ints
    recompute_seconds: Floats

    def share_at(self, budget: int) -> float:
        """The share of the ideal speed within a budget; 0 if there is no plan."""
        fitting = np.flatnonzero(self.budget_bytes <= budget)
        return float(self.share_of_ideal[fitting[-1]]) if len(fitting) else 0.0


@dataclass(frozen=True, eq=False)
class CompareMethods:
    """Speeds by method.

    Args:
        name: name of the step.
        machine: name of the machine.
        methods: in the given order.
    """

    name: str
    machine: str
    methods: tuple[MethodSpeeds, ...]

    @property
    def budgets(self) -> Ints:
        """`[budgets]`, all budgets that a method has a plan for, ascending."""
        return np.unique(np.concatenate([each.budget_bytes for each in self.methods]))

    @property
    def summary(self) -> str:
        """The picture in one sentence: the budget at which the methods differ most."""
        shares = np.array([[each.share_at(int(budget)) for each in self.methods] for budget in self.budgets])
        place = int(np.argmax(shares.max(axis=1) - shares.min(axis=1)))
        words = [
            f"{each.method} {f'reaches {format_percent(share)} of ideal speed' if share else 'has no plan'}"
            for each, share in sorted(
                zip(self.methods, shares[place].tolist(), strict=True), key=lambda pair: -pair[1]
            )
        ]  # fmt: skip
        return f"Within {bytes_label(int(self.budgets[place]))}, {', '.join(words)}."


def get_compare_methods(graph: Graph, sweeps: Mapping[str, Sequence[BudgetPoint]]) -> CompareMethods:
    """Lay out the sweeps of several methods.

    Args:
        graph: the step.
        sweeps: by method, what `planner.swap.sweep` returned; a method without any plan is left out.

    Raises:
        StowageError: `graph` is no graph, there is no point at all, one is for another graph, or they are for several
            machines.
    """
    require_graph(graph)
    require(sweeps, Mapping, "dict", 'what planner.swap.sweep returns by method, as in {"joint": points}')
    found = {method: sorted(points, key=lambda point: point.budget_bytes) for method, points in sweeps.items()}
    found = {method: points for method, points in found.items() if points}
    if not found:
        raise StowageError("there is nothing to compare: give each method's points, as planner.swap.sweep returns them")
    plans = [point.plan for points in found.values() for point in points]
    if {plan.graph for plan in plans} != {fingerprint(graph)}:
        raise StowageError(f"these points are not for {graph.name}; sweep that graph, or draw the points' own graph")
    machines = sorted({plan.machine for plan in plans})
    if len(machines) > 1:
        raise StowageError(f"these points are for {' and '.join(machines)}; compare methods on one machine")
    return CompareMethods(
        graph.name,
        machines[0],
        tuple(
            MethodSpeeds(
                method,
                np.array([point.budget_bytes for point in points], np.int64),
                np.array([point.percent_of_ideal / 100 for point in points], np.float64),
                np.array([point.bytes_moved for point in points], np.int64),
                np.array([recompute_seconds(point.plan) for point in points], np.float64),
            )
            for method, points in found.items()
        ),
    )
