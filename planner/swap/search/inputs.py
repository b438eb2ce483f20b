"""What is asked of the swap planners, checked."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from planner.errors import StowageError
from planner.graph import Graph
from planner.machine.types import Machine
from planner.memory import parse_budget, step_peak
from planner.swap.problem.problem import Problem, Seconds, durations, link, state
from planner.swap.schedule.feasibility import fitting_order, refuse, working_sets
from planner.swap.stop import Stop

#: So many ops are laid out in less than a third of a second, and the step's own peak is found by then for fewer.
_FEW, _FEW_FOR_PEAK = 10_000, 300
_HUGE = 1 << 60

_peaks: WeakKeyDictionary[Graph, dict[int, int]] = WeakKeyDictionary()


def op_times(
    graph: Graph, machine: Machine, budget: str | int, host_budget: str | int | None, seconds: Seconds | None
) -> Seconds:
    """Check whatever takes no time to check; returns how long each op runs.

    Args:
        graph, machine, budget, host_budget, seconds: as in `search_swaps`.

    Raises:
        StowageError: that is no graph or no machine, a budget is no amount, or the op times or the link are impossible.
    """
    if not isinstance(graph, Graph):
        raise StowageError(f"swaps are planned for a graph, not a {type(graph).__name__}; pass planner.capture(step)")
    if not isinstance(machine, Machine):
        raise StowageError(f'{machine!r} is not a machine; pass planner.machine("v100-16gb"), for example')
    parse_budget(budget, _HUGE)
    if host_budget is not None:
        parse_budget(host_budget, _HUGE, "host budget")
    link(machine)
    if seconds is None:
        from planner.machine import op_seconds

        return op_seconds(graph, machine)
    return durations(graph, seconds)


def soon(graph: Graph, machine: Machine, *budgets: str | int | None) -> bool:
    """Whether `problem_of` is done in a moment."""
    known = machine.device.alignment in _peaks.get(graph, {}) or len(graph.ops) <= _FEW_FOR_PEAK
    return len(graph.ops) <= _FEW and (known or not any(map(_is_share, budgets)))


def problem_of(
    graph: Graph,
    machine: Machine,
    budget: str | int,
    host_budget: str | int | None,
    seconds: Seconds | None,
    stop: Stop | None = None,
) -> tuple[Problem, int | None]:
    """Read the budgets and lay out the graph; returns the problem and the host budget in bytes.

    Args:
        graph, machine, budget, host_budget, seconds: as in `search_swaps`.
        stop: whether to stop, now and whenever somebody works on the problem; None for never.

    Raises:
        StowageError: as `op_times`, or the budget is below the least that there is a plan for.
        Stopped: it was asked to stop.
    """
    seconds = op_times(graph, machine, budget, host_budget, seconds)
    alignment, stop = machine.device.alignment, stop or Stop()
    problem = state(graph, machine, _bytes(budget, graph, alignment, stop, "budget"), seconds, stop)
    if problem.memory < int(working_sets(problem).max(initial=1)) and fitting_order(problem) is None:
        peak = peak_of(graph, alignment, stop)  # its last storage ends where it ends, not at the next multiple
        if problem.budget < peak:
            raise refuse(problem, peak)
    return problem, None if host_budget is None else _bytes(host_budget, graph, alignment, stop, "host budget")


def peak_of(graph: Graph, alignment: int, stop: Stop | None = None) -> int:
    """`step_peak`, remembered as long as the graph is there."""
    known = _peaks.setdefault(graph, {})
    if alignment not in known:
        known[alignment] = step_peak(graph, alignment, between=(stop or Stop()).check)
    return known[alignment]


def _bytes(budget: str | int, graph: Graph, alignment: int, stop: Stop, what: str) -> int:
    """A budget in bytes; what the step takes is worked out only where a share of it is asked for."""
    return parse_budget(budget, peak_of(graph, alignment, stop) if _is_share(budget) else 1, what)


def _is_share(budget: str | int | None) -> bool:
    return isinstance(budget, str) and budget.strip().endswith("%")
