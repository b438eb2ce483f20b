"""What is asked of the swap planners, checked."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from planner.errors import StowageError
from planner.graph import Graph
from planner.machine.types import Machine
from planner.memory import parse_budget, step_peak
from planner.swap.feasible import fitting_order, refuse, working_sets
from planner.swap.problem import Problem, Seconds, state

_peaks: WeakKeyDictionary[Graph, dict[int, int]] = WeakKeyDictionary()


def problem_of(
    graph: Graph, machine: Machine, budget: str | int, host_budget: str | int | None, seconds: Seconds | None
) -> tuple[Problem, int | None]:
    """Read the budgets and lay out the graph; returns the problem and the host budget in bytes.

    Args:
        graph, machine, budget, host_budget, seconds: as in `search_swaps`.

    Raises:
        StowageError: that is no graph or no machine, or a budget is no amount or below the least that there is a plan
            for.
    """
    if not isinstance(graph, Graph):
        raise StowageError(f"swaps are planned for a graph, not a {type(graph).__name__}; pass planner.capture(step)")
    if not isinstance(machine, Machine):
        raise StowageError(f'{machine!r} is no machine; pass planner.machine("v100-16gb"), say')
    if seconds is None:
        from planner.machine import op_seconds

        seconds = op_seconds(graph, machine)
    alignment = machine.device.alignment
    problem = state(graph, machine, _bytes(budget, graph, alignment), seconds)
    if problem.memory < int(working_sets(problem).max(initial=1)) and fitting_order(problem) is None:
        peak = peak_of(graph, alignment)  # its last storage ends where it ends, not at the next multiple
        if problem.budget < peak:
            raise refuse(problem, peak)
    return problem, None if host_budget is None else _bytes(host_budget, graph, alignment)


def peak_of(graph: Graph, alignment: int) -> int:
    """`step_peak`, remembered as long as the graph is there."""
    known = _peaks.setdefault(graph, {})
    if alignment not in known:
        known[alignment] = step_peak(graph, alignment)
    return known[alignment]


def _bytes(budget: str | int, graph: Graph, alignment: int) -> int:
    """A budget in bytes; what the step takes is worked out only where a share of it is asked for."""
    share = isinstance(budget, str) and budget.strip().endswith("%")
    return parse_budget(budget, peak_of(graph, alignment) if share else 1)
