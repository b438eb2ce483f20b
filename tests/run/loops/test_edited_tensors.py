"""Tensors that are neither parameters nor buffers, edited by the user in every way there is."""

from __future__ import annotations

import types

import pytest
import torch
from beside_eager import Loop

from tests.run.loops.harness import Case, Specification
from tests.run.loops.models import put, scaled

spec = Specification()


@spec.equal
def a_plain_tensor_is_replaced() -> Loop:
    return scaled(lambda m: m.mask, {2: put("mask", torch.full((4,), 0.5))}, mask=torch.ones(4))


@spec.equal
def a_plain_tensor_of_another_shape() -> Loop:
    return scaled(lambda m: m.mask, {2: put("mask", torch.full((4, 1), 0.5))}, mask=torch.ones(4))


@spec.equal
def a_plain_tensor_is_written_in_place() -> Loop:
    return scaled(lambda m: m.mask, {2: lambda m: m.mask.mul_(0.5)}, mask=torch.ones(4))


@spec.equal
def a_plain_tensor_is_written_through_data() -> Loop:
    return scaled(lambda m: m.mask, {2: lambda m: m.mask.data.mul_(0.5)}, mask=torch.ones(4))


@spec.equal
def a_plain_tensor_is_written_through_numpy() -> Loop:
    return scaled(lambda m: m.mask, {2: lambda m: m.mask.numpy().fill(0.5)}, mask=torch.ones(4))


@spec.equal
def a_tensor_in_a_list_is_replaced() -> Loop:
    return scaled(lambda m: m.masks[0], {2: lambda m: m.masks.__setitem__(0, torch.zeros(4))}, masks=[torch.ones(4)])


@spec.equal
def a_tensor_in_a_dict_is_written_through_data() -> Loop:
    return scaled(lambda m: m.masks["a"], {2: lambda m: m.masks["a"].data.mul_(0.5)}, masks={"a": torch.ones(4)})


@spec.equal
def a_tensor_in_a_tuple_of_lists_is_written_through_numpy() -> Loop:
    return scaled(lambda m: m.masks[0][0], {2: lambda m: m.masks[0][0].numpy().fill(0)}, masks=([torch.ones(4)],))


@spec.equal
def a_tensor_in_a_namespace_is_replaced() -> Loop:
    edits = {2: lambda m: setattr(m.space, "mask", torch.zeros(4))}
    return scaled(lambda m: m.space.mask, edits, space=types.SimpleNamespace(mask=torch.ones(4)))


@pytest.mark.parametrize("case", spec.cases)
def test_what_a_user_changes_between_steps_is_followed(case: Case) -> None:
    case.check()
