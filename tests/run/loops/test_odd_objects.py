"""Attributes that are hard to look at: no traceback, no hang, no other numbers than eager's."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterator
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from beside_eager import Loop

from tests.run.loops.harness import Case, Net, Specification, loop
from tests.run.loops.models import Fails, Uses, holding

spec = Specification()


@spec.equal
def a_property_of_the_model_raises() -> Loop:
    class Own(Net):
        @property
        def broken(self) -> float:
            raise RuntimeError("not now")

    return loop(Own())


@spec.equal
def an_attribute_of_the_model_cannot_be_compared() -> Loop:
    return holding(Fails())


@spec.equal
def an_object_that_cannot_be_compared_is_replaced() -> Loop:
    return holding(Fails(), {2: lambda model: setattr(model, "odd", Fails())})


@spec.equal
def a_list_and_a_dict_hold_objects_that_cannot_be_compared() -> Loop:
    return holding({"a": [Fails(), 1], "b": (Fails(),)})


@spec.equal
def an_object_compares_as_an_array() -> Loop:
    class Own:
        def __eq__(self, other: object) -> Any:
            return np.array([True, False])

        __hash__ = None  # type: ignore[assignment]

    return holding([Own()], {2: lambda model: setattr(model, "odd", [Own()])})


@spec.equal
def an_object_raises_for_every_attribute() -> Loop:
    class Own:
        def __getattribute__(self, name: str) -> Any:
            if name != "__class__":  # which `nn.Module` itself asks for
                raise RuntimeError(name)
            return object.__getattribute__(self, name)

    return holding(Own())


@spec.equal
def an_object_raises_for_its_dict() -> Loop:
    class Own:
        @property
        def __dict__(self) -> Any:  # type: ignore[override]
            raise RuntimeError("closed")

    return holding(Own())


@spec.equal
def an_object_has_every_attribute_that_is_asked_for() -> Loop:
    return holding(MagicMock())


@spec.equal
def a_mapping_raises_when_it_is_walked() -> Loop:
    class Own(UserDict):
        def __iter__(self) -> Iterator[Any]:
            raise RuntimeError("not now")

    return holding(Own(a=1))


@spec.equal
def a_dict_and_a_list_of_classes_of_their_own_raise_when_they_are_walked() -> Loop:
    class OwnDict(dict):
        def items(self) -> Any:
            raise RuntimeError("not now")

        __iter__ = keys = values = items

    class OwnList(list):
        def __iter__(self) -> Any:
            raise RuntimeError("not now")

    return holding((OwnDict(a=1), OwnList([1])))


@spec.equal
def an_object_lies_about_its_class() -> Loop:
    class Own:
        __class__ = dict  # type: ignore[assignment]

    return holding(Own())


@spec.equal
def an_object_calls_itself_equal_to_everything_and_changes() -> Loop:
    class Own:
        value = 1.0

        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    return holding(Own(), {2: lambda model: setattr(model.odd, "value", 0.5)}, Uses(lambda odd: odd.value))


@pytest.mark.parametrize("case", spec.cases)
def test_what_is_hard_to_look_at_changes_no_number_and_hangs_nothing(case: Case) -> None:
    case.check()
