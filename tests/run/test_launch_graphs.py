"""Calls that are launched together as graphs give eager's bits, and only calls that are the same in every step are."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

from planner.capture import capture
from planner.errors import StowageError
from planner.graph import Graph
from planner.plan import SwapPlan
from planner.run import CpuDevice, Executor, same_bits
from planner.run.executor.launch_graphs import LaunchGraphs
from planner.step import SGD, TrainStep, tensor_leaves
from tests.effort import combinations
from tests.run.kernel_graph import KernelGraph
from tests.run.lazy_device import SCHEDULES
from tests.run.lazy_driver import LazyAccelerator
from tests.run.plans import resident_plan
from tests.run.steps import ALL, branches, convolutions, normalisations, planned
from tests.run.test_checkpointed_dropout import Blocks, of_blocks

STEPS = 4


def scheduled() -> TrainStep:
    """The learning rate falls when graphs are recorded already."""
    step = convolutions()
    return TrainStep(
        step.model, step.batch, loss=step.loss, optimizer=SGD(lr=lambda number: 0.1 if number < 2 else 0.01)
    )


MAKERS: dict[str, Callable[[], TrainStep]] = {
    **ALL, "branches": branches, "normalisations": normalisations, "scheduled": scheduled,
    "checkpoints": lambda: of_blocks(Blocks),
}  # fmt: skip


@cache
def eager_of(name: str) -> tuple[TrainStep, list[Any], dict[str, Tensor]]:
    """A step, other batches for it, and what its state is after eager PyTorch has made a step with each."""
    step = MAKERS[name]()
    eager = step.clone()
    batch = step.materialize().batch
    with torch.random.fork_rng():
        torch.manual_seed(1)
        batches = [torch.utils._pytree.tree_map(_other, batch) for _ in range(STEPS)]
        torch.manual_seed(1)
        for other in batches:
            eager.eager(other)
    return step, batches, {key: value.clone() for key, value in eager.state().items()}


def _other(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    shuffled = value.flatten()[torch.randperm(value.numel())].reshape(value.shape)
    return shuffled if value.dtype == torch.int64 else 0.9 * shuffled


@cache
def plan_of(name: str) -> SwapPlan:
    return planned(eager_of(name)[0], "80%")


def made(device: LazyAccelerator, name: str, plan: SwapPlan, *, stress: bool = False) -> tuple[list[str], Executor]:
    """Make the steps; what differs from eager PyTorch's, and the executor."""
    step, batches, expected = eager_of(name)
    with torch.random.fork_rng():
        executor = Executor(capture(step), plan, device, graphs=True, stress=stress)
        with device.engine.watching():
            executor.load(step.state())
            torch.manual_seed(1)
            for batch in batches:
                executor.step(tensor_leaves(batch))
            state = executor.state()
            return [key for key in expected if not same_bits(state[key], expected[key])], executor


def device_for(plan: SwapPlan, schedule: str | int = "compute first") -> LazyAccelerator:
    return LazyAccelerator(plan.peak_bytes, plan.host_bytes, schedule)


@pytest.mark.parametrize(("name", "schedule"), combinations(list(MAKERS), [*SCHEDULES, 1]))
def test_graphs_give_eagers_bits_in_every_order_that_events_allow(name: str, schedule: str | int) -> None:
    device = device_for(plan_of(name), schedule)
    different, executor = made(device, name, plan_of(name))
    assert different == []
    assert device.engine.races == []
    assert device.driver.graphs
    assert " calls in " in executor.launched_together
    device.close()


def test_poison_between_the_graphs_changes_nothing() -> None:
    device = device_for(plan_of("convolutions"), "copies first")
    assert made(device, "convolutions", plan_of("convolutions"), stress=True)[0] == []
    assert device.engine.races == []


def test_a_step_that_is_the_same_every_time_is_one_graph() -> None:
    plan = resident_plan(capture(eager_of("lstm")[0]))
    device = device_for(plan)
    different, executor = made(device, "lstm", plan)
    assert different == []
    assert executor.launched_together == f"{len(plan.order)} of {len(plan.order)} calls in 1 graph"


def test_what_differs_from_step_to_step_is_called_on_its_own() -> None:
    step = eager_of("branches")[0]
    graph: Graph = capture(step)
    launched = set[int]()
    device = device_for(plan_of("branches"))
    _, executor = made(device, "branches", plan_of("branches"))
    graphs = executor._graphs
    assert graphs is not None
    for slot, recorded in graphs._recorded.items():
        launched.update(plan_of("branches").order[slot : slot + recorded.calls])
    drawing = {op.id for op in graph.ops if op.random}
    changing = {op.id for op in graph.ops if any("lr" in one for one in executor._binder.scalar_names(op.id))}
    assert drawing
    assert changing
    assert launched
    assert not launched & (drawing | changing)


def test_what_makes_the_host_wait_in_the_first_step_is_called_on_its_own() -> None:
    plan = plan_of("convolutions")
    device = device_for(plan)
    seen = 0

    def waits(issue: Callable[[], None]) -> bool:
        nonlocal seen
        issue()
        seen += 1
        return True

    device.driver.host_waits = waits  # type: ignore[method-assign]
    different, executor = made(device, "convolutions", plan)
    assert different == []
    assert seen > 50
    assert executor.launched_together.startswith("0 of ")
    assert device.driver.graphs == []


def test_an_operator_of_the_users_own_is_called_on_its_own() -> None:
    calls: list[int] = []

    @torch.library.custom_op("stowage_tests::twice_noted", mutates_args=())
    def twice_noted(x: Tensor) -> Tensor:
        calls.append(1)
        return 2 * x

    twice_noted.register_fake(torch.empty_like)
    twice_noted.register_autograd(lambda _, gradient: 2 * gradient)

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(3)))

        def forward(self, x: Tensor) -> Tensor:
            return self.layers(torch.ops.stowage_tests.twice_noted(self.layers(x)))

    torch.manual_seed(0)
    step = TrainStep(Model(), torch.randn(4, 8), loss=lambda model, x: model(x).square().mean(), optimizer=SGD(lr=0.1))
    plan = resident_plan(capture(step))
    device = device_for(plan)
    executor = Executor(capture(step), plan, device, graphs=True)
    executor.load(step.state())
    for _ in range(3):
        executor.step(step.batch_leaves())
    assert len(device.driver.graphs) == 2
    assert len(calls) >= 3


def records_numbers_that_change(device: LazyAccelerator, patch: pytest.MonkeyPatch) -> None:
    """The learning rate of the second step is used for ever."""
    patch.setattr(LaunchGraphs, "changed", lambda *_: None)


def loses_a_kernel(device: LazyAccelerator, patch: pytest.MonkeyPatch) -> None:
    """A graph has all kernels but its last."""
    record = device.driver.graph

    def graph(stream: Any, issue: Callable[[], None]) -> Callable[[], None]:
        replay = record(stream, issue)
        device.driver.graphs[-1]._kernels.pop()
        return replay

    device.driver.graph = graph  # type: ignore[method-assign]


def does_what_it_records(device: LazyAccelerator, patch: pytest.MonkeyPatch) -> None:
    """Kernels are recorded, and run as well."""
    record = device.driver.graph

    def graph(stream: Any, issue: Callable[[], None]) -> Callable[[], None]:
        issue()
        device.synchronize()
        return record(stream, issue)

    device.driver.graph = graph  # type: ignore[method-assign]


def launches_twice(device: LazyAccelerator, patch: pytest.MonkeyPatch) -> None:
    """A graph is launched a second time at once."""
    launches = LaunchGraphs.launches

    def twice(graphs: LaunchGraphs, segment: Any) -> Any:
        for slot, launch in launches(graphs, segment):
            yield slot, launch
            if slot in graphs._recorded:
                yield slot, launch

    patch.setattr(LaunchGraphs, "launches", twice)


def launches_the_wrong_one(device: LazyAccelerator, patch: pytest.MonkeyPatch) -> None:
    """All graphs of a step are its first."""
    record, first = device.driver.graph, list[Callable[[], None]]()

    def graph(stream: Any, issue: Callable[[], None]) -> Callable[[], None]:
        first.append(record(stream, issue))
        return first[0]

    device.driver.graph = graph  # type: ignore[method-assign]


def launches_in_the_callers_stream(device: LazyAccelerator, patch: pytest.MonkeyPatch) -> None:
    """A graph is launched in no stream."""
    launch = device.compute.launch

    def launched(function: Any, args: Any, kwargs: Any) -> None:
        if isinstance(getattr(function, "__self__", None), KernelGraph):
            function()
        else:
            launch(function, args, kwargs)

    device.compute.launch = launched  # type: ignore[method-assign]


FAULTS: dict[str, Callable[[LazyAccelerator, pytest.MonkeyPatch], None]] = {
    "numbers that change are recorded": records_numbers_that_change,
    "a kernel is lost": loses_a_kernel,
    "what is recorded is done": does_what_it_records,
    "a graph is launched twice": launches_twice,
    "the wrong graph is launched": launches_the_wrong_one,
    "graphs are launched in no stream": launches_in_the_callers_stream,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_graphs_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "branches" if "numbers" in fault else "convolutions"
    device = device_for(plan_of(name), "copies first")
    FAULTS[fault](device, monkeypatch)
    different = ["an op refuses what it finds"]
    with suppress(StowageError, IndexError):  # kernels may refuse what they find
        different, _ = made(device, name, plan_of(name))
    assert different or device.engine.races


@pytest.mark.parametrize("asks", [torch.Tensor.item, torch.Tensor.nonzero, torch.Tensor.bernoulli_])
def test_where_something_cannot_be_recorded_every_call_is_made_on_its_own(asks: Callable[[Tensor], Any]) -> None:
    plan = plan_of("convolutions")
    device = device_for(plan)
    call = device.driver.call

    def asking(stream: Any, function: Any, args: Any, kwargs: Any) -> None:
        call(stream, function, args, kwargs)
        if device.engine.recording is not None:
            call(stream, asks, (torch.ones(1),), {})

    device.driver.call = asking  # type: ignore[method-assign]
    different, executor = made(device, "convolutions", plan)
    assert different == []
    assert "cannot be recorded (CUDA error: operation not permitted" in executor.launched_together
    assert executor.launched_together.startswith("none, as aten.")


def test_graphs_are_recorded_once_for_all_loads() -> None:
    step, batches, _ = eager_of("convolutions")
    plan = plan_of("convolutions")
    device = device_for(plan)
    executor = Executor(capture(step), plan, device, graphs=True)
    for _ in range(2):
        executor.load(step.state())
        for batch in batches[:2]:
            executor.step(tensor_leaves(batch))
    assert len(device.driver.graphs) == len({id(graph) for graph in device.driver.graphs})
    assert f"in {len(device.driver.graphs)} graphs" in executor.launched_together


def test_a_device_without_graphs_makes_every_call_on_its_own() -> None:
    step, _, _ = eager_of("mlp")
    plan = resident_plan(capture(step))
    device = CpuDevice(plan.peak_bytes, plan.host_bytes)
    executor = Executor(capture(step), plan, device, graphs=True)
    executor.load(step.state())
    for _ in range(2):
        executor.step(step.batch_leaves())
    assert executor.launched_together == ""
    device.close()
