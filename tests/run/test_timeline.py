"""What is measured has every byte in the hands of one storage at a time, in the order of the plan that was run."""

from __future__ import annotations

import numpy as np
import pytest

from planner.capture import capture
from planner.graph import Graph
from planner.plan import SwapPlan, Timeline
from planner.run import run
from tests.effort import combinations
from tests.run.steps import ALL, planned


@pytest.mark.parametrize(("model", "stress"), combinations(["convolutions", "lstm"], [False, True]))
def test_spans_follow_each_other_and_wait_for_what_they_must(model: str, stress: bool) -> None:
    step = ALL[model]()
    result = run(step, planned(step, "35%"), steps=2, stress=stress, link_bandwidth=1e9).wait()
    graph = capture(step).with_workspaces(dict(result.plan.workspaces))
    for timeline in result.timelines:
        _check_order(result.plan, timeline)
        _check_waits(graph, result.plan, timeline)
        _check_bytes(result.plan, timeline)
    assert result.step_seconds == tuple(timeline.seconds for timeline in result.timelines)


def _check_order(plan: SwapPlan, timeline: Timeline) -> None:
    compute, outs, ins = timeline.compute, timeline.swap_out, timeline.swap_in
    assert (len(compute), len(outs), len(ins)) == (len(plan.order), len(plan.swap_outs), len(plan.swap_ins))
    for spans in (compute, outs, ins):
        flat = spans.reshape(-1)
        assert bool((np.diff(flat) >= 0).all())
        assert bool((flat >= 0).all())
        assert bool((flat <= timeline.seconds).all())
    for (start, stop), copy in zip(outs, plan.swap_outs, strict=True):
        assert copy.ready < 0 or start >= compute[copy.ready, 1]
        assert stop >= start
    for (start, _), copy in zip(ins, plan.swap_ins, strict=True):
        assert bool((compute[: copy.start, 1] <= start).all())


def _check_waits(graph: Graph, plan: SwapPlan, timeline: Timeline) -> None:
    """Whatever uses memory begins when all copies from it and to it that come before are done."""
    compute, outs, ins = timeline.compute, timeline.swap_out, timeline.swap_in
    stays = {(stay.storage, stay.start): stay for stay in plan.residencies}
    ended = {(stay.storage, stay.stop): stay for stay in plan.residencies}
    arrivals = {(copy.storage, copy.start): number for number, copy in enumerate(plan.swap_ins)}
    waits = 0
    for stay in plan.residencies:
        arrival = arrivals.get((stay.storage, stay.start))
        used = [
            slot
            for slot in range(stay.start, stay.stop)
            if stay.storage in (*graph.reads[plan.order[slot]], *graph.writes[plan.order[slot]])
        ]
        if arrival is not None:
            assert all(compute[slot, 0] >= ins[arrival, 1] for slot in used)
            waits += bool(used)
    for (_, stop), out in zip(outs, plan.swap_outs, strict=True):
        old = ended[out.storage, out.release]
        for stay in stays.values():
            first, last = stay.offset, stay.offset + graph.storages[stay.storage].bytes
            apart = last <= old.offset or old.offset + graph.storages[old.storage].bytes <= first
            if apart or stay.start < old.stop or (stay.start == 0 and graph.storages[stay.storage].live_in):
                continue
            arrival = arrivals.get((stay.storage, stay.start))
            assert (compute[stay.start, 0] if arrival is None else ins[arrival, 0]) >= stop
            waits += 1
    assert waits


def _check_bytes(plan: SwapPlan, timeline: Timeline) -> None:
    assert bool((np.diff(timeline.sample_seconds) > 0).all())
    assert timeline.sample_seconds[0] == 0
    assert timeline.sample_seconds[-1] <= timeline.seconds
    assert bool((timeline.sample_bytes >= 0).all())
    assert 0 < timeline.peak_bytes <= plan.peak_bytes
    assert timeline.stall_seconds >= 0


def test_the_measured_peak_counts_addresses_and_not_what_the_plan_says() -> None:
    step = ALL["lstm"]()
    result = run(step, planned(step, "50%"), steps=1).wait()
    ends = [stay.offset for stay in result.plan.residencies]
    assert max(ends) < result.peak_bytes <= result.plan.peak_bytes
