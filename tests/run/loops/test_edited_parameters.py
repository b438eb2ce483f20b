"""Parameters and buffers that the user freezes, writes, loads or replaces between steps."""

from __future__ import annotations

import copy

import pytest
import torch
from beside_eager import Loop
from torch import Tensor, nn

from tests.run.loops.harness import Case, Net, Specification, adam, at, inputs, loop, sgd
from tests.run.loops.models import edited

spec = Specification()


@spec.equal
def a_layer_is_frozen_and_unfrozen() -> Loop:
    return edited(Net(), {1: lambda m: m.first.requires_grad_(False), 3: lambda m: m.first.requires_grad_(True)})


@spec.equal
def a_layer_frozen_at_first_is_unfrozen_under_adam() -> Loop:
    model = Net()
    model.first.requires_grad_(False)
    return edited(model, {2: lambda m: m.first.requires_grad_(True)}, optimizer=adam(model))


@spec.equal
def a_bias_alone_is_frozen() -> Loop:
    return edited(Net(), {2: lambda m: m.last.bias.requires_grad_(False)})


@spec.equal
def the_data_of_a_parameter_is_replaced() -> Loop:
    new = torch.full((8, 8), 0.1)
    return edited(Net(), {2: lambda m: setattr(m.first.weight, "data", new)})


@spec.equal
def the_data_of_a_parameter_is_transposed_where_it_lies() -> Loop:
    def transpose(m: Net) -> None:
        m.first.weight.data = m.first.weight.data.t()

    return edited(Net(), {4: transpose})  # a step that no second look is made before


@spec.equal
def the_data_of_buffers_and_plain_tensors_is_transposed_where_it_lies() -> Loop:
    class Turned(Net):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("kept", torch.randn(4, 4))
            self.plain = torch.randn(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) @ self.kept @ self.plain

    def transpose(m: Turned) -> None:
        m.kept.data, m.plain.data = m.kept.data.t(), m.plain.data.t()

    return edited(Turned(), {4: transpose})


@spec.equal
def the_data_of_a_parameter_is_scaled() -> Loop:
    return edited(Net(), {2: lambda m: m.first.weight.data.mul_(0.5)})


@spec.equal
def one_row_of_a_parameter_is_zeroed_through_data() -> Loop:
    return edited(Net(), {number: (lambda m: m.first.weight.data[3].zero_()) for number in range(5)})


@spec.equal
def one_element_of_a_parameter_is_written_through_numpy() -> Loop:
    return edited(Net(), {2: lambda m: m.last.bias.detach().numpy().__setitem__(1, 7.0)})


@spec.equal
def weights_are_clipped_after_every_step() -> Loop:
    model = Net()

    def clip(number: int, loss: float) -> None:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.clamp_(-0.2, 0.2)

    return loop(model, after=clip)


@spec.equal
def weights_are_made_anew() -> Loop:
    return edited(Net(), {3: lambda m: nn.init.xavier_uniform_(m.first.weight)})


@spec.equal
def a_parameter_is_replaced_in_model_and_optimizer() -> Loop:
    model = Net()
    optimizer = sgd(model)

    def replace() -> None:
        optimizer.state.pop(model.last.weight)
        model.last.weight = nn.Parameter(torch.ones(4, 8))
        optimizer.param_groups[0]["params"] = list(model.parameters())

    return loop(model, optimizer=optimizer, before=at({2: replace}))


@spec.equal
def a_buffer_is_written_through_data_and_numpy() -> Loop:
    model = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4))
    model[1].register_buffer("shift", torch.zeros(4))
    edits = {2: lambda m: m[1].running_mean.data.add_(1.0), 3: lambda m: m[1].running_var.numpy().fill(2.0)}
    return edited(model, edits)


@spec.equal
def a_buffer_that_forward_only_reads_is_written_through_data() -> Loop:
    class Masked(Net):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mask", torch.ones(4))

        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) * self.mask

    return edited(Masked(), {2: lambda m: m.mask.data.mul_(0.5), 4: lambda m: m.mask.numpy().fill(2.0)})


@spec.equal
def a_state_dict_is_loaded() -> Loop:
    model = Net()
    start = copy.deepcopy(model.state_dict())
    return edited(model, {3: lambda m: m.load_state_dict(start)})


@spec.equal
def a_state_dict_is_loaded_by_assignment() -> Loop:
    model = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4))
    buffers = {name: value.clone() + 1 for name, value in model.state_dict().items() if "running" in name}
    return edited(model, {3: lambda m: m.load_state_dict(buffers, strict=False, assign=True)})


@spec.equal_or_refused
def the_model_becomes_double() -> Loop:
    batches = inputs()
    for number in (3, 4):
        batches[number] = {name: value.double() for name, value in batches[number].items()}
    return edited(Net(), {3: lambda m: m.double()}, batches=batches)


@spec.equal
def weights_are_averaged_by_hand_between_steps() -> Loop:
    model = Net()
    average = copy.deepcopy(model)

    def follow(number: int, loss: float) -> None:
        for ours, theirs in zip(model.parameters(), average.parameters(), strict=True):
            theirs.data.lerp_(ours.data, 0.5)
        if number == 3:
            model.load_state_dict(average.state_dict())

    return loop(model, after=follow, also=average)


@spec.equal
def weights_are_averaged_by_pytorchs_averaged_model() -> Loop:
    model = Net()
    average = torch.optim.swa_utils.AveragedModel(model)
    return loop(model, after=lambda number, loss: average.update_parameters(model), also=average)


@pytest.mark.parametrize("case", spec.cases)
def test_what_a_user_changes_between_steps_is_followed(case: Case) -> None:
    case.check()
