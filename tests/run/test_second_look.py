"""What no guard sees is seen when the step is captured again: between steps, and at the end of a loop."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from planner.errors import StowageError
from planner.run import Run, run
from planner.step import TrainStep

BATCH = torch.linspace(-1.0, 1.0, 8).reshape(2, 4)


@functools.singledispatch
def weight(value: object) -> float:
    return 1.0


def loss(model: nn.Module, x: Tensor) -> Tensor:
    result: Tensor = model(x).square().mean() * weight(1)
    return result


@pytest.fixture
def going() -> Iterator[Run]:
    torch.manual_seed(0)
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    yield run(TrainStep(model, BATCH, loss=loss, optimizer=optimizer), steps=0)
    weight.register(int, lambda value: 1.0)


def batches(count: int, changed: int) -> Iterator[Tensor]:
    for number in range(count):
        if number == changed:
            weight.register(int, lambda value: 2.0)
        yield BATCH


def test_a_change_after_the_last_look_between_steps_is_named_at_the_end_of_the_loop(going: Run) -> None:
    made = []
    with pytest.raises(StowageError, match="from step 5 on the numbers may differ"):
        made.extend(going.steps(batches(7, changed=5)))
    assert going.result is not None
    assert len(going.result.losses) == 7


def test_a_loop_in_which_nothing_changes_is_looked_at_once_more_at_its_end(going: Run) -> None:
    assert len(list(going.steps([BATCH] * 3))) == 3
    assert going.result is not None
    assert going.result.rechecks == 2  # before the second step, and at the end


def test_many_loops_are_looked_at_ever_more_rarely(going: Run) -> None:
    for _ in range(8):
        list(going.steps([BATCH] * 3))
    assert going.result is not None
    between, at_ends = 4, 4  # before the steps 2, 4, 8 and 16; after the loops 1, 2, 4 and 8
    assert going.result.rechecks == between + at_ends


def test_steps_that_were_looked_at_are_not_looked_at_again_at_the_end(going: Run) -> None:
    list(going.steps([BATCH] * 2))
    assert going.result is not None
    assert going.result.rechecks == 1


def test_a_change_between_two_loops_is_named_from_its_first_step_on(going: Run) -> None:
    list(going.steps([BATCH] * 5))  # looked at to its end
    with pytest.raises(StowageError, match="from step 6 on the numbers may differ"):
        list(going.steps(batches(4, changed=0)))


def test_who_wants_no_second_look_gets_none() -> None:
    model = nn.Linear(4, 4)
    without = run(TrainStep(model, BATCH, loss=loss), steps=0, recheck=False)
    list(without.steps([BATCH] * 5))
    assert without.result is not None
    assert without.result.rechecks == 0
