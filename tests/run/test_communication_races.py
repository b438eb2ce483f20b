"""Collectives run beside the ops, and every access that theirs could meet waits for them.

One worker of a partition runs on the lazy device, with peers who send what it sends itself. Whatever a collective
exchanges goes through one wire, so that the order of collectives is seen too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import accumulate, pairwise

import pytest
import torch
from torch import Tensor

from planner.capture import capture
from planner.errors import StowageError
from planner.graph import Graph
from planner.machine import Link, is_collective
from planner.partition import BASELINES, PartitionPlan, coarsen, local_value, worker_graph
from planner.plan import COMMUNICATION, SwapPlan, device_queues, validate
from planner.profile import machine
from planner.program import communicate_by
from planner.run import CpuDevice, Executor, same_bits
from planner.swap import plan_swaps
from planner.zoo import load
from tests.run import lazy_device
from tests.run.lazy_device import SCHEDULES, LazyDevice

STEP = "mlp:layers=2,hidden=24,batch=8,classes=4,optimizer=adam"
STEPS = 2


class Echo:
    """Peers who send what this worker sends."""

    def __init__(self, wire: Tensor) -> None:
        self.wire = wire

    def all_reduce(self, result: Tensor, x: Tensor, _reduction: str, workers: int, _group: str) -> None:
        self.wire.add_(1)
        result.copy_(x).mul_(workers)

    def all_gather(self, result: Tensor, x: Tensor, counts: Sequence[int], _group: str) -> None:
        self.wire.add_(1)
        for begin, end in pairwise(accumulate(counts, initial=0)):
            result[begin:end].copy_(x[: end - begin])

    def reduce_scatter(self, result: Tensor, x: Tensor, counts: Sequence[int], rank: int, _group: str) -> None:
        self.wire.add_(1)
        begin = sum(counts[:rank])
        result.copy_(x[begin : begin + counts[rank]]).mul_(len(counts))

    def all_to_all(self, result: Tensor, x: Tensor, _send: Sequence[int], recv: Sequence[int], _group: str) -> None:
        self.wire.add_(1)
        result.copy_(x[: sum(recv)])


@cache
def worker(partition: str) -> tuple[Graph, tuple[dict[str, Tensor], list[Tensor]]]:
    """The graph of a worker, and its state and batch."""
    step = load(STEP)
    graph = capture(step, progress=False)
    plan = PartitionPlan.of(BASELINES[partition](coarsen(graph), 2))
    state = {key: local_value(step.state()[key].detach(), plan, tensor, 0) for tensor, key in graph.program.state}
    leaves = zip(graph.program.batch, step.batch_leaves(), strict=True)
    return worker_graph(plan, graph, 0), (state, [local_value(leaf, plan, tensor, 0) for tensor, leaf in leaves])


@cache
def plan_of(partition: str, budget: str) -> SwapPlan:
    graph, _ = worker(partition)
    linked = replace(machine("laptop"), peer_link=Link(1e9, 2e9, 5e-5))
    plan = plan_swaps(graph, linked, budget, time_limit=0, progress=False)
    assert validate(plan, graph) == []
    assert plan.communications
    return plan


def run_on(device: LazyDevice, partition: str, plan: SwapPlan, *, stress: bool = False) -> list[Tensor]:
    """Make the steps; the state afterwards."""
    graph, (state, batch) = worker(partition)
    executor = Executor(graph, plan, device, stress=stress)
    executor.load(state)
    with device.watching():
        for _ in range(STEPS):
            executor.step(batch)
        return [value.clone() for _, value in sorted(executor.state().items())]


@cache
def expected(partition: str, budget: str) -> list[Tensor]:
    """The state where compute makes every collective itself."""
    plan = plan_of(partition, budget)
    queues = device_queues(plan.order, plan.swap_outs, plan.swap_ins)
    spans = {lane: spans for lane, spans in plan.predicted.spans.items() if lane != COMMUNICATION}
    alone = replace(plan, queues=queues, predicted=replace(plan.predicted, spans=spans))
    return run_on(LazyDevice(plan.peak_bytes, plan.host_bytes), partition, alone)


@pytest.fixture
def wire() -> Iterator[Tensor]:
    wire = torch.zeros(64, dtype=torch.uint8)
    before = communicate_by(Echo(wire))
    yield wire
    communicate_by(before)


CASES = [("data-parallel", "150%"), ("data-parallel", "70%"), ("spartan", "150%"), ("all-row", "60%")]


@pytest.mark.parametrize("schedule", [*SCHEDULES, 1, 2])
@pytest.mark.parametrize(("partition", "budget"), CASES)
def test_the_bits_are_those_without_overlap_and_nothing_races(
    partition: str, budget: str, schedule: str | int, wire: Tensor
) -> None:
    plan = plan_of(partition, budget)
    for stress in False, True:
        device = LazyDevice(plan.peak_bytes, plan.host_bytes, schedule, beside=[wire])
        found = run_on(device, partition, plan, stress=stress)
        assert all(same_bits(a, b) for a, b in zip(found, expected(partition, budget), strict=True))
        assert device.races == []
        assert device.void_waits == 0


def test_compute_runs_ahead_of_a_collective_that_is_under_way(wire: Tensor) -> None:
    plan = plan_of("data-parallel", "150%")
    device = LazyDevice(plan.peak_bytes, plan.host_bytes, "compute first", beside=[wire])
    run_on(device, "data-parallel", plan)
    calls, ahead = 0, []
    for stream in device.launched:
        if stream == lazy_device.COMMUNICATION:
            ahead.append(calls - plan.communications[len(ahead)].start - 1)
        calls += stream == lazy_device.COMPUTE
    assert len(ahead) == len(plan.communications)
    assert max(ahead) >= 3  # ops after it, while it waits


@pytest.mark.parametrize(("partition", "budget"), CASES)
def test_no_wait_for_a_collective_nor_by_one_can_be_left_out(partition: str, budget: str, wire: Tensor) -> None:
    plan = plan_of(partition, budget)

    def without(wait: int, *, stress: bool) -> LazyDevice:
        device = LazyDevice(plan.peak_bytes, plan.host_bytes, "copies first", wait, beside=[wire])
        with suppress(StowageError, RuntimeError, IndexError):  # kernels may refuse what they find
            run_on(device, partition, plan, stress=stress)
        return device

    waits = [*without(0, stress=False).communication_waits]  # of the last step
    assert waits
    for wait in waits:
        raced = without(wait, stress=False).races or without(wait, stress=True).races
        assert raced, f"without wait {wait} nothing races"


@pytest.mark.parametrize("partition", ["data-parallel", "spartan"])
def test_an_exchange_that_fails_ends_the_step_with_the_name_of_its_op(partition: str, wire: Tensor) -> None:
    class Lost(Echo):
        def _lose(self, *_: object) -> None:
            raise ConnectionError("worker 1 is gone")

        all_reduce = all_gather = reduce_scatter = all_to_all = _lose

    graph, (state, batch) = worker(partition)
    plan = plan_of(partition, "150%")
    device = CpuDevice(plan.peak_bytes, plan.host_bytes)
    try:
        executor = Executor(graph, plan, device)
        executor.load(state)
        executor.step(batch)
        executor.step(batch)
        before = communicate_by(Lost(wire))
        with pytest.raises(StowageError, match=r"^stowage\.\w+\.default .* of step 3 \(worker 1 is gone\)") as caught:
            executor.step(batch)
        assert isinstance(caught.value.__cause__, ConnectionError)
    finally:
        device.close()
        communicate_by(before)


def test_a_measured_step_has_a_span_for_every_collective_beside_its_ops(wire: Tensor) -> None:
    graph, (state, batch) = worker("data-parallel")
    plan = plan_of("data-parallel", "150%")
    device = CpuDevice(plan.peak_bytes, plan.host_bytes)
    try:
        executor = Executor(graph, plan, device)
        executor.load(state)
        for _ in range(STEPS):
            timeline = executor.step(batch).timeline
            spans = timeline.communication
            assert spans.shape == (len(plan.communications), 2)
            assert (spans[1:, 0] >= spans[:-1, 1]).all()
            assert timeline.peak_bytes <= plan.peak_bytes
            for each, (start, _) in zip(plan.communications, spans, strict=True):
                assert start >= timeline.compute[each.start - 1, 1] if each.start else start >= 0
    finally:
        device.close()


def test_collectives_on_compute_keep_their_place_among_those_beside_it(wire: Tensor) -> None:
    graph, _ = worker("data-parallel")
    plan = plan_of("data-parallel", "150%")
    beside = {each.start for each in plan.communications}
    alone = [slot for slot, op in enumerate(plan.order) if is_collective(graph.ops[op]) and slot not in beside]
    first, last = min(beside), max(beside)
    assert any(slot < first for slot in alone) or any(first < slot < last for slot in alone)
    assert all(each.use <= slot for each in plan.communications for slot in alone if slot > each.start)
