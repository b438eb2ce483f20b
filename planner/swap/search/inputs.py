"""Checks the inputs of the swap planners."""

from __future__ import annotations

from planner.cancel import CancelToken
from planner.errors import StowageError, given_type
from planner.graph import Graph
from planner.machine import Machine
from planner.memory import is_step_peak_known, parse_budget, step_peak
from planner.swap.problem.problem import Problem, Seconds, build_problem, durations, link_model
from planner.swap.schedule.budget_feasibility import fitting_order, refuse, working_sets

#: Up to `_FEW` ops are laid out in less than a third of a second, and up to `_FEW_FOR_PEAK` with the step's peak.
_FEW, _FEW_FOR_PEAK = 10_000, 300
_HUGE = 1 << 60


def get_op_seconds(
    graph: Graph, machine: Machine, budget: str | int, host_budget: str | int | None, seconds: Seconds | None
) -> Seconds:
    """Run the checks that take no time; returns `[ops]`, how long each op runs.

    Args:
        graph, machine, budget, host_budget, seconds: as in `search_swaps`.

    Raises:
        StowageError: the graph or the machine is not one, a budget is not an amount, or the op times or the link are
            impossible.
    """
    if not isinstance(graph, Graph):
        raise StowageError(f"swaps are planned for a graph, not {given_type(graph)}; pass planner.capture(step)")
    if not isinstance(machine, Machine):
        raise StowageError(f'{machine!r} is not a machine; pass planner.machine("v100-16gb"), for example')
    parse_budget(budget, _HUGE)
    if host_budget is not None:
        parse_budget(host_budget, _HUGE, "host budget")
    link_model(machine)
    if seconds is None:
        from planner.machine import op_seconds

        return op_seconds(graph, machine)
    return durations(graph, seconds)


def is_instant(graph: Graph, machine: Machine, *budgets: str | int | None) -> bool:
    """Whether `make_problem` is done in a moment."""
    known = is_step_peak_known(graph, machine.device.alignment) or len(graph.ops) <= _FEW_FOR_PEAK
    return len(graph.ops) <= _FEW and (known or not any(map(_is_share, budgets)))


def make_problem(
    graph: Graph,
    machine: Machine,
    budget: str | int,
    host_budget: str | int | None,
    seconds: Seconds | None,
    stop: CancelToken | None = None,
) -> tuple[Problem, int | None]:
    """Parse the budgets and lay out the graph; returns the problem and the host budget in bytes.

    Args:
        graph, machine, budget, host_budget, seconds: as in `search_swaps`.
        stop: cancels this call and all later work on the problem; None for never.

    Raises:
        BudgetTooSmallError: the budget is below the least that there is a plan for.
        StowageError: as `get_op_seconds`.
        Cancelled: cancellation was requested.
    """
    seconds = get_op_seconds(graph, machine, budget, host_budget, seconds)
    alignment, stop = machine.device.alignment, stop or CancelToken()
    problem = build_problem(
        graph, machine, _bytes(budget, graph, alignment, stop, "budget", graph.outside_bytes), seconds, stop
    )
    if problem.memory < int(working_sets(problem).max(initial=1)) and fitting_order(problem) is None:
        peak = peak_of(graph, alignment, stop)  # a peak is not rounded up to the alignment
        if problem.budget < peak:
            raise refuse(problem, peak)
    return problem, None if host_budget is None else _bytes(host_budget, graph, alignment, stop, "host budget")


def peak_of(graph: Graph, alignment: int, stop: CancelToken | None = None) -> int:
    """`step_peak`, at the alignment of a device."""
    return step_peak(graph, alignment, stop=stop)


def _bytes(
    budget: str | int, graph: Graph, alignment: int, stop: CancelToken, what: str, outside_bytes: int = 0
) -> int:
    """A budget in bytes; the step's peak is computed only if the budget is a share of it."""
    peak = peak_of(graph, alignment, stop) if _is_share(budget) else 1
    return parse_budget(budget, peak, what, outside_bytes=outside_bytes)


def _is_share(budget: str | int | None) -> bool:
    return isinstance(budget, str) and budget.strip().endswith("%")
