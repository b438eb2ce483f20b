"""The timing of an unplaced plan: its queues, and when each entry runs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.swap.draft.draft import UnplacedPlan
from planner.swap.problem.problem import Ints, Problem, Seconds
from planner.swap.simulate.edf import edf
from planner.swap.simulate.streams import run_queues


class Timing(NamedTuple):
    """When everything in an unplaced plan happens.

    `outs` and `ins` are the absences in queue order; `compute`, `out_spans` and `in_spans` hold start and stop in
    seconds.
    """

    seconds: float
    outs: Ints
    ins: Ints
    compute: Seconds
    out_spans: Seconds
    in_spans: Seconds

    @property
    def clock(self) -> Seconds:
        """`[slots + 1]`, when each slot begins, and the end, in seconds."""
        return np.append(self.compute[:, 0], self.seconds)


def copy_seconds(problem: Problem) -> Seconds:
    """`[storages]`, how long the copy of each takes when it has the link to itself."""
    return problem.sizes / problem.link.bandwidth + problem.link.latency


def time_draft(problem: Problem, draft: UnplacedPlan, queues: tuple[Ints, Ints] | None = None) -> Timing:
    """Simulate an unplaced plan, with the queues given or else with copies in order of deadline.

    Raises:
        Cancelled: cancellation was requested.
    """
    problem.stop.check()
    absences, shared = draft.absences, problem.link.shared
    seconds = problem.seconds[draft.order]
    work = copy_seconds(problem)[absences.storage]
    outs, ins = queues or edf(seconds, absences, work, shared)
    compute, out_spans, in_spans = np.empty((problem.ops, 2)), np.empty((len(outs), 2)), np.empty((len(ins), 2))
    total = run_queues(
        seconds, absences.ready[outs], absences.release[outs], work[outs], absences.reload[ins], absences.use[ins],
        work[ins], shared, np.empty((2, problem.ops + 1), np.int32), compute, out_spans, in_spans,
    )  # fmt: skip
    return Timing(total, outs, ins, compute, out_spans, in_spans)
