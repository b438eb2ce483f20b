"""The time of a draft: its queues, and when each entry runs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.swap.draft.draft import Draft
from planner.swap.problem.problem import Ints, Problem, Seconds
from planner.swap.simulate.edf import dispatch
from planner.swap.simulate.streams import run_queues


class Timing(NamedTuple):
    """When everything in a draft happens; `outs` and `ins` are gaps in queue order, the rest start and stop."""

    seconds: float
    outs: Ints
    ins: Ints
    compute: Seconds
    out_spans: Seconds
    in_spans: Seconds

    @property
    def clock(self) -> Seconds:
        """`[slots + 1]`, when each slot begins, and the end."""
        return np.append(self.compute[:, 0], self.seconds)


def copy_seconds(problem: Problem) -> Seconds:
    """`[storages]`, how long each takes on the link alone."""
    sizes = np.array([storage.bytes for storage in problem.graph.storages], np.float64)
    return sizes / problem.copies.bandwidth + problem.copies.latency


def time_draft(problem: Problem, draft: Draft, queues: tuple[Ints, Ints] | None = None) -> Timing:
    """Run a draft, with the queues given or else with copies in order of deadline.

    Raises:
        Stopped: it was asked to stop.
    """
    problem.stop.check()
    gaps, shared = draft.gaps, problem.copies.shared
    seconds = problem.seconds[draft.order]
    work = copy_seconds(problem)[gaps.storage]
    outs, ins = queues or dispatch(seconds, gaps, work, shared)
    compute, out_spans, in_spans = np.empty((problem.ops, 2)), np.empty((len(outs), 2)), np.empty((len(ins), 2))
    total = run_queues(
        seconds, gaps.ready[outs], gaps.release[outs], work[outs], gaps.reload[ins], gaps.use[ins], work[ins],
        shared, np.empty((2, problem.ops + 1), np.int32), compute, out_spans, in_spans,
    )  # fmt: skip
    return Timing(total, outs, ins, compute, out_spans, in_spans)
