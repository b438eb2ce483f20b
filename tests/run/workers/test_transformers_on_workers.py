"""Models of transformers on several workers: eager's numbers but for rounding, and the bytes that are predicted."""

import pytest

from planner.run import run_workers
from planner.step import SGD, TrainStep
from tests.capture.test_transformers import CASES
from tests.effort import combinations
from tests.run.workers.steps import partition


@pytest.mark.parametrize(("name", "workers"), combinations(["bert", "llama", "mixtral", "t5"], [2, 3, 4]))
def test_a_transformers_model_is_trained_on_workers(name, workers):
    model, batch = CASES[name]
    step = TrainStep(model, batch, optimizer=SGD(lr=0.1))
    parts = partition(step, workers)
    result = run_workers(step, parts, steps=2, check=True, progress=False).wait()
    assert result.difference.is_rounding, result.difference
    assert result.bytes_counted == result.bytes_predicted
    assert result.peak_bytes == result.planned_peak_bytes
