"""Batches that are mappings or objects, made anew or refilled."""

from __future__ import annotations

from collections import OrderedDict, UserDict, defaultdict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from beside_eager import Loop
from torch import Tensor
from torch.nn.functional import mse_loss
from transformers import BatchEncoding
from transformers.utils import ModelOutput

from tests.run.loops.harness import Case, Specification, inputs, loop, squares

spec = Specification()
Pair = namedtuple("Pair", "x y")


@dataclass
class Sample:
    x: Tensor
    y: Tensor
    name: str = ""


class Plain:
    def __init__(self, x: Tensor, y: Tensor) -> None:
        self.x, self.y = x, y


def by_attribute(model: Any, batch: Any) -> Tensor:
    return mse_loss(model(batch.x), batch.y)


def made(wrap: Callable[[dict[str, Tensor]], Any], loss: Any = squares, **rest: Any) -> Loop:
    """A loop whose batches are wrapped each."""
    return loop(loss=loss, batches=[wrap(batch) for batch in inputs()], **rest)


def refilled(
    wrap: Callable[[dict[str, Tensor]], Any], fill: Callable[[Any, dict[str, Tensor]], object], loss: Any
) -> Loop:
    """A loop that hands over one object, filled anew before every step."""
    given, kept = inputs(), wrap(inputs()[0])
    return loop(loss=loss, batches=[kept] * 5, before=lambda number: fill(kept, given[number]))


@spec.equal
def the_same_tensors_are_refilled() -> Loop:
    def fill(kept: Any, new: Any) -> None:
        kept["x"].copy_(new["x"])
        kept["y"].copy_(new["y"])

    return refilled(dict, fill, squares)


@spec.equal
def the_same_tensors_are_refilled_through_numpy() -> Loop:
    def fill(kept: Any, new: Any) -> None:
        kept["x"].numpy()[:] = new["x"].numpy()

    return refilled(dict, fill, squares)


@spec.equal
def the_same_dict_gets_new_tensors() -> Loop:
    return refilled(dict, lambda kept, new: kept.update(new), squares)


@spec.equal
def the_same_list_gets_new_tensors() -> Loop:
    def fill(kept: Any, new: Any) -> None:
        kept[:] = new.values()

    return refilled(lambda b: list(b.values()), fill, lambda m, b: mse_loss(m(b[0]), b[1]))


@spec.equal
def the_same_batch_encoding_gets_new_tensors() -> Loop:
    return refilled(BatchEncoding, lambda kept, new: kept.update(new), squares)


@spec.equal
def the_tensors_of_a_batch_encoding_are_refilled() -> Loop:
    return refilled(BatchEncoding, lambda kept, new: kept["x"].copy_(new["x"]), squares)


@spec.equal
def the_same_dataclass_gets_new_tensors() -> Loop:
    return refilled(lambda b: Sample(**b), lambda kept, new: vars(kept).update(new), by_attribute)


@spec.equal_or_refused
def the_same_plain_object_gets_new_tensors() -> Loop:
    return refilled(lambda b: Plain(**b), lambda kept, new: vars(kept).update(new), by_attribute)


@spec.equal
def every_batch_is_a_new_batch_encoding() -> Loop:
    return made(BatchEncoding)


@spec.equal
def every_batch_is_a_user_dict() -> Loop:
    return made(UserDict)


@spec.equal
def every_batch_is_an_ordered_dict_but_the_first() -> Loop:
    batches: list[Any] = inputs()
    batches[1:] = map(OrderedDict, batches[1:])
    return loop(batches=batches)


@spec.equal
def the_keys_come_in_another_order() -> Loop:
    batches: list[Any] = inputs()
    batches[2:] = [dict(reversed(batch.items())) for batch in batches[2:]]
    return loop(batches=batches)


@spec.equal_or_refused
def every_batch_is_a_dict_with_defaults() -> Loop:
    return made(lambda b: defaultdict(Tensor, b))


@spec.equal_or_refused
def every_batch_is_a_read_only_mapping() -> Loop:
    return made(MappingProxyType)


@spec.equal_or_refused
def every_batch_is_of_a_class_derived_from_dict() -> Loop:
    class Own(dict):
        pass

    return made(Own)


@spec.equal
def every_batch_is_a_named_tuple() -> Loop:
    return made(lambda b: Pair(b["x"], b["y"]), by_attribute)


@spec.equal
def every_batch_is_a_dataclass() -> Loop:
    return made(lambda b: Sample(b["x"], b["y"]), by_attribute)


@spec.equal
def every_batch_is_a_dataclass_with_a_name_that_differs() -> Loop:
    batches = [Sample(b["x"], b["y"], f"sample {number}") for number, b in enumerate(inputs())]
    return loop(loss=by_attribute, batches=batches)


@spec.equal_or_refused
def every_batch_is_a_plain_object() -> Loop:
    return made(lambda b: Plain(b["x"], b["y"]), by_attribute)


@spec.equal_or_refused
def every_batch_is_a_namespace() -> Loop:
    return made(lambda b: SimpleNamespace(**b), by_attribute)


@spec.equal_or_refused
def every_batch_is_a_model_output() -> Loop:
    @dataclass
    class Output(ModelOutput):
        x: Tensor | None = None
        y: Tensor | None = None

    return made(lambda b: Output(**b), by_attribute)


@spec.equal
def every_batch_is_a_list_in_a_tuple_in_a_dict() -> Loop:
    return made(lambda b: {"in": ([b["x"]], {"y": b["y"]})}, lambda m, b: mse_loss(m(b["in"][0][0]), b["in"][1]["y"]))


@spec.equal_or_refused
def every_batch_is_an_object_within_a_dict() -> Loop:
    return made(lambda b: {"sample": Plain(**b)}, lambda m, b: by_attribute(m, b["sample"]))


@spec.equal
def every_batch_is_a_tensor() -> Loop:
    return made(lambda b: b["x"], lambda m, b: m(b).square().mean())


@pytest.mark.parametrize("case", spec.cases)
def test_batches_are_taken_as_they_are(case: Case) -> None:
    case.check()
