"""What a step of one size needs on a machine: its memory unswapped, and its time when swapped into what there is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from planner.cancel import CancelToken
from planner.graph import Graph
from planner.machine import Machine, op_seconds
from planner.swap import BudgetTooSmallError, HostBudgetTooSmallError, peak_of, search_swaps

#: A step is at full speed if it takes at most 1 % longer than with infinite memory.
FULL_SPEED = 0.01


def share_text(share: float) -> str:
    """A share of time as it is asked for, such as `10%`."""
    return f"{100 * share:.14g}%"  # of the 17 digits that a number has, those that no rounding changes


@dataclass(frozen=True, slots=True)
class Needs:
    """What a step of one size needs.

    Args:
        value: the size.
        unswapped_bytes: device memory with nothing swapped, as in `planner.swap.peak_of`.
        ideal_seconds: step time with infinite memory, by the machine's roofline.
        step_seconds: step time of the best plan found within the machine's memory; None without a plan.
        peak_bytes, host_bytes: device and pinned host memory of that plan; None without a plan.
        captured: whether its graph was captured, rather than predicted from those of other sizes.
    """

    value: int
    unswapped_bytes: int
    ideal_seconds: float
    step_seconds: float | None
    peak_bytes: int | None
    host_bytes: int | None
    captured: bool = True

    def within(self, slower: float) -> bool:
        """Whether a plan was found that is at most this share slower than with infinite memory."""
        return self.step_seconds is not None and self.step_seconds <= (1 + slower) * self.ideal_seconds


def assess(
    value: int, graph: Graph, machine: Machine, budget: int, least: int, *, evaluations: int | None, seed: int,
    stop: CancelToken, report: Callable[[float], object], any_plan: bool = False,
) -> tuple[Needs, bool]:  # fmt: skip
    """Find what a step needs, and whether only the host's memory stops it; the same arguments give the same answer.

    The host alone stops it where plans were found and all of them need more host memory. Where `least` alone says that
    there is no plan, none was looked for, and what stops the step is not known.

    Args:
        value: its size.
        graph, machine: the step and the machine, whose host memory may be pinned.
        budget: bytes of device memory.
        least: bytes that every plan holds at once on the device and the host together, or fewer.
        evaluations: plans that the search times; None to run its portfolio to the end.
        seed: for random choices.
        stop: checked several times a second.
        report: called with the share done, from 0 to 1.
        any_plan: whether the first plan will do, however slow.

    Raises:
        StowageError: the figures of the machine's links are impossible.
        Cancelled: cancellation was requested.
    """
    seconds = op_seconds(graph, machine)
    ideal, unswapped = float(seconds.sum()), peak_of(graph, machine.device.alignment, stop)
    if unswapped <= budget:
        return Needs(value, unswapped, ideal, ideal, unswapped, 0), False
    none = Needs(value, unswapped, ideal, None, None, None)
    if least > budget + machine.host_memory_bytes:
        return none, False
    method = "calendar" if evaluations is None else "swap"  # the bound above is for plans that run each op once

    def look(share: float, _: str) -> None:
        stop.check()
        report(share)

    try:
        search = search_swaps(
            graph, machine, budget, host_budget=machine.host_memory_bytes, seconds=seconds, method=method, seed=seed,
            time_limit=None, evaluations=1 if any_plan else evaluations,
        )  # fmt: skip
        plan = search.wait(progress=look)
    except BudgetTooSmallError as error:
        return none, isinstance(error, HostBudgetTooSmallError)
    return Needs(value, unswapped, ideal, plan.predicted.seconds, plan.peak_bytes, plan.host_bytes), False
