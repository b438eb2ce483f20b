"""Every op split over all GPUs: Tofu's recursion, and ours, with swapping within what a worker is given."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from paper_tofu_case import Case, Outcome, coarse_of, peak, swapped_seconds

from planner.partition import average_worker, baselines, recurse, step_time


@lru_cache(maxsize=1)
def tofu(case: Case) -> Outcome:
    """The recursion's partition; the batch is halved until a worker's share fits."""
    batch = case.batch
    while batch >= case.workers:
        found = recurse(coarse_of(case.graph(batch)), case.workers)
        if peak(case, average_worker(found)) <= case.memory:
            time = step_time(found, case.machine)
            return Outcome(batch / time.seconds, batch)
        batch //= 2
    return Outcome(0, 0, "does not fit")


def partition_and_swapping(case: Case) -> Outcome:
    """The fastest of the recursion and the baselines, with swapping within it where it does not fit.

    The batch is the whole one, or that with which Tofu's partition fits, whichever gives more samples per second.
    Worker graphs are approximated: each storage has a worker's share of its bytes, each op its time behind the others
    and the memory of what it fetches.
    """
    batches = sorted({case.batch, tofu(case).batch or case.batch})
    return max((best_with_batch(case, batch) for batch in batches), key=lambda found: found.samples)


def best_with_batch(case: Case, batch: int) -> Outcome:
    """The fastest partition with a batch, and swapping within it."""
    coarse = coarse_of(case.graph(batch))
    known = {"recursion": recurse(coarse, case.workers), **baselines(coarse, case.workers)}
    times = {name: step_time(found, case.machine) for name, found in known.items() if found is not None}
    best: tuple[float, str] | None = None
    tried = 0
    for name in sorted(times, key=lambda name: times[name].seconds):
        found, time = known[name], times[name]
        assert found is not None
        if tried == 2 or (best is not None and best[0] <= time.seconds):
            break
        graph = average_worker(found)
        if peak(case, graph) <= case.memory:
            took: float | None = time.seconds
            note = name
        else:
            tried += 1
            busy = np.diff(time.op_ends, prepend=0.0)
            took = swapped_seconds(case, graph, busy)
            note = f"{name}, swapping"
        if took is not None and (best is None or took < best[0]):
            best = took, note
    return Outcome(0, 0, "does not fit") if best is None else Outcome(batch / best[0], batch, best[1])
