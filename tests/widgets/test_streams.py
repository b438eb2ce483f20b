"""Streams and stalls against the timeline they come from."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.widgets.steps import MIB, by_hand, plan_by_hand, real, real_plan
from widgets.figures._join_short_spans import joined
from widgets.info import Copy, Group, Stall, get_streams

SPEC = "mlp:optimizer=adam"


def test_the_plan_by_hand() -> None:
    graph = by_hand()
    info = get_streams(graph, plan_by_hand(graph))
    assert info.op_names == ("a/mm", "b/mm", "sum", "b/gradient", "b/update")
    assert [phase.value for phase in info.phases] == ["forward"] * 3 + ["backward", "optimizer"]
    assert info.out == (Copy(3, "a/mm", Group.ACTIVATION, 8 * MIB, 1, 2.5),)
    assert info.into == (Copy(3, "a/mm", Group.ACTIVATION, 8 * MIB, 3.5, 5),)
    assert info.stalls == (
        Stall(2, 2.5, "sum", "a/mm to leave", 2, 3), Stall(3.5, 5, "b/gradient", "a/mm to arrive", 3, 3),
    )  # fmt: skip
    assert info.summary == (
        "The step is predicted to take 7.00 s; compute waits 2 times, 2.00 s together; "
        "the link is busy 21 % of it outwards and 21 % inwards."
    )


@pytest.mark.parametrize("budget", ["45%", "60%", "100%"])
def test_work_and_stalls_fill_the_step(budget: str) -> None:
    graph, plan = real(SPEC)[1], real_plan(SPEC, budget)
    info = get_streams(graph, plan)
    work = float((info.compute[:, 1] - info.compute[:, 0]).sum())
    assert work + info.stall_seconds == pytest.approx(plan.predicted.seconds)
    assert info.stall_seconds == pytest.approx(plan.predicted.stall_seconds)
    for stall in info.stalls:
        assert stall.cause
        assert not ((info.compute[:, 0] < stall.stop) & (stall.start < info.compute[:, 1])).any()


def test_copies_are_the_plans_in_queue_order() -> None:
    graph, plan = real(SPEC)[1], real_plan(SPEC, "45%")
    info = get_streams(graph, plan)
    assert [copy.storage for copy in info.out] == [swap.storage for swap in plan.swap_outs]
    assert [copy.storage for copy in info.into] == [swap.storage for swap in plan.swap_ins]
    assert [[copy.start, copy.stop] for copy in info.into] == plan.predicted.swap_in.tolist()
    assert all(copy.bytes == graph.storages[copy.storage].bytes for copy in (*info.out, *info.into))
    assert info.out


def test_what_fits_moves_nothing_and_never_waits() -> None:
    graph, plan = real(SPEC)[1], real_plan(SPEC, "100%")
    info = get_streams(graph, plan)
    assert info.out == info.into == info.stalls == ()
    assert "nothing is swapped and compute never waits" in info.summary


def test_a_measured_timeline_is_called_measured() -> None:
    graph = by_hand()
    plan = plan_by_hand(graph)
    other = plan_by_hand(graph).predicted
    assert get_streams(graph, plan, other).measured
    assert not get_streams(graph, plan).measured
    assert get_streams(graph, plan, other).summary.startswith("The step took 7.00 s")


@given(st.lists(st.tuples(st.floats(0, 3), st.floats(0, 8)), max_size=80))
def test_joined_spans_hide_no_gap_that_can_be_seen(gaps_and_lengths: list[tuple[float, float]]) -> None:
    spans, now = [], 0.0
    for gap, length in gaps_and_lengths:
        start = now + gap
        now = start + length
        spans.append((start, now))
    given_spans = np.array(spans, np.float64).reshape(-1, 2)
    result = joined(given_spans, 1.0)
    assert result.members.sum() == len(spans)
    for start, stop, first, members in zip(*result, strict=True):
        ours = given_spans[first : first + members]
        assert (start, stop) == (ours[0, 0], ours[-1, 1])
        assert (ours[1:, 0] - ours[:-1, 1] < 1.0).all()
        assert members == 1 or (ours[:, 1] - ours[:, 0] < 2.5).all()
