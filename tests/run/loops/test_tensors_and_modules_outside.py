"""Tensors, teachers and loss modules that the loss reads from outside of the model."""

from __future__ import annotations

import copy
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from beside_eager import Loop
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from tests.run.loops.harness import Case, Net, Specification, at, inputs, loop, squares

spec = Specification()
TARGET = torch.zeros(4)
TABLE: dict[str, Any] = {}


def weighted(read: Callable[[], Any], **rest: Any) -> Loop:
    """A loop whose loss is multiplied by what a function reads."""
    return loop(loss=lambda model, batch: squares(model, batch) * read(), **rest)


def distilled(teacher: nn.Module, **rest: Any) -> Loop:
    def loss(model: Any, batch: Any) -> Tensor:
        with torch.no_grad():
            goal = teacher(batch["x"])
        return mse_loss(model(batch["x"]), goal) + squares(model, batch)

    return loop(loss=loss, also=teacher, **rest)


@spec.equal
def a_tensor_in_a_closure_is_written_in_place() -> Loop:
    weight = torch.ones(())
    return weighted(lambda: weight, before=at({2: lambda: weight.mul_(0.5)}))


@spec.equal
def a_tensor_in_a_closure_is_written_through_data() -> Loop:
    weight = torch.ones(4)
    return weighted(lambda: weight.mean() / 2, before=at({2: lambda: weight.data.mul_(0.5)}))


@spec.equal
def a_tensor_in_a_closure_is_written_through_numpy() -> Loop:
    weight = torch.ones(4)
    return weighted(lambda: weight.mean() / 2, before=at({2: lambda: weight.numpy().fill(0.5)}))


@spec.equal
def a_tensor_in_a_closure_is_replaced() -> Loop:
    weight = torch.ones(())

    def replace() -> None:
        nonlocal weight
        weight = torch.tensor(0.5)

    return loop(loss=lambda model, batch: squares(model, batch) * weight, before=at({2: replace}))


@spec.equal
def a_tensor_in_a_list_in_a_closure_is_replaced() -> Loop:
    weights = [torch.ones(())]
    return weighted(lambda: weights[0], before=at({2: lambda: weights.__setitem__(0, torch.tensor(0.5))}))


@spec.equal
def a_global_tensor_is_rewritten() -> Loop:
    TARGET.zero_()
    return loop(
        loss=lambda model, batch: mse_loss(model(batch["x"]), TARGET.expand(4, 4)),
        before=at({2: lambda: TARGET.fill_(1.0), 4: lambda: TARGET.data.fill_(2.0)}),
    )


@spec.equal
def a_global_tensor_is_replaced() -> Loop:
    TABLE["target"] = torch.zeros(4, 4)
    return loop(
        loss=lambda model, batch: mse_loss(model(batch["x"]), TABLE["target"]),
        before=at({2: lambda: TABLE.update(target=torch.ones(4, 4))}),
    )


@spec.equal
def forward_reads_a_tensor_in_a_closure_that_is_replaced() -> Loop:
    shift = {"now": torch.zeros(4)}

    class Own(Net):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) + shift["now"]

    return loop(Own(), before=at({2: lambda: shift.update(now=torch.ones(4))}))


@spec.equal_or_refused
def a_parameter_outside_the_model_is_trained_by_a_loop_of_its_own() -> Loop:
    weight = nn.Parameter(torch.ones(()))

    def ascend(number: int, loss: float) -> None:
        weight.data.add_(0.1 if weight.grad is None else weight.grad)
        weight.grad = None

    return loop(loss=lambda model, batch: squares(model, batch) * weight, after=ascend, also=weight)


@spec.equal
def class_weights_in_a_closure_are_estimated_between_steps() -> Loop:
    weights, counts = torch.ones(4), torch.ones(4)
    batches = [{**batch, "y": torch.randint(0, 4, (4,))} for batch in inputs()]

    def estimate(number: int) -> None:
        counts.add_(torch.bincount(batches[number]["y"], minlength=4))
        weights.copy_(counts.sum() / counts)

    return loop(
        loss=lambda m, b: nn.functional.cross_entropy(m(b["x"]), b["y"], weights), batches=batches, before=estimate
    )


@spec.equal
def a_frozen_teacher_in_a_closure() -> Loop:
    return distilled(Net().requires_grad_(False).eval())


@spec.equal
def a_teacher_that_wants_gradients_itself() -> Loop:
    return distilled(Net())


@spec.equal
def a_teacher_that_the_user_averages_between_steps() -> Loop:
    model = Net()
    teacher = copy.deepcopy(model).requires_grad_(False)

    def average(number: int, loss: float) -> None:
        with torch.no_grad():
            for ours, theirs in zip(model.parameters(), teacher.parameters(), strict=True):
                theirs.mul_(0.9).add_(ours, alpha=0.1)

    return distilled(teacher, model=model, after=average)


@spec.equal
def a_teacher_that_the_user_averages_through_data() -> Loop:
    model = Net()
    teacher = copy.deepcopy(model).requires_grad_(False)

    def average(number: int, loss: float) -> None:
        for ours, theirs in zip(model.parameters(), teacher.parameters(), strict=True):
            theirs.data.lerp_(ours.data, 0.1)

    return distilled(teacher, model=model, after=average)


@spec.equal
def a_teacher_loads_the_students_weights() -> Loop:
    model, teacher = Net(), Net()
    return distilled(teacher, model=model, before=at({3: lambda: teacher.load_state_dict(model.state_dict())}))


@spec.equal
def a_teacher_is_replaced_by_a_copy_of_the_student() -> Loop:
    model = Net()
    teachers = [Net().requires_grad_(False)]
    return loop(
        model,
        lambda m, b: mse_loss(m(b["x"]), teachers[0](b["x"])),
        before=at({2: lambda: teachers.__setitem__(0, copy.deepcopy(model).requires_grad_(False))}),
    )


@spec.equal
def a_teacher_goes_from_training_to_evaluation() -> Loop:
    teacher = nn.Sequential(nn.Linear(8, 4), nn.Dropout(0.5)).requires_grad_(False)
    return distilled(teacher, before=at({2: teacher.eval}))


@spec.equal_or_refused
def a_teacher_with_running_statistics_that_training_updates() -> Loop:
    return distilled(nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4)).requires_grad_(False))


@spec.equal
def a_teacher_is_an_attribute_of_an_object_in_the_closure() -> Loop:
    holder = types.SimpleNamespace(teacher=Net().requires_grad_(False))
    edits = {
        2: holder.teacher.first.weight.data.zero_,
        3: lambda: setattr(holder, "teacher", nn.Linear(8, 4)),
    }
    return loop(loss=lambda m, b: mse_loss(m(b["x"]), holder.teacher(b["x"]).detach()), before=at(edits), also=holder)


@spec.equal
def a_loss_module_with_weights_that_are_rewritten() -> Loop:
    criterion = nn.CrossEntropyLoss(weight=torch.ones(4))
    batches = [{**batch, "y": torch.randint(0, 4, (4,))} for batch in inputs()]
    return loop(
        loss=lambda m, b: criterion(m(b["x"]), b["y"]),
        batches=batches,
        before=at({2: lambda: criterion.weight.copy_(torch.tensor([1.0, 2.0, 3.0, 4.0]))}),
    )


@spec.equal
def a_loss_module_has_a_setting_changed() -> Loop:
    criterion = nn.CrossEntropyLoss(label_smoothing=0.0)
    batches = [{**batch, "y": torch.randint(0, 4, (4,))} for batch in inputs()]
    return loop(
        loss=lambda m, b: criterion(m(b["x"]), b["y"]),
        batches=batches,
        before=at({2: lambda: setattr(criterion, "label_smoothing", 0.1)}),
    )


@spec.equal
def a_loss_module_is_replaced_by_another() -> Loop:
    criteria = {"now": nn.MSELoss()}
    return loop(
        loss=lambda m, b: criteria["now"](m(b["x"]), b["y"]), before=at({2: lambda: criteria.update(now=nn.L1Loss())})
    )


@pytest.mark.parametrize("case", spec.cases)
def test_what_code_reads_outside_the_model_is_followed(case: Case) -> None:
    case.check()
