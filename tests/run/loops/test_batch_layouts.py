"""Batches whose tensors are laid out otherwise than the first, share memory, or repeat it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from beside_eager import Loop
from torch import Tensor, nn

from tests.run.loops.harness import Case, Specification, inputs, loop, squares

spec = Specification()


def made(wrap: Callable[[dict[str, Tensor]], Any], loss: Any = squares, **rest: Any) -> Loop:
    """A loop whose batches are wrapped each."""
    return loop(loss=loss, batches=[wrap(batch) for batch in inputs()], **rest)


def images(change: Callable[[Tensor], Tensor], since: int) -> Loop:
    """Batches of pictures that are laid out otherwise from some step on."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(8, 4, 3))
    batches = [{"x": torch.randn(2, 3, 12, 12), "y": torch.randn(2, 4, 3, 3)} for _ in range(5)]
    for batch in batches[since:]:
        batch["x"] = change(batch["x"])
    return loop(model, batches=batches)


@spec.equal
def pictures_are_channels_last_from_the_third_step() -> Loop:
    return images(lambda x: x.contiguous(memory_format=torch.channels_last), 2)


@spec.equal
def pictures_are_channels_last_all_the_time() -> Loop:
    return images(lambda x: x.contiguous(memory_format=torch.channels_last), 0)


@spec.equal
def pictures_come_as_rows_and_are_permuted_from_the_second_step() -> Loop:
    return images(lambda x: x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2), 1)


@spec.equal
def a_matrix_is_transposed_from_the_third_step() -> Loop:
    batches = inputs()
    for batch in batches[2:]:
        batch["x"] = batch["x"].t().contiguous().t()
    return loop(batches=batches)


@spec.equal
def code_asks_for_the_strides_of_the_batch() -> Loop:
    batches = inputs()
    batches[3]["x"] = batches[3]["x"].t().contiguous().t()
    return loop(loss=lambda m, b: squares(m, b) * (1.0 if b["x"].is_contiguous() else 0.5), batches=batches)


@spec.equal
def batches_are_slices_of_one_large_tensor() -> Loop:
    data = torch.randn(20, 16)
    batches = [{"x": data[4 * n : 4 * n + 4, ::2], "y": data[4 * n : 4 * n + 4, 12:]} for n in range(5)]
    return loop(batches=batches)


@spec.equal
def batches_are_expanded_rows() -> Loop:
    return made(lambda b: {"x": b["x"][:1].expand(4, 8), "y": b["y"]})


@spec.equal
def one_batch_is_expanded_and_the_others_are_not() -> Loop:
    batches = inputs()
    batches[2]["x"] = batches[2]["x"][:1].expand(4, 8)
    return loop(batches=batches)


@spec.equal
def the_first_batch_alone_is_expanded() -> Loop:
    batches = inputs()
    batches[0]["x"] = batches[0]["x"][:1].expand(4, 8)
    return loop(batches=batches)


@spec.equal
def overlapping_windows_of_one_sequence() -> Loop:
    return made(lambda b: {"x": b["x"].flatten()[:11].unfold(0, 8, 1), "y": b["y"]})


@spec.equal_or_refused
def input_and_target_are_one_tensor_in_the_first_batch_alone() -> Loop:
    batches = [{"x": torch.randn(4, 8), "y": torch.randn(4, 8)} for _ in range(5)]
    batches[0]["y"] = batches[0]["x"]
    return loop(nn.Linear(8, 8), batches=batches)


@spec.equal
def input_and_target_are_one_tensor_in_a_later_batch() -> Loop:
    batches = [{"x": torch.randn(4, 8), "y": torch.randn(4, 8)} for _ in range(5)]
    batches[3]["y"] = batches[3]["x"]
    return loop(nn.Linear(8, 8), batches=batches)


@pytest.mark.parametrize("case", spec.cases)
def test_batches_are_taken_as_they_are(case: Case) -> None:
    case.check()
