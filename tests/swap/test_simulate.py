"""Three streams, their queues, and a link that both directions share."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.graph import GraphBuilder, Kind
from planner.memory import step_peak
from planner.plan import Residency, SwapIn, SwapOut
from planner.swap import plan_swaps, simulate
from tests.effort import EFFORT
from tests.plan import again_by_hand
from tests.plan.changing import replace
from tests.swap.event_simulator import step_seconds
from tests.swap.random_graphs import ALIGNMENT, least_budget, machine, steps

MB = 1_000_000


def three_ops():
    """`a` is made, then `b`, then both are read; 1 MB each."""
    builder = GraphBuilder("three ops")
    a, b, c = (builder.add_tensor(n, builder.add_storage(n, MB, Kind.ACTIVATION), (MB // 4,)) for n in "abc")
    builder.add_op("make a", "aten.op.default", [], [a])
    builder.add_op("make b", "aten.op.default", [], [b])
    builder.add_op("read both", "aten.op.default", [a, b], [c])
    return builder.build([c])


def timeline(outs, ins, link=(1e9, 2e9, 0.0), seconds=(0.01, 0.02, 0.03)):
    graph, device = three_ops(), machine(*link)
    plan = replace(plan_swaps(graph, device, "100%", seconds=list(seconds)), swap_outs=tuple(outs), swap_ins=tuple(ins))
    return simulate(plan, graph, device, np.array(seconds))


def test_without_copies_ops_follow_each_other():
    found = timeline([], [])
    assert found.compute.tolist() == [
        [0, 0.01],
        [0.01, pytest.approx(0.03)],
        [pytest.approx(0.03), pytest.approx(0.06)],
    ]
    assert found.seconds == pytest.approx(0.06)
    assert found.stall_seconds == pytest.approx(0)


def test_a_copy_out_waits_for_its_op_and_holds_up_the_slot_that_takes_its_memory():
    found = timeline([SwapOut(0, ready=0, release=1)], [])
    assert found.swap_out.tolist() == [[0.01, pytest.approx(0.011)]]
    assert found.compute[1, 0] == pytest.approx(0.011)
    assert found.stall_seconds == pytest.approx(0.001)


def test_a_copy_in_waits_for_the_slots_before_its_own_and_holds_up_its_use():
    found = timeline([SwapOut(0, ready=0, release=1)], [SwapIn(0, start=2, use=2)])
    assert found.swap_in[0, 0] == found.compute[1, 1]
    assert found.compute[2, 0] == found.swap_in[0, 1]


def test_a_copy_in_waits_for_the_copies_out_that_free_its_memory():
    found = timeline([SwapOut(0, ready=0, release=1)], [SwapIn(0, start=1, use=2)])
    assert found.swap_in[0].tolist() == [pytest.approx(0.011), pytest.approx(0.012)]


def test_the_step_ends_when_all_queues_are_empty():
    found = timeline([SwapOut(2, ready=2, release=3)], [])
    assert found.seconds == pytest.approx(0.061)


def test_both_directions_share_the_duplex_bandwidth():
    both = [SwapOut(0, ready=0, release=3)], [SwapIn(1, start=1, use=3)]
    assert timeline(*both, link=(1e9, 2e9, 0.0)).swap_in[0].tolist() == [0.01, pytest.approx(0.011)]
    found = timeline(*both, link=(1e9, 1e9, 0.0))
    assert found.swap_in[0].tolist() == [0.01, pytest.approx(0.012)]
    assert found.swap_out[0].tolist() == [0.01, pytest.approx(0.012)]


def test_every_copy_takes_the_latency_besides():
    found = timeline([SwapOut(0, ready=0, release=3), SwapOut(1, ready=1, release=3)], [], link=(1e9, 2e9, 0.004))
    assert (found.swap_out[:, 1] - found.swap_out[:, 0]).tolist() == [pytest.approx(0.005)] * 2


def test_queues_that_wait_for_each_other_are_an_error():
    with pytest.raises(ValueError, match="wait for each other"):
        timeline([], [SwapIn(0, start=2, use=2), SwapIn(1, start=1, use=1)])


def test_bytes_in_use_are_those_of_the_residencies_in_each_slot():
    graph, device = three_ops(), machine()
    plan = plan_swaps(graph, device, "100%", seconds=[0.01, 0.02, 0.03])
    found = simulate(plan, graph, device, np.array([0.01, 0.02, 0.03]))
    assert found.sample_bytes.tolist() == [MB, 2 * MB, 3 * MB, MB]
    assert found.sample_seconds.tolist() == [*found.compute[:, 0], found.seconds]
    early = replace(plan, residencies=(*plan.residencies, Residency(0, 2, 3, 0)))
    assert simulate(early, graph, device, np.zeros(3)).peak_bytes == 4 * MB


@given(steps(6), st.sampled_from([1.0, 1.3, 2.0, 3.0]), st.floats(0.0, 1.0))
@settings(max_examples=6 * EFFORT, deadline=None)
def test_it_agrees_with_a_plain_account_of_the_streams(step, duplex, share):
    graph, seconds = step
    device = machine(duplex=duplex * 1e9)
    enough = max(least_budget(graph), int(share * step_peak(graph, ALIGNMENT)))
    plan = plan_swaps(graph, device, enough, seconds=seconds)
    expected = step_seconds(plan, graph, device.host_link, seconds)
    assert plan.predicted.seconds == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_an_op_that_runs_again_takes_its_time_again():
    graph, plan = again_by_hand.step(), again_by_hand.plan()
    found = simulate(plan, graph, machine(1e9, 2e9, 0.0), np.array([1.0, 2.0, 4.0, 8.0, 16.0]))
    assert (found.compute[:, 1] - found.compute[:, 0]).tolist() == [1, 2, 4, 1, 2, 8, 16]
    assert found.seconds == 34
    assert found.sample_bytes.tolist() == [256, 256, 320, 320, 192, 256, 128, 128]
