"""Where compute waits in a timeline, and for which copy."""

from __future__ import annotations

import numpy as np

from planner.graph import Graph, GraphBuilder, Kind
from planner.plan import PlanIndex, SwapIn, SwapOut, SwapPlan, Timeline, compute_waits, device_queues


def graph_of(storages: int) -> Graph:
    builder = GraphBuilder("waits")
    for number in range(storages):
        builder.add_storage(f"storage {number}", 64, Kind.PARAMETER)
    return builder.build()


def timeline_of(compute: list[tuple[float, float]], outs: list[float], ins: list[float], end: float) -> Timeline:
    def copies(stops: list[float]) -> np.ndarray:
        return np.array([(0.0, stop) for stop in stops]).reshape(-1, 2)

    return Timeline.of_device(end, np.array(compute), copies(outs), copies(ins), np.zeros(1), np.zeros(1, np.int64))


def waits_of(timeline: Timeline, outs: list[SwapOut], ins: list[SwapIn]) -> list[tuple[int, float, float, int, str]]:
    n = len(timeline.compute)
    plan = SwapPlan(
        graph="", machine="", method="", budget_bytes=0, host_budget_bytes=None, alignment=64,
        queues=device_queues(range(n), outs, ins), workspaces=(), residencies=(), host_residencies=(),
        peak_bytes=0, host_bytes=0, predicted=timeline,
    )  # fmt: skip
    found = compute_waits(PlanIndex(graph_of(2), plan), timeline)
    return [(wait.slot, wait.start, wait.stop, wait.storage, wait.shares[0].direction) for wait in found]


def test_an_op_waits_for_the_last_copy_that_ends_before_it() -> None:
    timeline = timeline_of([(0.0, 1.0), (3.0, 4.0)], [2.0], [3.0], 4.0)
    assert waits_of(timeline, [SwapOut(0, -1, 1)], [SwapIn(1, 0, 1)]) == [(1, 1.0, 3.0, 1, "in")]


def test_a_copy_that_ended_while_an_op_ran_delays_nothing() -> None:
    timeline = timeline_of([(0.0, 1.0), (1.5, 2.0)], [0.5], [], 2.0)
    assert waits_of(timeline, [SwapOut(0, -1, 1)], []) == []


def test_a_copy_that_is_not_due_yet_is_not_what_compute_waits_for() -> None:
    timeline = timeline_of([(0.0, 1.0), (3.0, 4.0), (4.0, 5.0)], [2.0], [], 5.0)
    assert waits_of(timeline, [SwapOut(0, -1, 2)], []) == []


def test_a_measured_step_may_wait_in_a_later_slot_than_the_copy_is_due_in() -> None:
    timeline = timeline_of([(0.0, 1.0), (1.0, 2.0), (5.0, 6.0)], [5.0], [], 6.0)
    assert waits_of(timeline, [SwapOut(0, -1, 1)], []) == [(2, 2.0, 5.0, 0, "out")]


def test_the_end_of_the_step_waits_for_copies_that_no_op_needed() -> None:
    timeline = timeline_of([(0.0, 1.0), (1.0, 2.0)], [7.0], [], 7.0)
    assert waits_of(timeline, [SwapOut(0, -1, 1)], []) == [(2, 2.0, 7.0, 0, "out")]
