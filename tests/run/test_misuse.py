"""What cannot be run is refused before anything begins, in one sentence."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from planner.capture import capture
from planner.errors import StowageError
from planner.run import run
from planner.step import TrainStep
from tests.run.steps import mlp


@pytest.mark.parametrize("given", [None, "mlp", nn.Linear(2, 2), capture(mlp())])
def test_only_a_step_can_be_run(given: Any) -> None:
    with pytest.raises(StowageError, match="cannot be run: give a TrainStep or an InferenceStep"):
        run(given)


@pytest.mark.parametrize("plan", ["plan.json", 3, {}])
def test_only_a_plan_can_be_run_by(plan: Any) -> None:
    with pytest.raises(StowageError, match="is not a plan: give a SwapPlan"):
        run(mlp(), plan)


@pytest.mark.parametrize("bandwidth", ["fast", -1, 0, float("nan")])
def test_a_link_has_a_bandwidth_above_nothing(bandwidth: Any) -> None:
    with pytest.raises(StowageError, match="give a bandwidth above 0"):
        run(mlp(), link_bandwidth=bandwidth)


@pytest.fixture
def on_meta() -> Iterator[None]:
    yield torch.set_default_device("meta")
    torch.set_default_device(None)


META = r"the default device is meta, .*: end the block of torch\.device\(\"meta\"\), or call torch\.set_default_device"


def test_nothing_is_run_where_tensors_hold_no_numbers(on_meta: None) -> None:
    with torch.device("cpu"):
        step = mlp()
        ready = run(step, steps=0)
        ready.wait()
    with pytest.raises(StowageError, match=META):
        run(mlp())
    with pytest.raises(StowageError, match=META):
        capture(mlp())
    with pytest.raises(StowageError, match=META):
        list(ready.steps([step.make_batch()]))
    with torch.device("cpu"):
        assert len(list(ready.steps([step.make_batch()]))) == 1


def test_the_default_device_may_change_while_a_run_goes_on() -> None:
    running = run(mlp(), steps=3, check=True)
    with torch.device("meta"):
        assert running.wait().mismatches == ()


class Locked(nn.Linear):
    """Cannot be copied."""

    def __init__(self) -> None:
        super().__init__(3, 2)
        self.lock = threading.Lock()


def square(model: nn.Module, batch: Any) -> torch.Tensor:
    loss: torch.Tensor = model(batch).square().mean()
    return loss


def test_what_cannot_be_copied_can_be_checked() -> None:
    result = run(TrainStep(Locked(), torch.ones(4, 3), loss=square), steps=2, check=True).wait()
    assert result.mismatches == ()
    assert result.checked == "every step"


def test_a_copied_step_is_captured_anew() -> None:
    step = mlp()
    run(step, steps=1).wait()
    again = copy.deepcopy(step)
    assert run(again, steps=2, check=True).wait().mismatches == ()
    assert again.graph is not step.graph
