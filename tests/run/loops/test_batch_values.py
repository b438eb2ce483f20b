"""What is no tensor in a batch, batches that do not fit, and micro-batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from beside_eager import Loop
from torch import Tensor, nn
from torch.nn.functional import mse_loss
from transformers import BatchEncoding

from tests.run.loops.harness import Case, Net, Specification, adam, inputs, loop, squares

spec = Specification()


def made(wrap: Callable[[dict[str, Tensor]], Any], loss: Any = squares, **rest: Any) -> Loop:
    """A loop whose batches are wrapped each."""
    return loop(loss=loss, batches=[wrap(batch) for batch in inputs()], **rest)


def with_extra(values: list[Any], loss: Any = squares) -> Loop:
    return loop(loss=loss, batches=[{**b, "extra": value} for b, value in zip(inputs(), values, strict=True)])


def using_extra(model: Any, batch: Any) -> Tensor:
    return squares(model, batch) * batch["extra"]


def rows(batch: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Micro-batches by hand."""
    size = 4 // count
    cut = ("x", "y", "w")
    return [
        {key: value[size * n : size * n + size] if key in cut else value for key, value in batch.items()}
        for n in range(count)
    ]


def micro(change: Callable[[dict[str, Any]], dict[str, Any]], loss: Any = squares, **rest: Any) -> Loop:
    batches = [change(batch) for batch in inputs()]
    return loop(loss=loss, batches=batches, parts=lambda b: rows(b, 2), options={"micro_batches": 2}, **rest)


@spec.equal
def names_of_files_differ_and_nobody_reads_them() -> Loop:
    return with_extra([[f"{number}{part}.png" for part in range(4)] for number in range(5)])


@spec.equal
def identifiers_differ_and_nobody_reads_them() -> Loop:
    return with_extra(list(range(5)))


@spec.equal_or_refused
def whole_numbers_differ_and_the_loss_reads_them() -> Loop:
    return with_extra([1, 1, 2, 3, 1], using_extra)


@spec.equal_or_refused
def floats_differ_and_the_loss_reads_them() -> Loop:
    return with_extra([1.0, 0.5, 0.25, 2.0, 1.0], using_extra)


@spec.equal_or_refused
def text_differs_and_chooses_a_branch() -> Loop:
    return with_extra(["a", "a", "b", "b", "a"], lambda m, b: squares(m, b) * (2.0 if b["extra"] == "b" else 1.0))


@spec.equal
def a_number_is_always_not_a_number() -> Loop:
    return with_extra([float("nan") for _ in range(5)], lambda m, b: squares(m, b) * (2.0 if b["extra"] > 0 else 1.0))


@spec.equal
def an_optional_entry_is_always_none() -> Loop:
    return with_extra([None] * 5, lambda m, b: squares(m, b) if b["extra"] is None else using_extra(m, b))


@spec.equal_or_refused
def an_optional_entry_is_none_and_then_a_tensor() -> Loop:
    values = [None, None, torch.ones(()), torch.ones(()), None]
    return with_extra(values, lambda m, b: squares(m, b) if b["extra"] is None else using_extra(m, b))


@spec.equal_or_refused
def a_numpy_array_is_read_and_differs() -> Loop:
    return with_extra(
        [np.full(4, number, np.float32) for number in range(5)],
        lambda m, b: (m(b["x"]) + torch.from_numpy(b["extra"])).square().mean(),
    )


@spec.equal_or_refused
def a_numpy_array_is_rewritten_in_place() -> Loop:
    array, batches = np.ones(4, np.float32), inputs()
    return loop(
        loss=lambda m, b: (m(b["x"]) + torch.from_numpy(b["extra"])).square().mean(),
        batches=[{**b, "extra": array} for b in batches],
        before=array.fill,
    )


@spec.equal
def a_numpy_array_stays_the_same() -> Loop:
    return with_extra([np.ones(4)] * 5)


@spec.equal_or_refused
def a_function_comes_with_the_batch() -> Loop:
    return with_extra([torch.sin, torch.sin, torch.cos, torch.cos, torch.sin], lambda m, b: b["extra"](squares(m, b)))


@spec.equal_or_refused
def a_generator_comes_with_the_batch() -> Loop:
    return with_extra([iter([1.0]) for _ in range(5)], lambda m, b: squares(m, b) * next(b["extra"]))


@spec.equal_or_refused
def the_last_batch_is_smaller() -> Loop:
    batches = inputs()
    batches[4] = {name: value[:3] for name, value in batches[4].items()}
    return loop(batches=batches)


@spec.equal_or_refused
def a_batch_has_another_dtype() -> Loop:
    batches = inputs()
    batches[3]["y"] = batches[3]["y"].double()
    return loop(loss=lambda m, b: mse_loss(m(b["x"]), b["y"].float()), batches=batches)


@spec.equal_or_refused
def a_batch_has_one_tensor_more() -> Loop:
    batches = inputs()
    batches[3]["z"] = torch.ones(3)
    return loop(batches=batches)


@spec.equal_or_refused
def a_batch_lacks_a_tensor_that_the_loss_can_do_without() -> Loop:
    batches = inputs()
    del batches[3]["y"]
    return loop(loss=lambda m, b: squares(m, b) if "y" in b else m(b["x"]).square().mean(), batches=batches)


@spec.equal_or_refused
def a_batch_wants_a_gradient() -> Loop:
    return made(lambda b: {"x": b["x"].requires_grad_(), "y": b["y"]})


@spec.equal_or_refused
def a_penalty_on_the_gradient_by_the_batch() -> Loop:
    def loss(model: Any, batch: Any) -> Tensor:
        x = batch["x"].detach().requires_grad_()
        out = model(x)
        (slope,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        return mse_loss(out, batch["y"]) + slope.square().mean()

    return loop(loss=loss)


@spec.equal_or_refused
def a_batch_is_sparse() -> Loop:
    return made(
        lambda b: {"x": b["x"].relu().to_sparse(), "y": b["y"]}, lambda m, b: mse_loss(m(b["x"].to_dense()), b["y"])
    )


@spec.equal_or_refused
def a_batch_is_a_subclass_of_tensor() -> Loop:
    class Own(Tensor):
        pass

    return made(lambda b: {"x": b["x"].as_subclass(Own), "y": b["y"]}, lambda m, b: squares(m, b).as_subclass(Tensor))


@spec.equal_or_refused
def the_loss_writes_into_the_batch() -> Loop:
    def loss(model: Any, batch: Any) -> Tensor:
        batch["x"].mul_(0.5)
        return squares(model, batch)

    batches = inputs()
    return loop(loss=loss, batches=batches, also=batches)


@spec.equal_or_refused
def the_loss_leaves_a_tensor_in_the_batch() -> Loop:
    def loss(model: Any, batch: Any) -> Tensor:
        batch["out"] = model(batch["x"])
        return mse_loss(batch.pop("out"), batch["y"])

    return loop(loss=loss)


@spec.equal_or_refused
def the_batch_holds_a_buffer_of_the_model() -> Loop:
    model = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4))
    batches = [{**batch, "mean": model[1].running_mean} for batch in inputs()]
    return loop(model, lambda m, b: squares(m, b) + b["mean"].square().sum(), batches=batches)


@spec.equal
def the_batch_has_empty_tensors_numbers_and_truths() -> Loop:
    return made(
        lambda b: {**b, "none": torch.empty(0, 3), "scale": torch.tensor(2.0), "mask": b["x"][:, :4] > 0},
        lambda m, b: ((m(b["x"]) - b["y"]) * b["mask"]).square().sum() * b["scale"] + b["none"].sum(),
    )


@spec.equal
def a_batch_is_not_finite() -> Loop:
    batches = inputs()
    batches[3]["x"][0, 0], batches[4]["y"][0] = float("inf"), float("nan")
    return loop(batches=batches)


@spec.equal
def two_micro_batches() -> Loop:
    return micro(lambda b: b)


@spec.equal
def two_micro_batches_with_a_number_and_a_name() -> Loop:
    return micro(lambda b: {**b, "scale": 2.0, "name": "same"}, lambda m, b: squares(m, b) * b["scale"])


@spec.equal
def two_micro_batches_with_a_tensor_without_dimensions() -> Loop:
    return micro(lambda b: {**b, "scale": torch.tensor(2.0)}, lambda m, b: squares(m, b) * b["scale"])


@spec.equal_or_refused
def two_micro_batches_with_one_row_for_all() -> Loop:
    return micro(lambda b: {**b, "table": torch.ones(1, 4)}, lambda m, b: squares(m, b) * b["table"].mean())


@spec.equal_or_refused
def two_micro_batches_with_a_list_of_names() -> Loop:
    def loss(model: Any, batch: Any) -> Tensor:
        return squares(model, batch) * sum(map(len, batch["w"]))

    return micro(lambda b: {**b, "w": ["a", "bb", "ccc", "dddd"]}, loss)


@spec.equal_or_refused
def two_micro_batches_with_an_array() -> Loop:
    def loss(model: Any, batch: Any) -> Tensor:
        return squares(model, batch) * float(batch["w"].sum())

    return micro(lambda b: {**b, "w": np.arange(4.0)}, loss)


@spec.equal_or_refused
def two_micro_batches_of_expanded_rows() -> Loop:
    return micro(lambda b: {"x": b["x"][:1].expand(4, 8), "y": b["y"]})


@spec.equal_or_refused
def two_micro_batches_of_a_batch_encoding() -> Loop:
    batches = [BatchEncoding(batch) for batch in inputs()]
    return loop(batches=batches, parts=lambda b: rows(dict(b), 2), options={"micro_batches": 2})


@spec.equal
def micro_batches_under_adam_with_clipping() -> Loop:
    model = Net()
    return micro(lambda b: b, model=model, optimizer=adam(model))


@pytest.mark.parametrize("case", spec.cases)
def test_batches_are_taken_as_they_are(case: Case) -> None:
    case.check()
