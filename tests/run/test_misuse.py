"""What cannot be run is refused before anything begins, in one sentence."""

from __future__ import annotations

from typing import Any

import pytest
from torch import nn

from planner.capture import capture
from planner.errors import StowageError
from planner.run import run
from tests.run.steps import mlp


@pytest.mark.parametrize("given", [None, "mlp", nn.Linear(2, 2), capture(mlp())])
def test_only_a_step_can_be_run(given: Any) -> None:
    with pytest.raises(StowageError, match="cannot be run: give a TrainStep or an InferenceStep"):
        run(given)


@pytest.mark.parametrize("plan", ["plan.json", 3, {}])
def test_only_a_plan_can_be_run_by(plan: Any) -> None:
    with pytest.raises(StowageError, match="is no plan: give a SwapPlan"):
        run(mlp(), plan)


@pytest.mark.parametrize("bandwidth", ["fast", -1, 0, float("nan")])
def test_a_link_has_a_bandwidth_above_nothing(bandwidth: Any) -> None:
    with pytest.raises(StowageError, match="give a bandwidth above 0"):
        run(mlp(), link_bandwidth=bandwidth)
