"""Containers that hold themselves, are huge, or are of an odd kind."""

from __future__ import annotations

import functools
import itertools
import logging
import threading
import weakref
from collections import ChainMap, Counter, UserList, defaultdict
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from beside_eager import Loop

from tests.run.loops.harness import Case, Net, Specification, loop, sgd
from tests.run.loops.models import Fails, Uses, holding

spec = Specification()


def itself() -> list[Any]:
    held: list[Any] = [1.0]
    held.append(held)
    return held


@spec.equal
def a_list_holds_itself() -> Loop:
    return holding(itself())


@spec.equal
def a_list_that_holds_itself_is_changed() -> Loop:
    return holding(itself(), {2: lambda model: model.odd.__setitem__(0, 0.5)}, Uses(lambda odd: odd[1][1][0]))


@spec.equal
def a_dict_holds_itself_and_the_model() -> Loop:
    model = Net()
    held: dict[str, Any] = {"model": [model], "parameters": list(model.parameters())}
    held["self"] = held
    return holding(held, model=model)


@spec.equal
def two_objects_hold_each_other() -> Loop:
    class Node:
        other: Any = None
        value = 1.0

    one, two = Node(), Node()
    one.other, two.other = two, one
    return holding(one, {2: lambda model: setattr(two, "value", 0.5)}, Uses(lambda odd: odd.other.value))


@spec.equal
def a_list_is_nested_ten_thousand_deep() -> Loop:
    held: list[Any] = []
    for _ in range(10_000):
        held = [held]
    return holding(held)


@spec.equal
def a_list_of_a_million_numbers() -> Loop:
    return holding(list(range(1_000_000)))


@spec.equal_or_refused_by_the_second_look
def one_of_a_million_numbers_is_changed() -> Loop:
    edits = {2: lambda model: model.odd.__setitem__(700_000, 3.0)}
    return holding([1.0] * 1_000_000, edits, Uses(lambda odd: odd[700_000]))


@spec.equal
def a_dict_of_a_hundred_thousand_lists() -> Loop:
    return holding({str(number): [number] for number in range(100_000)})


@spec.equal
def a_thousand_tensors_in_a_list() -> Loop:
    return holding(
        [torch.ones(2) for _ in range(1000)], {2: lambda m: m.odd[900].zero_()}, Uses(lambda odd: odd[900][0])
    )


@spec.equal
def an_array_of_four_million_numbers() -> Loop:
    return holding(np.zeros(4_000_000, np.float32))


@spec.equal
def an_array_of_objects() -> Loop:
    return holding(np.array([Fails(), None, "text"], dtype=object))


@spec.equal
def numbers_that_are_not_numbers_equal_themselves() -> Loop:
    nan = float("nan")
    return holding({"a": nan, "b": [nan, np.float64("nan")], "c": np.array([nan]), "d": torch.tensor(nan)})


@spec.equal_or_refused
def a_dict_whose_keys_are_tensors() -> Loop:
    key = torch.ones(1)
    return holding({key: 1.0}, {2: lambda model: model.odd.update({key: 0.5})}, Uses(lambda odd: odd[key]))


@spec.equal
def containers_of_the_standard_library() -> Loop:
    held = [
        Counter("aab"),
        ChainMap({"a": 1}),
        defaultdict(list),
        UserList([1]),
        Decimal("0.1"),
        Fraction(1, 3),
        Path(),
    ]
    return holding(held)


@spec.equal_or_refused
def a_container_of_the_standard_library_is_changed() -> Loop:
    edits = {2: lambda model: model.odd[0].update("b"), 3: lambda model: model.odd[1].append(2)}
    return holding([Counter("aab"), UserList([1])], edits, Uses(lambda odd: odd[0]["b"] / len(odd[1])))


@spec.equal
def a_fraction_is_replaced() -> Loop:
    return holding(Fraction(1, 3), {2: lambda model: setattr(model, "odd", Fraction(1, 5))}, Uses(float))


@spec.equal
def the_model_holds_itself_and_its_optimizer() -> Loop:
    model = Net()
    model.trainer = [model]
    optimizer = sgd(model)
    model.kept = {"optimizer": optimizer}
    return loop(model, optimizer=optimizer, after=lambda number, loss: number == 4 and model.__dict__.pop("kept"))


@spec.equal
def locks_loggers_files_threads_and_functions() -> Loop:
    held = {
        "lock": threading.Lock(), "logger": logging.getLogger("loops"), "thread": threading.current_thread(),
        "weak": weakref.ref(threading.current_thread()), "module": functools, "function": len, "class": Net,
        "event": threading.Event(), "local": threading.local(), "range": range(3), "view": memoryview(b"abc"),
    }  # fmt: skip
    return holding(held)


@spec.equal
def a_generator_and_an_iterator_that_nobody_advances() -> Loop:
    return holding([(number for number in range(3)), iter([1, 2]), itertools.count()])


@spec.equal_or_refused
def forward_advances_an_iterator() -> Loop:
    return holding(iter([1.0, 2.0, 3.0, 4.0, 5.0]), model=Uses(next))


@spec.equal_or_refused
def forward_advances_a_generator() -> Loop:
    return holding((1 / number for number in range(1, 9)), model=Uses(next))


@spec.equal_or_refused
def forward_advances_a_cycle_of_numbers() -> Loop:
    return holding(itertools.cycle([1.0, 2.0]), model=Uses(next))


@spec.equal_or_refused
def the_user_advances_an_iterator_between_steps() -> Loop:
    def copy_and_read(odd: Any) -> float:
        return float(odd.__length_hint__())

    return holding(iter([1.0] * 9), {2: lambda model: next(model.odd)}, Uses(copy_and_read))


@spec.equal_or_refused
def a_weak_reference_dies() -> Loop:
    class Own:
        pass

    kept = [Own()]
    return holding(weakref.ref(kept[0]), {2: lambda model: kept.clear()}, Uses(lambda odd: 1.0 if odd() else 0.5))


@spec.equal_or_refused
def the_model_holds_a_file_that_is_open() -> Loop:
    def close(model: Any) -> None:
        model.odd.close()

    return holding(Path(__file__).open(), {4: close})


@spec.equal
def the_model_holds_tensors_without_data_and_sparse_ones() -> Loop:
    return holding([torch.empty(3, device="meta"), torch.eye(3).to_sparse(), torch.empty(0)])


@spec.equal_or_refused
def the_model_holds_a_tensor_that_was_computed_with_gradients() -> Loop:
    return holding([torch.ones(3, requires_grad=True) * 2])


@spec.equal
def an_attribute_counts_how_often_it_is_read() -> Loop:
    class Own(Net):
        def __init__(self) -> None:
            super().__init__()
            self.__dict__["reads"] = [0]

        @property
        def expensive(self) -> int:
            self.reads[0] += 1
            return self.reads[0]

    return loop(Own())


@spec.equal
def names_that_are_odd_as_attributes() -> Loop:
    model = Net()
    vars(model).update({"": 1, "a b": 2, "ü": 3, "with.dot": 4, "0": 5})
    return loop(model)


@spec.equal_or_refused
def attributes_that_are_no_text() -> Loop:
    model = Net()
    vars(model)[7] = 1
    return loop(model, after=lambda number, loss: number == 4 and vars(model).pop(7))


@pytest.mark.parametrize("case", spec.cases)
def test_what_is_hard_to_look_at_changes_no_number_and_hangs_nothing(case: Case) -> None:
    case.check()
