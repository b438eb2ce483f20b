"""The time of a partitioned step: closed forms, limits, and what each setting changes."""

from dataclasses import replace

import numpy as np
import pytest

from planner.capture import capture
from planner.errors import StowageError
from planner.graph import GraphBuilder, Kind
from planner.machine import Device, Link, Machine, op_seconds
from planner.partition import coarsen, recurse
from planner.partition.baselines import baselines
from planner.partition.step_time import BUCKET_BYTES, local_work, step_time, transfers
from planner.profile import machine
from planner.zoo import load
from tests.partition.residual import residual

DEVICE = Device("round", "cuda", 10**9, 1e9, {"float32": 1e12}, {}, launch_seconds=1e-6)
FAR = Link(1e300, 2e300)
MODELS = ["mlp:batch=64,optimizer=adam", "gpt:layers=2", "rnn:layers=2,steps=5", "residual"]


def machine_of(devices, link):
    return Machine("round", (DEVICE,) * devices, Link(1e9, 2e9), 10**9, peer_link=link)


@pytest.fixture(scope="module", params=MODELS)
def found(request):
    step = residual() if request.param == "residual" else load(request.param)
    return recurse(coarsen(capture(step)), 8)


def product_of(rows, middle, columns):
    """One matrix product."""
    build = GraphBuilder("product")
    shapes = {"a": (rows, middle), "b": (middle, columns), "c": (rows, columns)}
    kinds = {"a": Kind.INPUT, "b": Kind.PARAMETER, "c": Kind.ACTIVATION}
    a, b, c = (
        build.add_tensor(name, build.add_storage(name, 4 * shape[0] * shape[1], kinds[name]), shape)
        for name, shape in shapes.items()
    )
    moved = 4 * sum(shape[0] * shape[1] for shape in shapes.values())
    build.add_op(
        "mm", "aten.mm.default", (a, b), (c,), attributes="$0, $1", flops=2 * rows * middle * columns, moved=moved
    )
    return build.build()


def test_a_matrix_product_by_hand():
    # c and a large a are split by rows; the small b is gathered on both workers
    partition = recurse(coarsen(product_of(1000, 64, 64)), 2)
    link = Link(1e8, 2e8, 1e-3)
    time = step_time(partition, machine_of(2, link))
    gathered = 64 * 64 * 4  # bytes that both together receive
    communication = 1e-6 + 1e-3 + gathered / 2 / 1e8
    compute = 1e-6 + max(1000 * 64 * 64 / 1e12, 4 * (64_000 + 64 * 64) / 1e9)
    assert time.bytes_per_level == (gathered,)
    assert time.calls == 1
    assert time.communication_seconds == pytest.approx(communication)
    assert time.compute_seconds == pytest.approx(compute)
    assert time.seconds == time.seconds_without_overlap == pytest.approx(communication + compute)
    assert time.op_ends.tolist() == [time.seconds]


def test_bytes_are_those_that_the_search_counts(found):
    for other in (found, *(baselines(found.coarse, 8).values())):
        counted = step_time(other, machine("k80x8")).bytes_per_level
        assert counted == pytest.approx([level.bytes_moved for level in other.levels], rel=1e-9)


def test_the_step_takes_at_least_either_lane_and_at_most_both(found):
    for name in ("k80x8", "h100x8", "h100x8:hosts=2"):
        time = step_time(found, machine(name))
        both = time.compute_seconds + time.communication_seconds
        assert time.seconds_without_overlap == pytest.approx(both)
        assert max(time.compute_seconds, time.communication_seconds) <= time.seconds * (1 + 1e-9)
        assert time.seconds <= both * (1 + 1e-9)
        assert time.op_ends[-1] <= time.seconds
        assert (np.diff(time.op_ends) > 0).all()


def test_an_endless_link_leaves_compute_and_launches(found):
    time = step_time(found, machine_of(8, FAR))
    assert time.communication_seconds == pytest.approx(time.calls * DEVICE.launch_seconds)
    work = local_work(found)
    compute = op_seconds(found.coarse.graph, machine_of(8, FAR), work.flops, work.traffic)
    assert time.compute_seconds == pytest.approx(float(compute.sum()))


def test_one_worker_takes_as_long_as_a_machine_with_one_device(found):
    alone = recurse(found.coarse, 1)
    time = step_time(alone, machine("k80x8"))
    assert time.seconds == pytest.approx(float(op_seconds(found.coarse.graph, machine("k80x8")).sum()))
    assert (time.calls, time.bytes_per_level, time.communication_seconds) == (0, (), 0)


def test_eight_workers_do_at_least_an_eighth_each_and_at_most_all(found):
    work, graph = local_work(found), found.coarse.graph
    for op, flops, traffic in zip(graph.ops, work.flops, work.traffic, strict=True):
        assert op.flops / 8 <= flops * (1 + 1e-9) <= op.flops * (1 + 1e-6)
        assert op.bytes / 8 <= traffic * (1 + 1e-9) <= op.bytes * (1 + 1e-6)
    assert sum(work.flops) < 0.2 * sum(op.flops for op in graph.ops)


def test_slow_networks_between_hosts_cost_time():
    coarse = coarsen(capture(load("gpt:layers=2")))
    near, far = recurse(coarse, 8), recurse(coarse, 16)
    one, two = step_time(near, machine("h100x8")), step_time(far, machine("h100x8:hosts=2"))
    assert len(two.bytes_per_level) == 4
    assert two.communication_seconds > one.communication_seconds


def test_buckets_save_calls_and_move_the_same_bytes(found):
    each = step_time(found, machine("h100x8"), bucket_bytes=None)
    whole = step_time(found, machine("h100x8"), bucket_bytes=1 << 60)
    usual = step_time(found, machine("h100x8"))
    assert whole.calls <= usual.calls <= each.calls
    assert usual.seconds_without_overlap <= each.seconds_without_overlap * (1 + 1e-9)
    for other in (whole, usual):
        assert other.bytes_per_level == pytest.approx(each.bytes_per_level)
        assert other.compute_seconds == each.compute_seconds
    assert step_time(found, machine("h100x8"), BUCKET_BYTES).calls == usual.calls


def test_gradients_of_many_layers_are_reduced_together():
    partition = recurse(coarsen(capture(load("mlp:layers=8,batch=4096,hidden=64"))), 2)
    each = step_time(partition, machine("h100x8"), bucket_bytes=None)
    together = step_time(partition, machine("h100x8"), bucket_bytes=1 << 60)
    assert together.calls <= each.calls - 7


def test_ops_of_a_phase_share_what_they_fetch():
    partition = recurse(coarsen(capture(load("rnn:layers=1,steps=6,hidden=64,batch=4096"))), 2)
    fetched = {}
    for op, moved in zip(partition.coarse.graph.ops, transfers(partition), strict=True):
        for _, key, parts in moved.fetches:
            fetched.setdefault(key, []).append((op.phase, parts))
    shared = [uses for uses in fetched.values() if len(uses) > 1]
    assert shared
    assert all(len(set(uses)) == 1 for uses in shared)


def test_latency_counts_by_call():
    partition = recurse(coarsen(capture(load("mlp"))), 8)
    slow, fast = (step_time(partition, machine_of(8, Link(1e300, 2e300, latency))) for latency in (1e-3, 0.0))
    more = slow.communication_seconds - fast.communication_seconds
    assert slow.calls * 1e-3 <= more * (1 + 1e-9)  # at two workers a level: one round each, two of an all-reduce
    assert more <= 2 * slow.calls * 1e-3 * (1 + 1e-9)


@pytest.mark.parametrize(
    ("name", "bucket", "says"),
    [("v100-16gb", None, "too few for 8 workers"), ("k80x8", -1, "bucket_bytes must be 0 or more")],
)
def test_what_makes_no_sense_is_refused(name, bucket, says):
    partition = recurse(coarsen(product_of(64, 64, 64)), 8)
    with pytest.raises(StowageError, match=says):
        step_time(partition, machine(name), bucket)


def test_a_faster_link_makes_no_step_slower_without_overlap(found):
    k80 = machine("k80x8")
    assert k80.peer_link is not None
    faster = replace(k80, peer_link=Link(2 * k80.peer_link.bandwidth, 2 * k80.peer_link.duplex_bandwidth))
    assert step_time(found, faster).seconds_without_overlap < step_time(found, k80).seconds_without_overlap
