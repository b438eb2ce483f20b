"""Numbers, text and flags on the model, in every kind of container, that the user changes between steps."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import pytest
import torch
from beside_eager import Loop
from torch import Tensor, nn

from tests.run.loops.harness import Case, Net, Specification
from tests.run.loops.models import edited, layers, put, scaled

spec = Specification()


class Mode(Enum):
    SINE = 1
    COSINE = 2


@dataclass
class Config:
    alpha: float = 1.0
    activation: str = "sin"


@spec.equal
def a_number_on_the_model() -> Loop:
    return scaled(lambda m: m.alpha, {2: put("alpha", 0.5), 4: put("alpha", 2.0)}, alpha=1.0)


@spec.equal
def a_number_that_goes_back_and_forth() -> Loop:
    edits = {number: put("alpha", 1.0 + number % 2) for number in range(5)}
    return scaled(lambda m: m.alpha, edits, alpha=1.0)


@spec.equal
def a_private_number() -> Loop:
    return scaled(lambda m: m._alpha, {2: put("_alpha", 0.5)}, _alpha=1.0)


@spec.equal
def a_number_behind_a_property() -> Loop:
    class Behind(Net):
        _alpha = 1.0

        @property
        def alpha(self) -> float:
            return self._alpha

        @alpha.setter
        def alpha(self, value: float) -> None:
            self._alpha = value

        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) * self.alpha

    return edited(Behind(), {2: put("alpha", 0.25)})


@spec.equal
def zero_becomes_minus_zero() -> Loop:
    return scaled(lambda m: 1 / torch.tensor(m.alpha).add(1e-30).copysign(torch.tensor(m.alpha)).sign(),
                  {2: put("alpha", -0.0)}, alpha=0.0)  # fmt: skip


@spec.equal
def one_becomes_true_and_then_a_float() -> Loop:
    def factor(model: Any) -> float:
        return {int: 1.0, bool: 2.0, float: 3.0}[type(model.alpha)]

    return scaled(factor, {2: put("alpha", True), 3: put("alpha", 1.0)}, alpha=1)


@spec.equal
def a_number_in_a_dict() -> Loop:
    return scaled(lambda m: m.config["alpha"], {2: lambda m: m.config.update(alpha=0.5)}, config={"alpha": 1.0})


@spec.equal
def a_number_in_a_list_in_a_dict() -> Loop:
    return scaled(lambda m: m.config["a"][1], {2: lambda m: m.config["a"].__setitem__(1, 0.5)}, config={"a": [0.0, 1]})


@spec.equal
def a_number_in_a_list() -> Loop:
    return scaled(lambda m: m.alphas[0], {2: lambda m: m.alphas.__setitem__(0, 0.5)}, alphas=[1.0, 2.0])


@spec.equal
def a_list_gets_longer() -> Loop:
    return scaled(lambda m: sum(m.alphas), {2: lambda m: m.alphas.append(0.5)}, alphas=[1.0, 2.0])


@spec.equal
def a_number_in_a_namespace() -> Loop:
    space = types.SimpleNamespace(alpha=1.0)
    return scaled(lambda m: m.space.alpha, {2: lambda m: setattr(m.space, "alpha", 0.5)}, space=space)


@spec.equal
def a_number_in_a_dataclass() -> Loop:
    return scaled(lambda m: m.config.alpha, {2: lambda m: setattr(m.config, "alpha", 0.5)}, config=Config())


@spec.equal
def a_dataclass_is_replaced() -> Loop:
    return scaled(lambda m: m.config.alpha, {2: put("config", Config(0.5))}, config=Config())


@spec.equal
def a_number_in_an_object_with_slots() -> Loop:
    class Slotted:
        __slots__ = ("alpha",)

        def __init__(self) -> None:
            self.alpha = 1.0

    return scaled(lambda m: m.kept.alpha, {2: lambda m: setattr(m.kept, "alpha", 0.5)}, kept=Slotted())


@spec.equal
def a_number_in_a_numpy_array() -> Loop:
    return scaled(lambda m: float(m.alphas[1]), {2: lambda m: m.alphas.__setitem__(1, 0.5)}, alphas=np.ones(3))


@spec.equal
def a_numpy_array_becomes_a_tensor_in_forward() -> Loop:
    edits = {2: lambda m: m.mask.__setitem__(slice(0, 2), 0.0)}
    return scaled(lambda m: torch.tensor(m.mask), edits, mask=np.ones(4, np.float32))


@spec.equal
def a_numpy_array_shares_its_bytes_with_a_tensor_in_forward() -> Loop:
    edits = {2: lambda m: m.mask.__setitem__(slice(0, 2), 0.0)}
    return scaled(lambda m: torch.from_numpy(m.mask), edits, mask=np.ones(4, np.float32))


@spec.equal
def a_numpy_number() -> Loop:
    return scaled(lambda m: float(m.alpha), {2: put("alpha", np.float64(0.5))}, alpha=np.float64(1.0))


@spec.equal
def a_number_on_the_class() -> Loop:
    class Own(Net):
        alpha = 1.0

        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) * self.alpha

    return edited(Own(), {2: lambda m: setattr(type(m), "alpha", 0.5)})


@spec.equal
def a_number_as_a_default_argument_of_forward() -> Loop:
    class Own(Net):
        def forward(self, x: Tensor, alpha: float = 1.0) -> Tensor:
            return super().forward(x) * alpha

    return edited(Own(), {2: lambda m: setattr(type(m).forward, "__defaults__", (0.5,))})


@spec.equal
def a_number_as_an_attribute_of_a_function() -> Loop:
    def helper() -> float:
        return helper.alpha

    helper.alpha = 1.0
    return scaled(lambda m: m.helper(), {2: lambda m: setattr(m.helper, "alpha", 0.5)}, helper=helper)


@spec.equal
def a_number_in_a_partial_function() -> Loop:
    def times(value: float, by: float) -> float:
        return value * by

    edits = {2: lambda m: m.act.keywords.update(by=3.0), 3: put("act", functools.partial(times, by=0.5))}
    return scaled(lambda m: m.act(1.0), edits, act=functools.partial(times, by=2.0))


@spec.equal
def a_number_in_the_closure_of_a_function_on_the_model() -> Loop:
    def power(by: float) -> Callable[[], float]:
        return lambda: by

    return scaled(lambda m: m.act(), {2: put("act", power(0.5))}, act=power(2.0))


@spec.equal
def the_attribute_is_removed() -> Loop:
    return scaled(lambda m: getattr(m, "alpha", 1.0), {2: lambda m: delattr(m, "alpha")}, alpha=2.0)


@spec.equal
def the_attribute_is_new() -> Loop:
    return scaled(lambda m: getattr(m, "alpha", 1.0), {2: put("alpha", 2.0)})


@spec.equal
def text_chooses_the_activation() -> Loop:
    class Own(Net):
        activation = "sin"

        def forward(self, x: Tensor) -> Tensor:
            return getattr(torch, self.activation)(super().forward(x))

    return edited(Own(), {2: put("activation", "cos"), 4: put("activation", "tanh")})


@spec.equal
def an_enumeration_chooses_the_branch() -> Loop:
    return scaled(lambda m: 1.0 if m.mode is Mode.SINE else 2.0, {2: put("mode", Mode.COSINE)}, mode=Mode.SINE)


@spec.equal
def a_set_of_names_chooses_the_branch() -> Loop:
    return scaled(lambda m: 2.0 if "big" in m.flags else 1.0, {2: lambda m: m.flags.add("big")}, flags={"small"})


@spec.equal
def a_dtype_is_changed() -> Loop:
    return scaled(lambda m: torch.full((4,), 1 / 3, dtype=m.kind), {2: put("kind", torch.float64)}, kind=torch.float16)


@spec.equal
def a_slice_is_changed() -> Loop:
    return scaled(lambda m: torch.arange(8.0)[m.part], {2: put("part", slice(1, 5))}, part=slice(0, 4))


@spec.equal
def an_attribute_of_a_module_without_parameters() -> Loop:
    return edited(layers(middle=nn.LeakyReLU(0.1)), {2: lambda m: setattr(m[1], "negative_slope", 0.5)})


@spec.equal
def the_probability_of_dropout() -> Loop:
    return edited(
        layers(middle=nn.Dropout(0.1)), {1: lambda m: setattr(m[1], "p", 0.8), 3: lambda m: setattr(m[1], "p", 0)}
    )


@spec.equal
def the_momentum_of_batch_norm() -> Loop:
    model = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4))
    return edited(model, {2: lambda m: setattr(m[1], "momentum", 0.5)})


@pytest.mark.parametrize("case", spec.cases)
def test_what_a_user_changes_between_steps_is_followed(case: Case) -> None:
    case.check()
