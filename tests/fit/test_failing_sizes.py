"""Sizes that a step does not take at all: a limit of the model is told from one of memory, and no error is hidden."""

import weakref
from dataclasses import replace
from traceback import extract_tb

import pytest
import torch
from torch import nn

import planner
from planner import StowageError, TrainStep
from planner.fit import Failure
from planner.machine import PRESETS
from tests.capture.test_transformers import gpt2
from tests.fit.test_fit import small

H100 = PRESETS["h100"]


def linear(batch):
    return TrainStep(
        lambda: nn.Linear(8, 8), lambda: torch.ones(batch, 8), loss=lambda model, x: model(x).square().mean()
    )


def at_most(limit):
    """A function that makes steps of no more rows than a limit."""

    def make(batch):
        if batch > limit:
            raise ValueError(f"at most {limit} rows, got {batch}\nand more lines")
        return linear(batch)

    return make


def language(sequence):
    """A GPT-2 with 16 positions."""
    tokens = torch.randint(60, (2, sequence))
    return TrainStep(gpt2, {"input_ids": tokens, "labels": tokens})


@pytest.mark.parametrize("first", [1, 3, 20])
@pytest.mark.parametrize("limit", [20, 37, 63, 64])
def test_an_open_range_ends_at_the_last_value_that_the_step_takes_and_says_so(first, limit):
    found = planner.fit(at_most(limit), H100, {"batch": (first, None)}, progress=False)
    assert found.asked == range(first, limit + 1)
    for answer in (found.unswapped, found.full_speed, *found.slower.values(), found.at_all):
        assert (answer.value, answer.proven) == (limit, True)
    assert found.stopped_by_model
    assert found.failed == (Failure(limit + 1, f"ValueError: at most {limit} rows, got {limit + 1}"),)


def test_a_model_ends_the_range_by_the_positions_that_it_has():
    found = planner.fit(language, H100, {"sequence": (2, None)}, progress=False)
    assert (found.at_all.value, found.stopped_by_model) == (16, True)
    (failure,) = found.failed
    assert failure.value == 17
    assert "looks up row 16 of a table with 16 rows" in failure.error


def test_where_memory_ends_the_range_first_nothing_is_said_of_the_model():
    machine = replace(small("h100", 10_000), host_memory_bytes=1000)
    found = planner.fit(at_most(10**6), machine, {"batch": (1, None)}, progress=False)
    assert found.at_all.value < found.asked[-1]
    assert (found.failed, found.stopped_by_model) == ((), False)


def test_where_memory_ends_below_the_models_limit_the_answer_is_what_fits():
    machine = replace(small("h100", 10_000), host_memory_bytes=1000)
    most = planner.fit(linear, machine, {"batch": (1, None)}, progress=False).at_all.value
    found = planner.fit(at_most(most + 1), machine, {"batch": (1, None)}, progress=False)
    assert (found.at_all.value, found.asked[-1]) == (most, most + 1)


@pytest.mark.parametrize("values", [range(1, 65), range(30, 3000), [1, 2, 37, 38, 50]])
def test_a_range_with_an_end_is_refused_by_the_value_that_fails_and_the_last_one_that_works(values):
    sentence = r"^batch=38 fails \(ValueError: at most 37 rows, got 38\), and batch=37 is the last that works; end the "
    with pytest.raises(StowageError, match=sentence) as refused:
        planner.fit(at_most(37), H100, {"batch": values}, progress=False)
    assert isinstance(refused.value.__cause__, ValueError)
    assert extract_tb(refused.value.__cause__.__traceback__)[-1].name == "make"


def test_a_range_in_which_only_some_values_work_is_refused_by_one_that_does_not():
    def make(batch):
        if batch % 4:
            raise ValueError(f"{batch} is not a multiple of 4")
        return linear(batch)

    with pytest.raises(
        StowageError,
        match=r"^batch=(\d+) fails \(ValueError: \1 is not a multiple of 4\), while "
        "smaller and larger values work; vary batch where all values work$",
    ):
        planner.fit(make, H100, {"batch": range(4, 65)}, progress=False)
    found = planner.fit(make, H100, {"batch": range(4, 65, 4)}, progress=False)
    assert found.at_all.value == 64


@pytest.mark.parametrize("values", [(40, None), range(40, 60), [38]])
def test_an_error_of_ones_own_at_the_first_value_comes_through_as_it_is(values):
    with pytest.raises(ValueError, match=r"^at most 37 rows, got (40|38)"):
        planner.fit(at_most(37), H100, {"batch": values}, progress=False)


@pytest.mark.parametrize("values", [(40, None), range(40, 60)])
def test_a_step_that_cannot_be_captured_at_the_first_value_is_refused_by_that_value(values):
    with pytest.raises(StowageError, match=r"^sequence=40 fails: module transformer.wpe .* looks up row 39"):
        planner.fit(language, H100, {"sequence": values}, progress=False)


def test_a_first_value_that_was_left_out_is_listed_with_its_error():
    def make(batch):
        model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
        return TrainStep(model, torch.zeros(batch, 8), loss=lambda model, batch: model(batch).mean())

    found = planner.fit(make, H100, {"batch": range(1, 40)}, progress=False)
    assert (found.at_all.value, found.stopped_by_model) == (39, False)
    assert [failure.value for failure in found.failed] == [1]
    assert "Expected more than 1 value per channel" in found.failed[0].error
    with pytest.raises(StowageError, match=r"^batch=1 fails: .*Expected more than 1 value per channel"):
        planner.fit(make, H100, {"batch": (1, None)}, progress=False)


def test_models_of_sizes_that_fail_are_let_go_of():
    alive, most = weakref.WeakSet(), []

    class Limited(nn.Linear):
        def forward(self, rows):
            if len(rows) > 333:
                raise ValueError("at most 333 rows")
            return super().forward(rows).mean()

    def make(batch):
        alive.add(model := Limited(8, 8))
        most.append(len(alive))
        return TrainStep(model, torch.ones(batch, 8), loss=lambda model, rows: model(rows))

    found = planner.fit(make, H100, {"batch": (1, None)}, progress=False)
    assert (found.at_all.value, found.stopped_by_model) == (333, True)
    assert len(most) > 10
    assert max(most) <= 3


def test_models_are_let_go_of_also_where_a_step_leaves_tensors_in_cycles():
    alive, most = weakref.WeakSet(), []

    class Untidy(nn.Linear):
        def forward(self, rows):
            left = [2 * rows]
            left.append(left)
            return super().forward(rows).mean()

    def make(batch):
        model = Untidy(64, 64)
        model.itself = [model]
        alive.add(model)
        most.append(len(alive))
        return TrainStep(model, torch.ones(batch, 64), loss=lambda model, rows: model(rows))

    small = planner.machine("h100", memory="2GB")
    planner.fit(make, small, {"batch": range(1, 10_000_000, 2_000_000)}, progress=False)
    assert len(most) > 3
    assert max(most) <= 2


def test_too_little_memory_on_this_computer_is_not_taken_for_a_limit_of_the_model():
    def make(batch):
        return linear(batch) if batch < 4 else TrainStep(nn.Linear(8, 8), torch.empty(2**50))

    with pytest.raises(
        StowageError, match="batch=32 takes more memory than this computer has; give TrainStep functions"
    ):
        planner.fit(make, H100, {"batch": (1, None)}, progress=False)
