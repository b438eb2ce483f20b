"""Submodules and code of the model that the user replaces between steps."""

from __future__ import annotations

import pytest
import torch
from beside_eager import Loop
from torch import Tensor, nn
from torch.nn.utils import prune

from tests.run.loops.harness import Case, Net, Specification, at, loop, sgd
from tests.run.loops.models import edited, layers, put, scaled

spec = Specification()


@spec.equal
def a_submodule_is_replaced_by_another_of_its_class() -> Loop:
    model = layers()
    new = nn.Linear(8, 4)

    def replace() -> None:
        for old in model[2].parameters():
            optimizer.state.pop(old)
        model[2] = new
        optimizer.param_groups[0]["params"] = list(model.parameters())

    optimizer = sgd(model)
    return loop(model, optimizer=optimizer, before=at({2: replace}))


@spec.equal
def a_submodule_is_replaced_by_one_of_another_class() -> Loop:
    return edited(layers(), {2: lambda m: m.__setitem__(1, nn.ReLU()), 4: lambda m: m.__setitem__(1, nn.GELU())})


@spec.equal
def a_submodule_is_replaced_by_an_identity() -> Loop:
    return edited(layers(), {3: lambda m: m.__setitem__(1, nn.Identity())})


@spec.equal
def an_activation_of_the_same_class_has_another_setting() -> Loop:
    return edited(layers(middle=nn.ELU(1.0)), {2: lambda m: m.__setitem__(1, nn.ELU(0.3))})


@spec.equal
def a_layer_is_appended() -> Loop:
    return edited(layers(), {2: lambda m: m.append(nn.Sigmoid())})


@spec.equal
def two_layers_change_places() -> Loop:
    class Listed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers, self.last = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)]), nn.Linear(8, 4)

        def forward(self, x: Tensor) -> Tensor:
            for layer in self.layers:
                x = torch.tanh(layer(x))
            return self.last(x)

    return edited(Listed(), {2: lambda m: setattr(m, "layers", nn.ModuleList(list(m.layers)[::-1]))})


@spec.equal
def a_module_in_a_plain_list_is_replaced() -> Loop:
    return scaled(
        lambda m: m.acts[0](torch.ones(4)), {2: lambda m: m.acts.__setitem__(0, nn.Sigmoid())}, acts=[nn.Tanh()]
    )


@spec.equal
def the_activation_is_a_function_and_is_replaced() -> Loop:
    return scaled(lambda m: m.act(torch.ones(4)), {2: put("act", torch.sin)}, act=torch.tanh)


@spec.equal
def the_activation_is_a_lambda_of_the_same_code_with_another_constant() -> Loop:
    acts = [lambda x: x * 2.0, lambda x: x * 3.0]
    return scaled(lambda m: m.act(torch.ones(4)), {2: put("act", acts[1])}, act=acts[0])


@spec.equal
def forward_is_replaced_on_the_instance() -> Loop:
    return edited(Net(), {2: lambda m: setattr(m, "forward", lambda x: m.last(torch.sin(m.first(x))))})


@spec.equal
def forward_is_replaced_on_the_class() -> Loop:
    class Own(Net):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x)

    return edited(Own(), {2: lambda m: setattr(type(m), "forward", lambda self, x: self.last(self.first(x).sin()))})


@spec.equal
def another_method_is_replaced_on_the_class() -> Loop:
    class Own(Net):
        def forward(self, x: Tensor) -> Tensor:
            return self.scale(super().forward(x))

        def scale(self, x: Tensor) -> Tensor:
            return x

    return edited(Own(), {2: lambda m: setattr(type(m), "scale", lambda self, x: x * 2)})


@spec.equal
def the_class_of_a_module_is_changed() -> Loop:
    class Sine(nn.Tanh):
        def forward(self, x: Tensor) -> Tensor:
            return torch.sin(x)

    return edited(layers(), {2: lambda m: setattr(m[1], "__class__", Sine)})


@spec.equal_or_refused
def weights_are_tied_in_mid_training() -> Loop:
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 4))
    return edited(model, {2: lambda m: setattr(m[1], "weight", m[0].weight)})


@spec.equal_or_refused
def weights_are_pruned_in_mid_training() -> Loop:
    return edited(layers(), {2: lambda m: prune.l1_unstructured(m[0], "weight", 0.5)})


@spec.equal
def a_part_is_set_to_evaluate() -> Loop:
    model = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    return edited(model, {2: lambda m: m[1].eval(), 3: lambda m: m[2].eval(), 4: lambda m: m.train()})


@spec.equal
def the_attention_of_a_transformer_is_switched() -> Loop:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=16, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        attn_implementation="eager",
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    ids = [torch.randint(0, 16, (2, 6)) for _ in range(5)]
    return edited(
        model,
        {2: lambda m: m.set_attn_implementation("sdpa"), 4: lambda m: m.set_attn_implementation("eager")},
        batches=[{"input_ids": each, "labels": each} for each in ids],
        loss=lambda m, b: m(**b).loss,
    )


@pytest.mark.parametrize("case", spec.cases)
def test_what_a_user_changes_between_steps_is_followed(case: Case) -> None:
    case.check()
