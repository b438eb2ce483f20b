"""Swapping and recomputing in place of another step: plans of the given step within the memory of a machine."""

from __future__ import annotations

from collections.abc import Callable

from planner.cancel import CancelToken
from planner.graph import Graph
from planner.levers.lever_rows import LeverRow, Numbers, Unchangeable
from planner.machine import Machine
from planner.plan import SwapPlan
from planner.step import Step
from planner.swap import BudgetTooSmallError, CopiesNeededError, search_swaps
from planner.units import format_bytes

#: By name, the method of the search and what changes.
_PLANS = {
    "recomputed by a plan": ("recompute", "tensors are made again where they are needed, and nothing is copied"),
    "swapped by a plan": ("swap", "tensors are copied to the host and back"),
    "swapped and recomputed by a plan": ("joint", "tensors are copied to the host and back, or made again"),
}
#: The methods whose plans are also of the method "joint".
_EITHER = {"recompute": "recomputes", "swap": "swaps"}
#: Plans timed for each, where nothing else is asked.
EVALUATIONS = 200


def planned_rows(
    step: Step, graph: Graph, machine: Machine, budget: int, peak: int, rows: int, *, evaluations: int, seed: int,
    stop: CancelToken, report: Callable[[float, str], object], doing: Callable[[str, int, int], str],
) -> list[LeverRow | Unchangeable]:  # fmt: skip
    """Plan the step within a budget.

    Args:
        step, graph: as given.
        machine: the machine, whose host memory may be pinned.
        budget: bytes of device memory.
        peak: bytes that the step takes with nothing swapped.
        rows: of the batch.
        evaluations: plans that each search times.
        seed: for random choices.
        stop: checked several times a second.
        report: called with the share done, from 0 to 1, and a status text.
        doing: the status text, by the name of a plan, how many were made before it and how many there are.

    Raises:
        StowageError: the figures of the machine's links are impossible.
        Cancelled: cancellation was requested.
    """
    found: list[LeverRow | Unchangeable] = []
    plans: dict[str, SwapPlan] = {}
    for number, (name, (method, change)) in enumerate(_PLANS.items()):
        if machine.device.kind == "cpu" and method != "recompute":
            found.append(Unchangeable(name, "a CPU computes in the memory that it would be swapped to"))
            continue
        if peak <= budget:
            fits = f"unswapped, the step takes {format_bytes(peak)} and fits in {format_bytes(budget)}"
            found.append(Unchangeable(name, f"{fits} without a plan"))
            continue

        def look(share: float, _: str, number: int = number, name: str = name) -> None:
            stop.check()
            report((number + share) / len(_PLANS), doing(name, number, len(_PLANS)))

        look(0.0, "")
        reason = ""
        try:
            plans[method] = search_swaps(
                graph, machine, budget, host_budget=machine.host_memory_bytes, method=method, seed=seed,
                time_limit=None, evaluations=evaluations,
            ).wait(progress=look)  # fmt: skip
        except CopiesNeededError as error:
            reason = error.without_copies
        except BudgetTooSmallError as error:
            reason = str(error)
        # a short search for plans that may do both may find less than one for plans that may do only one of the two
        able = [one for one in (method, *_EITHER) if one in plans and method in (one, "joint")]
        if able:
            best = min(able, key=lambda one: plans[one].predicted.seconds)
            only = f"; the fastest plan found only {_EITHER[best]}" if best != method else ""
            found.append(_row(step, graph, plans[best], name, change + only, budget, rows))
        else:
            found.append(Unchangeable(name, reason))
    return found


def _row(step: Step, graph: Graph, plan: SwapPlan, name: str, change: str, budget: int, rows: int) -> LeverRow:
    seconds = plan.predicted.seconds
    peak = plan.peak_bytes + graph.outside_bytes  # as the peaks of the other rows
    return LeverRow(
        name,
        change,
        peak,
        seconds,
        rows / seconds,
        peak <= budget,
        Numbers.SAME,
        (),
        plan,
        lambda: step,
        graph.device,
    )
