"""Each GPU trains on its part of the batch: with memory without end, with a small batch, and with swapping."""

from __future__ import annotations

from collections.abc import Callable

from paper_tofu_case import Case, Outcome, coarse_of, peak, swapped_seconds

from planner.machine import op_seconds
from planner.partition import BASELINES, StepTime, step_time


def ideal(case: Case) -> Outcome:
    """One device with memory without end, times the number of devices."""
    seconds = float(op_seconds(case.graph(case.batch), case.machine).sum())
    return Outcome(case.workers * case.batch / seconds, case.batch)


def small_batch(case: Case) -> Outcome:
    """Data parallelism with the largest batch that fits; gradients are reduced behind the backward pass."""
    share = largest_that_fits(case.batch // case.workers, lambda own: peak(case, case.graph(own)) <= case.memory)
    if share == 0:
        return Outcome(0, 0, "does not fit")
    batch = share * case.workers
    return Outcome(batch / data_parallel_time(case, batch).seconds, batch)


def data_parallel_time(case: Case, batch: int) -> StepTime:
    """The step time of data parallelism."""
    found = BASELINES["data-parallel"](coarse_of(case.graph(batch)), case.workers)
    return step_time(found, case.machine)


def largest_that_fits(most: int, fits: Callable[[int], bool]) -> int:
    """The largest number from 1 to `most` that fits, by bisection; 0 if none does."""
    if fits(most):
        return most
    if not fits(1):
        return 0
    low, high = 1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def swapping(case: Case) -> Outcome:
    """Data parallelism in which every device swaps for itself, with its share of the link to the host.

    What it costs to reduce the gradients is what it costs with memory without end.
    """
    graph = case.graph(case.batch // case.workers)
    seconds = swapped_seconds(case, graph, op_seconds(graph, case.machine))
    if seconds is None:
        return Outcome(0, 0, "does not fit")
    parallel = data_parallel_time(case, case.batch)
    return Outcome(case.batch / (seconds + parallel.seconds - parallel.compute_seconds), case.batch)
