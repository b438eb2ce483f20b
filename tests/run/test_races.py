"""What the executor gives to the streams orders every access to memory.

The lazy device runs the very calls of a step in several orders, and finds every pair of accesses to the same bytes
that streams and events leave unordered.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from random import Random

import pytest
import torch
from torch import Tensor

from planner.capture import capture
from planner.errors import StowageError
from planner.plan import SwapPlan, validate
from planner.profile import machine
from planner.run import Executor, same_bits
from planner.run.executor.executor import reordered
from planner.step import TrainStep
from planner.swap import plan_swaps
from tests.effort import combinations
from tests.run.lazy_device import SCHEDULES, LazyDevice
from tests.run.plans import resident_plan
from tests.run.steps import ALL, branches
from tests.run.test_random_order import backwards_order

STEPS = 2
SAMPLE = 6


@cache
def step_of(name: str) -> tuple[TrainStep, dict[str, Tensor]]:
    """A step, and what its state is after eager PyTorch has made it a few times."""
    step = ALL[name]()
    eager = step.clone()
    with torch.random.fork_rng():
        torch.manual_seed(1)
        for _ in range(STEPS):
            eager.eager()
    capture(step)
    return step, {key: value.clone() for key, value in eager.state().items()}


@cache
def plan_of(name: str, budget: str) -> SwapPlan:
    graph = capture(step_of(name)[0])
    plan = plan_swaps(graph, machine("laptop"), budget, time_limit=0, progress=False)
    assert validate(plan, graph) == []
    assert plan.swap_ins
    return plan


def run_on(device: LazyDevice, name: str, plan: SwapPlan, *, stress: bool = False) -> bool:
    """Make the steps; whether the state afterwards is eager's, bit for bit.

    With stress, ops also write all of the memory that the plan counts for them, their scratch memory among it.
    """
    step, expected = step_of(name)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        executor = Executor(capture(step), plan, device, stress=stress)
        executor.load(step.state())
        with device.watching():
            for _ in range(STEPS):
                executor.step(step.batch_leaves())
            state = executor.state()
            return all(same_bits(state[key], expected[key]) for key in expected)


def device_for(plan: SwapPlan, schedule: str | int, dropped_wait: int = 0) -> LazyDevice:
    return LazyDevice(plan.peak_bytes, plan.host_bytes, schedule, dropped_wait)


@pytest.mark.parametrize(("name", "schedule"), combinations(list(ALL), [*SCHEDULES, 1, 2]))
def test_in_every_order_that_events_allow_the_bits_are_eagers_and_nothing_races(name: str, schedule: str | int) -> None:
    plan = plan_of(name, "80%")
    device = device_for(plan, schedule)
    assert run_on(device, name, plan)
    assert device.races == []
    assert device.void_waits == 0


def without(wait: int, name: str, plan: SwapPlan, *, stress: bool = False) -> tuple[bool, bool]:
    """Whether leaving out a wait is a race, and whether it changes the numbers."""
    device, same = device_for(plan, "copies first", wait), False
    with suppress(StowageError, RuntimeError, IndexError):  # kernels may refuse what they find
        same = run_on(device, name, plan, stress=stress)
    return bool(device.races), not same


@pytest.mark.parametrize("name", ALL)
def test_no_wait_can_be_left_out(name: str) -> None:
    plan = plan_of(name, "80%")
    whole = device_for(plan, "compute first")
    assert run_on(whole, name, plan)
    per_step = whole.waits // STEPS
    for wait in Random(3).sample(range(1, per_step + 1), SAMPLE):
        races, wrong = without(wait, name, plan)
        if not races and not wrong:
            races, _ = without(wait, name, plan, stress=True)  # it may keep the budget though no kernel needs it
        assert races, f"without wait {wait} of {per_step} nothing races"


@pytest.mark.parametrize("name", ALL)
def test_what_the_plan_counts_for_an_op_is_free_when_the_op_begins(name: str) -> None:
    plan = plan_of(name, "80%")
    device = device_for(plan, "copies first")
    assert run_on(device, name, plan, stress=True)
    assert device.races == []


def test_a_device_whose_marks_cost_has_two_a_segment_and_ops_that_share_the_time_between() -> None:
    plan = plan_of("mlp", "80%")
    step, expected = step_of("mlp")
    device = LazyDevice(plan.peak_bytes, plan.host_bytes, marks_ops=False)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        executor = Executor(capture(step), plan, device)
        executor.load(step.state())
        with device.watching():
            records = [executor.step(step.batch_leaves()) for _ in range(STEPS)]
    assert all(same_bits(value, expected[key]) for key, value in executor.state().items())
    for record in records:
        compute = record.timeline.compute
        assert compute.shape == (len(plan.order), 2)
        assert (compute[:, 1] >= compute[:, 0]).all()
        assert (compute[1:, 0] >= compute[:-1, 1]).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_step_whose_random_ops_change_places_draws_eagers_numbers(schedule: str) -> None:
    step = branches()
    graph = capture(step)
    plan = resident_plan(graph, backwards_order(graph))
    assert reordered(graph, plan)
    eager, device = step.clone(), device_for(plan, schedule)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        eager.eager()
        torch.manual_seed(1)
        executor = Executor(graph, plan, device)
        executor.load(step.state())
        with device.watching():
            executor.step(step.batch_leaves())
    state, expected = executor.state(), eager.state()
    assert all(same_bits(state[key], expected[key]) for key in expected)
    assert device.races == []
