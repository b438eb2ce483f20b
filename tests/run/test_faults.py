"""A wrong plan never runs; were one to run, its wrong numbers would show."""

from __future__ import annotations

from contextlib import closing

import pytest
import torch

from planner.cancel import CancelToken
from planner.capture import capture
from planner.errors import StowageError
from planner.plan import SwapPlan
from planner.profile import machine
from planner.run import CpuDevice, Executor, run, same_bits
from planner.run.checks.eager_reference import EagerReference
from planner.step import Step
from planner.swap import plan_swaps
from tests.effort import combinations
from tests.plan.changing import replace
from tests.run.steps import convolutions, gpt, mlp, planned


def loads_too_late(plan: SwapPlan) -> SwapPlan:
    """No op waits for what is copied back for it."""
    n = len(plan.order)
    return replace(
        plan,
        swap_ins=tuple(replace(copy, use=n) for copy in plan.swap_ins),
        host_residencies=tuple(replace(stay, stop=n) for stay in plan.host_residencies),
    )


def saves_nothing(plan: SwapPlan) -> SwapPlan:
    """What is copied back was never copied to the host."""
    return replace(plan, swap_outs=())


def saves_too_early(plan: SwapPlan) -> SwapPlan:
    """Copies leave before what they copy is made."""
    return replace(
        plan,
        swap_outs=tuple(replace(copy, ready=-1) for copy in plan.swap_outs),
        host_residencies=tuple(replace(stay, start=-1) for stay in plan.host_residencies),
    )


def shares_an_address(plan: SwapPlan) -> SwapPlan:
    """The two that stay longest lie in one place."""
    longest, other = sorted(plan.residencies, key=lambda stay: stay.start - stay.stop)[:2]
    moved = tuple(replace(stay, offset=longest.offset) if stay is other else stay for stay in plan.residencies)
    return replace(plan, residencies=moved)


FAULTS = [saves_nothing, saves_too_early, shares_an_address]


@pytest.mark.parametrize(("make", "fault"), combinations([mlp, convolutions, gpt], FAULTS))
def test_a_faulty_plan_is_refused_and_would_have_shown(make: object, fault: object) -> None:
    assert callable(make)
    assert callable(fault)
    step = make()
    plan = planned(step, "45%")
    faulty = fault(plan)
    before = {key: value.clone() for key, value in step.state().items()}
    with pytest.raises(StowageError, match="not valid"):
        run(step, faulty).wait()
    assert all(same_bits(value, before[key]) for key, value in step.state().items())
    assert _mismatches(step, plan) == ()
    try:
        assert _mismatches(step, faulty) != ()
    except StowageError as error:
        # poison may be taken for a word, and the executor refuses what would overwrite its own input
        assert isinstance(error.__cause__, IndexError) or "write over an input" in str(error)  # noqa: PT017


@pytest.mark.parametrize("make", [mlp, convolutions])
def test_a_plan_whose_ops_need_not_wait_is_refused_and_waits_all_the_same(make: object) -> None:
    """The executor orders all accesses to the same memory, whatever slots a plan gives its copies."""
    assert callable(make)
    step = make()
    plan = planned(step, "45%")
    faulty = loads_too_late(plan)
    assert plan.swap_ins
    with pytest.raises(StowageError, match="not valid"):
        run(step, faulty).wait()
    assert _mismatches(step, faulty) == ()


def _mismatches(step: Step, plan: SwapPlan) -> tuple[str, ...]:
    """Run a plan without asking the validator."""
    with closing(CpuDevice(2 * plan.peak_bytes, plan.host_bytes)) as device:
        executor = Executor(capture(step), plan, device, stress=True)
        executor.load(step.state())
        reference = EagerReference(step, CancelToken(), shared=False, device="cpu")
        found: tuple[str, ...] = ()
        for number in range(3):
            before = torch.get_rng_state()
            outputs = executor.step(step.batch_leaves()).outputs
            check, _ = reference.step(number, before, torch.get_rng_state(), outputs, executor.state())
            found += check.mismatches
        return found


def test_a_plan_that_forgets_temporary_memory_is_refused_in_its_first_step() -> None:
    step = convolutions()
    graph = capture(step).with_workspaces({})
    plan = plan_swaps(graph, machine("cpu"), "45%", method="swap", time_limit=0)
    plan = replace(plan, budget_bytes=plan.peak_bytes)
    before = {key: value.clone() for key, value in step.state().items()}
    with pytest.raises(StowageError, match="temporary memory"):
        run(step, plan).wait()
    assert all(same_bits(value, before[key]) for key, value in step.state().items())


def test_temporary_memory_may_use_what_the_budget_leaves() -> None:
    step = convolutions()
    graph = capture(step).with_workspaces({})
    plan = plan_swaps(graph, machine("cpu"), "45%", method="swap", time_limit=0)
    plan = replace(plan, budget_bytes=2 * plan.peak_bytes)
    result = run(step, plan, steps=1).wait()
    assert plan.peak_bytes < result.peak_bytes <= plan.budget_bytes
