"""How often a loop's step was captured is said, and warned of where it is often."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import torch
from torch import nn

from planner.run import run
from planner.step import TrainStep

BATCH = torch.linspace(-1.0, 1.0, 8).reshape(2, 4)


def trained(scales: Iterable[float], *, recapture: bool = False) -> tuple[int, list[str]]:
    """How often the step was captured, and what was warned of, where each step has another scale."""
    torch.manual_seed(0)
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    step = TrainStep(
        model, BATCH, loss=lambda model, x: (model(x) * model.scale).square().mean(), optimizer=optimizer,
        name="scaled", recapture=recapture,
    )  # fmt: skip
    wanted = list(scales)
    model.scale = wanted[0]
    going = run(step, steps=0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for number, _ in enumerate(going.steps([BATCH] * len(wanted)), 1):
            if number < len(wanted):
                model.scale = wanted[number]
    assert going.result is not None
    return going.result.captures, [str(each.message) for each in said if "captured" in str(each.message)]


def test_a_step_that_stays_the_same_is_captured_once() -> None:
    assert trained([1.0] * 4) == (1, [])


def test_going_back_to_an_earlier_setup_is_no_capture() -> None:
    assert trained([1.0, 2.0, 1.0, 2.0, 1.0]) == (2, [])


def test_a_step_that_is_captured_again_and_again_is_warned_of_once_with_what_changed_last() -> None:
    captures, said = trained([float(number) for number in range(1, 11)])
    assert captures == 10
    assert said == [
        "scaled has been captured 8 times in 8 steps, the last time because model.scale is now 8.0: each capture "
        "holds the step up; a number that is kept in a tensor may change without one"
    ]


def test_whoever_asked_for_it_is_not_warned() -> None:
    assert trained([float(number) for number in range(1, 10)], recapture=True) == (9, [])
