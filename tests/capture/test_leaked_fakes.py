"""A capture leaves no fake tensor behind, wherever the model's code keeps what it computes."""

import gc
from functools import lru_cache
from threading import Semaphore, local

import pytest
import torch
from torch import nn

from planner import StowageError
from planner.capture import capture
from planner.step import TrainStep
from tests.capture.interpreter import differences

HIDDEN = local()  # which no capture looks into


@lru_cache
def positions(count):
    return torch.arange(count, dtype=torch.float32)


@lru_cache(maxsize=None)  # noqa: UP033
def waves(count):
    return torch.arange(count).sin(), (torch.arange(count).cos(),)


def hiding(values):
    HIDDEN.last = values.detach()
    return values


class Model(nn.Module):
    def __init__(self, rule):
        super().__init__()
        self.layer, self.rule = nn.Linear(4, 4), rule

    def forward(self, values):
        return self.rule(self.layer(values))


def step_of(rule):
    return TrainStep(Model(rule), torch.randn(2, 4), loss=lambda model, batch: model(batch).square().mean())


def fakes():
    gc.collect()
    return [each for each in gc.get_objects() if type(each) is torch._subclasses.FakeTensor]


@pytest.fixture
def new_fakes():
    """The fake tensors that were made since; `torch.compile` keeps some of whichever layer it compiled last."""
    before = fakes()
    return lambda: [each for each in fakes() if not any(each is other for other in before)]


@pytest.mark.parametrize("cached", [lambda x: x + positions(4), lambda x: x * waves(4)[0] + waves(4)[1][0]])
def test_a_cached_function_that_met_a_capture_gives_ordinary_tensors(cached, new_fakes):
    positions.cache_clear()
    waves.cache_clear()
    step = step_of(cached)
    capture(step)
    assert new_fakes() == []
    assert torch.isfinite(step.model(torch.randn(2, 4))).all()
    assert differences(step) == []


def test_a_cache_that_took_in_nothing_fake_is_left_as_it_was():
    positions.cache_clear()
    kept = positions(4)
    capture(step_of(lambda x: x + positions(4) + waves(4)[0]))
    assert positions(4) is kept


def test_a_capture_that_fails_leaves_caches_clean_too():
    positions.cache_clear()
    with pytest.raises(StowageError):
        capture(step_of(lambda x: x * positions(4) * x.sum().item()))
    assert positions.cache_info().currsize == 0


@pytest.mark.parametrize("grows_old", [False, True])
def test_a_cache_made_after_another_capture_failed_is_left_clean_too(grows_old):
    def fails(values):
        return values * values.sum().item()

    with pytest.raises(StowageError):
        capture(step_of(fails))
    later = lru_cache(lambda count: torch.arange(count, dtype=torch.float32))
    if grows_old:
        gc.collect()
    with pytest.raises(StowageError):
        capture(step_of(lambda x: fails(x + later(4))))
    assert later.cache_info().currsize == 0


def test_a_tensor_kept_where_nobody_looks_is_refused_and_taken_out(new_fakes):
    with pytest.raises(StowageError, match=r"keeps a tensor of shape .* outside of the model"):
        capture(step_of(hiding))
    assert new_fakes() == []


def test_code_that_asks_whether_it_is_traced_is_told_that_it_is_not():
    def rule(values):
        if not isinstance(values, torch._subclasses.FakeTensor):
            told.release()
        return values

    told = Semaphore(0)  # which no capture looks into
    fake_tensor = torch._subclasses.FakeTensor
    capture(step_of(rule))
    assert told.acquire(blocking=False)
    assert torch._subclasses.FakeTensor is fake_tensor


def test_a_step_captured_before_its_batch_has_values_is_captured_again_with_them():
    def rule(values):
        return values * 2 if isinstance(values, torch._subclasses.FakeTensor) else values

    step = TrainStep(lambda: Model(rule), lambda: torch.randn(2, 4), loss=lambda model, batch: model(batch).mean())
    guessed = capture(step)
    step.materialize()
    assert capture(step) is not guessed
    assert differences(step) == []
