"""A loop over batches of any type has eager's numbers, or the first batch that it cannot take is refused."""

from __future__ import annotations

import copy
import re
from collections import UserDict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import BatchEncoding

from planner.capture import capture
from planner.run import run
from planner.step import TrainStep

Loss = Callable[[nn.Module, Any], Tensor]


def x() -> Tensor:
    return torch.randn(4, 4)


def mean(model: nn.Module, batch: Any) -> Tensor:
    return model(batch["x"]).square().mean()


LOOPS: dict[str, tuple[list[Any], Loss, dict[str, Any]]] = {
    "UserDict": ([UserDict(x=x()) for _ in range(3)], mean, {}),
    "BatchEncoding": ([BatchEncoding({"x": x()}) for _ in range(3)], mean, {}),
    "other ids": ([{"x": x(), "ids": [f"row {n}"] * 4} for n in range(3)], mean, {}),
    "other objects": ([{"x": x(), "of": object()} for _ in range(3)], mean, {}),
    "NaN": ([{"x": x(), "n": float("nan")} for _ in range(3)], lambda m, b: mean(m, b) * (2 if b["n"] else 3), {}),
    "expanded": ([{"x": torch.randn(1, 4).expand(4, 4)} for _ in range(3)], mean, {}),
    "overlapping": ([{"x": torch.randn(7).unfold(0, 4, 1)} for _ in range(3)], mean, {}),
    "views of one tensor": ([{"x": rows} for rows in torch.randn(12, 4).split(4)], mean, {}),
    "tuple, then lists": ([(x(), x()), [x(), x()]], lambda m, b: (m(b[0]) * m(b[1])).sum(), {}),
    "other order": ([{"x": x(), "y": x()}, {"y": x(), "x": x()}], lambda m, b: mean(m, b) - m(b["y"]).sum(), {}),
    "micro-batches": ([{"x": x(), "ids": list("abcd")} for _ in range(3)], lambda m, b: mean(m, b) * len(b["ids"]),
                      {"micro_batches": 2}),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_over_odd_batches_has_eagers_numbers(name: str) -> None:
    batches, loss, options = LOOPS[name]
    step = TrainStep(nn.Linear(4, 2), batches[0], loss=loss, **options)
    reference, untouched = step.clone(), [copy.copy(batch) for batch in batches]
    losses = list(run(step, steps=0).steps(batches))
    assert losses == [float(reference.eager(batch).detach()) for batch in untouched]
    theirs = reference.state()
    assert all(torch.equal(tensor, theirs[key]) for key, tensor in step.state().items())


@pytest.mark.parametrize(
    ("own", "other", "loss", "said"),
    [
        ({"x": x(), "n": 1}, {"x": x(), "n": 2}, lambda m, b: mean(m, b) * b["n"], "batch/n is now 2"),
        ({"x": x(), "n": 1}, {"x": x(), "n": True}, lambda m, b: mean(m, b) * b["n"], "batch/n is a bool, was an int"),
        ({"x": torch.ones(1, 4).expand(4, 4)}, {"x": x()}, mean, r"batch/x has strides \(4, 1\), was \(0, 1\)"),
        ({"x": x()}, {"x": x().t().contiguous().t()}, mean, r"batch/x has strides \(1, 4\), was \(4, 1\)"),
        ({"x": x()}, {"x": x().requires_grad_()}, mean, "batch/x now requires a gradient"),
        (
            {"x": x(), "y": x()},
            {"y": x(), "x": x()},
            lambda m, b: m(torch.cat(list(b.values())))[0].sum(),
            "dict with y, x",
        ),
    ],
    ids=["value", "type", "expanded", "strides", "gradient", "order"],
)
def test_what_another_capture_would_take_into_account_is_said(own: Any, other: Any, loss: Loss, said: str) -> None:
    step = TrainStep(nn.Linear(4, 2), own, loss=loss)
    reference = step.clone()
    losses = list(run(step, steps=0).steps([own, other]))
    assert losses == [float(reference.eager(batch).detach()) for batch in (own, other)]
    assert re.search(said, step.change)


class Refilled:
    def __init__(self) -> None:
        self.x, self.scale = x(), 1.0


def test_an_object_refilled_between_steps_is_read_anew() -> None:
    batch, values = Refilled(), [x() for _ in range(3)]

    def refill(batch: Refilled) -> Iterator[Refilled]:
        for value in values:
            batch.x.copy_(value)
            yield batch

    step = TrainStep(nn.Linear(4, 2), batch, loss=lambda model, b: model(b.x).sum() * b.scale)
    reference = step.clone()
    losses = list(run(step, steps=0).steps(refill(batch)))
    assert losses == [float(reference.eager(one).detach()) for one in refill(Refilled())]


def test_a_number_of_the_steps_own_batch_that_changes_is_captured_anew() -> None:
    batch = Refilled()
    step = TrainStep(nn.Linear(4, 2), batch, loss=lambda model, b: model(b.x).sum() * b.scale)
    reference, first = step.clone(), capture(step)
    batch.scale = 3.0
    other = reference.materialize().batch
    other.scale = 3.0
    assert run(step, steps=1).wait().losses == (float(reference.eager().detach()),)
    assert capture(step) is not first
    assert step.change == "batch/scale is now 3.0"


def test_the_steps_own_batch_is_not_compared_with_itself_when_it_is_refilled() -> None:
    batch = Refilled()
    step = TrainStep(nn.Linear(4, 2), batch, loss=lambda model, b: model(b.x).sum() * b.scale)
    reference = step.clone()

    def refill(one: Refilled) -> Iterator[Refilled]:
        for one.scale in (1.0, 4.0):
            yield one

    losses = list(run(step, steps=0).steps(refill(batch)))
    theirs = refill(reference.materialize().batch)
    assert losses == [float(reference.eager(one).detach()) for one in theirs]


def test_ids_in_the_steps_own_batch_pass_by_when_it_is_refilled() -> None:
    batch = {"x": x(), "ids": ["a"]}

    def refill() -> Iterator[Any]:
        for batch["ids"] in (["a"], ["b"], ["c"]):
            yield batch

    assert len(list(run(TrainStep(nn.Linear(4, 2), batch, loss=mean), steps=0).steps(refill()))) == 3
