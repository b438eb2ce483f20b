"""Settings and state of the optimizer that the user changes between steps."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from beside_eager import Loop
from torch import nn

from tests.run.loops.harness import Case, Net, Specification, adam, loop, sgd, squares
from tests.run.loops.models import Edit, tuned

spec = Specification()


def group(**values: Any) -> Edit:
    return lambda optimizer, model: optimizer.param_groups[0].update(values)


def adamw(model: nn.Module, **options: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), **{"lr": 0.01, "foreach": False} | options)


def turn_on_amsgrad(optimizer: torch.optim.Optimizer) -> None:
    optimizer.param_groups[0]["amsgrad"] = True
    for state in optimizer.state.values():
        state["max_exp_avg_sq"] = torch.zeros_like(state["exp_avg_sq"])


@spec.equal
def the_learning_rate_is_edited() -> Loop:
    return tuned(sgd, {2: group(lr=0.01), 4: group(lr=0.5)})


@spec.equal
def the_learning_rate_is_a_tensor_that_is_written() -> Loop:
    return tuned(adam, {2: lambda optimizer, model: optimizer.param_groups[0]["lr"].fill_(0.1)}, lr=torch.tensor(0.01))


@spec.equal
def the_learning_rate_becomes_a_tensor() -> Loop:
    return tuned(adam, {2: group(lr=torch.tensor(0.05))})


@spec.equal
def the_learning_rate_is_nought_for_two_steps() -> Loop:
    return tuned(sgd, {1: group(lr=0.0), 3: group(lr=0.1)})


@spec.equal
def weight_decay_is_switched_on_in_mid_training() -> Loop:
    return tuned(sgd, {2: group(weight_decay=0.1)})


@spec.equal
def weight_decay_is_switched_on_and_off_under_adamw() -> Loop:
    return tuned(adamw, {2: group(weight_decay=0.5), 4: group(weight_decay=0.0)}, weight_decay=0.0)


@spec.equal
def momentum_is_switched_on_in_mid_training() -> Loop:
    return tuned(sgd, {2: group(momentum=0.9)}, momentum=0.0)


@spec.equal
def momentum_is_switched_off_in_mid_training() -> Loop:
    return tuned(sgd, {2: group(momentum=0.0), 4: group(momentum=0.9)})


@spec.equal
def nesterov_is_switched_on_in_mid_training() -> Loop:
    return tuned(sgd, {2: group(nesterov=True)})


@spec.equal
def maximize_is_switched_on_in_mid_training() -> Loop:
    return tuned(sgd, {2: group(maximize=True), 3: group(maximize=False)}, maximize=False)


@spec.equal
def the_betas_and_eps_of_adam_are_edited() -> Loop:
    return tuned(adam, {2: group(betas=(0.5, 0.9)), 3: group(eps=1e-3)})


@spec.equal_or_refused
def the_betas_of_adam_are_tensors() -> Loop:
    betas = (torch.tensor(0.9), torch.tensor(0.999))
    return tuned(adam, {2: lambda optimizer, model: optimizer.param_groups[0]["betas"][0].fill_(0.5)}, betas=betas)


@spec.equal_or_refused
def amsgrad_is_switched_on_in_mid_training() -> Loop:
    return tuned(adam, {2: lambda optimizer, model: turn_on_amsgrad(optimizer)})


@spec.equal
def dampening_damps_all_but_the_first_gradient() -> Loop:
    return tuned(sgd, dampening=0.5)


@spec.equal
def momentum_is_really_minus_zero_under_dampening() -> Loop:
    model = Net()
    optimizer = sgd(model, dampening=0.5)
    for parameter in model.parameters():
        optimizer.state[parameter]["momentum_buffer"] = torch.full_like(parameter, -0.0, requires_grad=False)
    return loop(model, optimizer=optimizer)


@spec.equal
def momentum_becomes_minus_zero_in_mid_training_under_dampening() -> Loop:
    def clear(optimizer: torch.optim.Optimizer, model: Net) -> None:
        for state in optimizer.state.values():
            state["momentum_buffer"].fill_(-0.0)

    return tuned(sgd, {3: clear}, dampening=0.5)


@spec.equal
def gradients_of_minus_zero_reach_a_fresh_momentum() -> Loop:
    model = Net()
    return loop(model, lambda m, b: squares(m, b) * -0.0, optimizer=sgd(model, dampening=0.5))


@spec.equal
def numbers_in_a_group_that_the_optimizer_does_not_know() -> Loop:
    return tuned(sgd, {2: group(name="mine", scale=3.0)})


@spec.equal
def momentum_is_written_through_data() -> Loop:
    return tuned(sgd, {2: lambda o, m: o.state[m.first.weight]["momentum_buffer"].data.zero_()})


@spec.equal
def momentum_is_written_in_place() -> Loop:
    return tuned(sgd, {2: lambda o, m: o.state[m.first.weight]["momentum_buffer"].mul_(0.5)})


@spec.equal
def a_row_of_adams_average_is_written_through_numpy() -> Loop:
    return tuned(adam, {2: lambda o, m: o.state[m.first.weight]["exp_avg"][1].numpy().fill(0.5)})


@spec.equal
def adams_count_of_steps_is_set_back() -> Loop:
    def reset(optimizer: torch.optim.Optimizer, model: Net) -> None:
        for state in optimizer.state.values():
            state["step"].zero_()

    return tuned(adam, {3: reset})


@spec.equal
def adams_count_of_steps_is_set_back_through_data() -> Loop:
    def reset(optimizer: torch.optim.Optimizer, model: Net) -> None:
        for state in optimizer.state.values():
            state["step"].data.fill_(1.0)

    return tuned(adam, {3: reset})


@spec.equal
def the_state_of_one_parameter_is_dropped() -> Loop:
    return tuned(sgd, {2: lambda optimizer, model: optimizer.state.pop(model.first.weight)})


@spec.equal
def all_state_is_cleared() -> Loop:
    return tuned(adam, {3: lambda optimizer, model: optimizer.state.clear()})


@spec.equal
def the_state_is_replaced_by_another_dict() -> Loop:
    def replace(optimizer: torch.optim.Optimizer, model: Net) -> None:
        optimizer.state[model.last.bias] = {"momentum_buffer": torch.ones(4)}

    return tuned(sgd, {2: replace})


@spec.equal
def an_earlier_state_dict_is_loaded() -> Loop:
    saved: list[Any] = []
    edits: dict[int, Edit] = {
        1: lambda optimizer, model: saved.append(copy.deepcopy(optimizer.state_dict())),
        3: lambda optimizer, model: optimizer.load_state_dict(saved[0]),
    }
    return tuned(adam, edits)


@pytest.mark.parametrize("case", spec.cases)
def test_optimizers_and_schedulers_go_on_as_in_eager(case: Case) -> None:
    case.check()
