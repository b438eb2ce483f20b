"""Parameter groups, steps of the user's own, and schedulers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from beside_eager import Loop
from torch import Tensor, nn
from torch.optim import lr_scheduler

from tests.run.loops.harness import Case, Net, Specification, adam, at, inputs, loop, sgd
from tests.run.loops.models import Edit, tuned

spec = Specification()


def scheduled(make: Callable[[Any], Any], build: Callable[..., torch.optim.Optimizer] = sgd) -> Loop:
    model = Net()
    optimizer = build(model)
    return loop(model, optimizer=optimizer, scheduler=make(optimizer))


def group(**values: Any) -> Edit:
    return lambda optimizer, model: optimizer.param_groups[0].update(values)


@spec.equal
def a_group_is_added_in_mid_training() -> Loop:
    model = Net()
    optimizer = torch.optim.SGD(model.first.parameters(), lr=0.1, momentum=0.9, foreach=False)
    add = {2: lambda: optimizer.add_param_group({"params": list(model.last.parameters()), "lr": 0.01})}
    return loop(model, optimizer=optimizer, before=at(add))


@spec.equal
def a_parameter_is_taken_out_of_its_group() -> Loop:
    def take_out(optimizer: torch.optim.Optimizer, model: Net) -> None:
        group = optimizer.param_groups[0]
        group["params"] = [one for one in group["params"] if one is not model.first.bias]
        optimizer.state.pop(model.first.bias)

    return tuned(sgd, {2: take_out})


@spec.equal
def a_layer_and_its_parameters_are_added() -> Loop:
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 4))
    optimizer, extra = sgd(model), nn.Linear(4, 4)

    def add() -> None:
        model.append(extra)
        optimizer.add_param_group({"params": list(extra.parameters())})

    return loop(model, optimizer=optimizer, before=at({2: add}))


@spec.equal
def groups_of_different_rates_change_places() -> Loop:
    model = Net()
    groups = [{"params": list(model.first.parameters()), "lr": 0.1}, {"params": list(model.last.parameters())}]
    optimizer = torch.optim.SGD(groups, lr=0.01, momentum=0.9, foreach=False)
    return loop(model, optimizer=optimizer, before=at({2: optimizer.param_groups.reverse}))


@spec.equal
def the_optimizer_has_a_part_of_the_parameters() -> Loop:
    model = Net()
    return loop(model, optimizer=torch.optim.SGD(model.last.parameters(), lr=0.1, foreach=False))


@spec.equal
def a_parameter_gets_no_gradient() -> Loop:
    model = Net()
    model.unused = nn.Linear(3, 3)
    return loop(model, optimizer=adam(model))


@spec.equal
def a_branch_gets_gradients_only_from_the_third_step() -> Loop:
    class Two(Net):
        wide = False

        def __init__(self) -> None:
            super().__init__()
            self.extra = nn.Linear(8, 4)

        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) + self.extra(x) if self.wide else super().forward(x)

    model = Two()
    return loop(model, optimizer=adam(model), before=at({2: lambda: setattr(model, "wide", True)}))


@spec.equal_or_refused
def the_step_of_the_optimizer_is_replaced_on_the_instance() -> Loop:
    model = Net()
    optimizer = sgd(model)
    original = optimizer.step

    def step(closure: Any = None) -> None:
        for parameter in model.parameters():
            parameter.grad.mul_(0.5)
        original()

    optimizer.step = step
    return loop(model, optimizer=optimizer)


@spec.equal_or_refused
def the_step_of_the_optimizer_is_replaced_in_mid_training() -> Loop:
    model = Net()
    optimizer = sgd(model)

    def step(closure: Any = None) -> None:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.sub_(parameter.grad.sign(), alpha=0.01)

    return loop(model, optimizer=optimizer, before=at({2: lambda: setattr(optimizer, "step", step)}))


@spec.equal_or_refused
def the_optimizer_is_of_a_class_derived_from_sgd() -> Loop:
    class Own(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.grad.sign_()
            super().step(closure)

    model = Net()
    return loop(model, optimizer=Own(model.parameters(), lr=0.01, foreach=False))


@spec.equal_or_refused
def the_optimizer_is_rmsprop() -> Loop:
    model = Net()
    return loop(model, optimizer=torch.optim.RMSprop(model.parameters(), lr=0.01, foreach=False))


@spec.equal_or_refused
def the_optimizer_has_a_hook_before_its_step() -> Loop:
    def halve(optimizer: Any, args: Any, kwargs: Any) -> None:
        for parameter in optimizer.param_groups[0]["params"]:
            parameter.grad.mul_(0.5)

    return tuned(sgd, {2: lambda optimizer, model: optimizer.register_step_pre_hook(halve)})


@spec.equal
def the_user_looks_ahead_and_steps_back() -> Loop:
    model = Net()
    slow = copy.deepcopy(model.state_dict())

    def pull(number: int, loss: float) -> None:
        if number % 2:
            for name, value in model.state_dict().items():
                slow[name].lerp_(value, 0.5)
            model.load_state_dict(slow)

    return loop(model, after=pull)


@spec.equal
def gradients_are_scaled_to_a_norm() -> Loop:
    return loop(options={"clip_norm": 0.1})


@spec.equal
def gradients_that_are_not_finite_are_scaled_to_a_norm() -> Loop:
    batches = inputs()
    batches[3]["x"][0, 0] = float("nan")
    return loop(batches=batches, options={"clip_norm": 0.1})


@spec.equal_or_refused
def an_embedding_gives_sparse_gradients() -> Loop:
    model = nn.Sequential(nn.Embedding(10, 8, sparse=True), nn.Linear(8, 4))
    batches = [{"x": torch.randint(0, 10, (4,)), "y": torch.randn(4, 4)} for _ in range(5)]
    return loop(model, batches=batches, optimizer=torch.optim.SGD(model.parameters(), lr=0.1, foreach=False))


@spec.equal
def a_rate_that_falls_in_steps() -> Loop:
    return scheduled(lambda optimizer: lr_scheduler.StepLR(optimizer, 2, 0.5))


@spec.equal
def a_rate_by_a_function() -> Loop:
    return scheduled(lambda optimizer: lr_scheduler.LambdaLR(optimizer, lambda number: 1 / (1 + number)))


@spec.equal
def a_rate_by_a_function_whose_closure_the_user_changes() -> Loop:
    model, scale = Net(), [1.0]
    optimizer = sgd(model)
    scheduler = lr_scheduler.LambdaLR(optimizer, lambda number: scale[0] / (1 + number))
    return loop(model, optimizer=optimizer, scheduler=scheduler, before=at({2: lambda: scale.__setitem__(0, 3.0)}))


@spec.equal
def one_cycle_moves_rate_and_momentum() -> Loop:
    return scheduled(lambda optimizer: lr_scheduler.OneCycleLR(optimizer, 0.5, total_steps=6))


@spec.equal
def one_cycle_moves_the_betas_of_adam() -> Loop:
    return scheduled(lambda optimizer: lr_scheduler.OneCycleLR(optimizer, 0.5, total_steps=6), adam)


@spec.equal
def a_warm_up_and_then_a_cosine() -> Loop:
    def make(optimizer: Any) -> Any:
        first = lr_scheduler.LinearLR(optimizer, 0.1, total_iters=2)
        return lr_scheduler.SequentialLR(optimizer, [first, lr_scheduler.CosineAnnealingLR(optimizer, 3)], [2])

    return scheduled(make)


@spec.equal
def two_schedulers_chained() -> Loop:
    def make(optimizer: Any) -> Any:
        return lr_scheduler.ChainedScheduler(
            [lr_scheduler.ExponentialLR(optimizer, 0.9), lr_scheduler.ConstantLR(optimizer, 0.5, 2)]
        )

    return scheduled(make)


@spec.equal
def a_plateau_scheduler_is_stepped_by_hand() -> Loop:
    model = Net()
    optimizer = sgd(model)
    plateau = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=0.5)
    return loop(model, optimizer=optimizer, after=lambda number, loss: plateau.step(loss), also=plateau.state_dict())


@spec.equal
def a_scheduler_is_stepped_by_hand_every_other_step() -> Loop:
    model = Net()
    optimizer = sgd(model)
    scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5)
    return loop(model, optimizer=optimizer, after=lambda number, loss: scheduler.step() if number % 2 else None)


@spec.equal
def the_user_edits_the_base_rates_of_a_scheduler() -> Loop:
    model = Net()
    optimizer = sgd(model)
    scheduler = lr_scheduler.LambdaLR(optimizer, lambda number: 0.9**number)
    edits = {3: lambda: scheduler.base_lrs.__setitem__(0, 0.7)}
    return loop(model, optimizer=optimizer, scheduler=scheduler, before=at(edits))


@pytest.mark.parametrize("case", spec.cases)
def test_optimizers_and_schedulers_go_on_as_in_eager(case: Case) -> None:
    case.check()
