"""A run by a plan is eager PyTorch to the bit, at any budget, however the streams are delayed."""

from __future__ import annotations

from contextlib import closing

import pytest
import torch

from planner.capture import capture
from planner.errors import StowageError
from planner.run import CpuDevice, Executor, run, same_bits
from planner.step import InferenceStep, TrainStep
from tests.effort import combinations
from tests.run.steps import ALL, branches, convolutions, normalisations, planned


@pytest.mark.parametrize(("model", "budget"), combinations(list(ALL), ["100%", "50%", "30%"]))
def test_three_steps_under_stress_have_eagers_bits(model: str, budget: str) -> None:
    step = ALL[model]()
    result = run(step, planned(step, budget), steps=3, check=True, stress=True).wait()
    assert result.mismatches == ()
    assert result.compared > 3
    assert len(result.losses) == len(result.step_seconds) == len(result.eager_step_seconds) == 3
    assert 0 < result.peak_bytes <= result.predicted_peak_bytes <= result.budget_bytes
    if budget != "100%":
        assert result.plan.swap_ins


def test_the_live_model_afterwards_is_what_eager_would_have_made_of_it() -> None:
    step = convolutions()
    other = step.clone()
    torch.manual_seed(5)
    result = run(step, planned(step, "50%"), steps=4).wait()
    torch.manual_seed(5)
    losses = [float(other.eager()) for _ in range(4)]
    assert list(result.losses) == losses
    ours, theirs = step.state(), other.state()
    assert ours.keys() == theirs.keys()
    assert [key for key in ours if not same_bits(ours[key], theirs[key])] == []


def test_two_runs_in_a_row_go_on_where_the_first_ended() -> None:
    step = branches()
    other = step.clone()
    torch.manual_seed(5)
    first = run(step, budget="60%", steps=2).wait()
    second = run(step, plan=first.plan, steps=2).wait()
    torch.manual_seed(5)
    assert [*first.losses, *second.losses] == [float(other.eager()) for _ in range(4)]


def test_low_precision_clipping_and_micro_batches_have_eagers_bits() -> None:
    result = run(normalisations(), budget="70%", check=True, stress=True).wait()
    assert result.mismatches == ()
    assert result.plan.swap_ins


def test_changing_learning_rates_are_followed() -> None:
    assert run(branches(), steps=4, check=True).wait().mismatches == ()


def test_a_slow_link_changes_no_bits() -> None:
    step = convolutions()
    result = run(step, planned(step, "40%"), steps=2, check=True, link_bandwidth=2e8).wait()
    assert result.mismatches == ()


def test_inference_returns_what_the_model_returns() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(6)])
    inputs = torch.randn(8, 64)
    result = run(InferenceStep(model, inputs), budget="50%", check=True).wait()
    assert result.mismatches == ()
    assert result.losses == ()
    with torch.no_grad():
        assert same_bits(result.outputs[0], model(inputs))
    torch.nn.Linear(64, 1)(result.outputs[0]).sum().backward()  # an ordinary tensor, good for training on


def test_a_step_that_cannot_be_run_is_a_sentence() -> None:
    step = branches()
    plan = run(step, steps=1).wait().plan
    cases = [
        ({"steps": -1}, "at least 1"),
        ({"device": "tpu"}, 'no device "tpu"'),
        ({"plan": plan, "budget": "50%"}, "not both"),
        ({"link_bandwidth": 0.0}, "bandwidth above 0"),
        ({"budget": "1%"}, "too small"),
    ]
    for arguments, said in cases:
        with pytest.raises(StowageError, match=said):
            run(step, **arguments).wait()
    with pytest.raises(StowageError, match="not for Convolutions"):
        run(convolutions(), plan).wait()


def test_comparing_finds_a_single_bit() -> None:
    step = branches()

    class Meddler(TrainStep):
        def compute(self, batch: object = None) -> torch.Tensor:
            loss = super().compute(batch)
            weight = self.state()["model/wide.weight"]
            weight.view(torch.int32)[3, 4] ^= 1
            return loss

    capture(step)
    step.__class__ = Meddler
    result = run(step, steps=1, check=True).wait()
    assert result.mismatches == ("step 0: model/wide.weight",)


def test_bits_tell_zeros_apart_and_a_nan_equals_itself() -> None:
    assert same_bits(torch.tensor([float("nan")]), torch.tensor([float("nan")]))
    assert not same_bits(torch.tensor([0.0]), torch.tensor([-0.0]))
    assert not same_bits(torch.tensor([1.0]), torch.tensor([1.0], dtype=torch.float64))


@pytest.mark.parametrize("dtype", [torch.bool, torch.int16, torch.bfloat16, torch.float32, torch.complex128], ids=str)
@pytest.mark.parametrize("at", [(0, 0), (0, 3), (5, 8), (1, 1)])
def test_every_byte_counts_wherever_tensors_begin(dtype: torch.dtype, at: tuple[int, int]) -> None:
    random = torch.randint(2, (1024,), dtype=torch.uint8)
    for length in (0, 1, 2, 7, 19):
        whole, other = random.view(dtype).clone(), random.view(dtype).clone()
        one, same = whole[at[0] : at[0] + length], other[at[1] : at[1] + length].copy_(whole[at[0] : at[0] + length])
        assert same_bits(one, same)
        for byte in range(same.view(torch.uint8).numel()):
            same.view(torch.uint8)[byte] ^= 1
            assert not same_bits(one, same)
            same.view(torch.uint8)[byte] ^= 1
    assert not same_bits(random.view(dtype)[:4], random.view(dtype)[:5])


def test_an_executor_repeats_its_steps_with_other_delays() -> None:
    step = convolutions()
    plan = planned(step, "50%")
    with closing(CpuDevice(plan.peak_bytes, plan.host_bytes)) as device:
        executor = Executor(capture(step), plan, device, stress=True)
        losses = set()
        for seed in (1, 2):
            executor.reseed(seed)
            executor.load(step.state())
            losses.add(float(executor.step(step.batch_leaves()).outputs[0]))
        assert losses == {float(step.clone().eager())}
        with pytest.raises(ValueError, match="no seed to set: these steps are made without stress"):
            Executor(capture(step), plan, device).reseed(1)
