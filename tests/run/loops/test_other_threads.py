"""Another thread works on the model, or beside it, while steps are made."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from beside_eager import Loop
from torch import nn

from tests.run.loops.harness import Case, Net, Specification, loop, sgd, squares

spec = Specification()


@contextmanager
def beside(work: Callable[[int], object]) -> Iterator[None]:
    """Something goes on in another thread."""
    over = threading.Event()

    def repeat() -> None:
        for number in itertools.count():
            if over.wait(1e-4):
                return
            work(number)

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def disturbed(held: Any, work: Callable[[int], object]) -> Loop:
    """A loop over a model that another thread fiddles with all the time, in ways that do not matter to its numbers."""
    model = Net()
    model.odd = held
    return loop(
        model,
        around=lambda: beside(work),
        after=lambda number, loss: number == 4 and vars(model).pop("odd"),
    )


@contextmanager
def removed_at_the_end(model: Net, work: Callable[[int], object]) -> Iterator[None]:
    with beside(work):
        yield
    model._modules.pop("extra", None)


@spec.equal_or_refused
def another_thread_fills_a_dict_on_the_model() -> Loop:
    held: dict[int, int] = {}
    return disturbed(held, lambda number: held.update({number % 1000: number}) if number % 7 else held.clear())


@spec.equal_or_refused
def another_thread_fills_a_list_on_the_model() -> Loop:
    held: list[int] = []
    return disturbed(held, lambda number: held.append(number) if number % 100 else held.clear())


@spec.equal_or_refused
def another_thread_fills_a_set_on_the_model() -> Loop:
    held: set[int] = set()
    return disturbed(held, lambda number: held.add(number) if number % 100 else held.clear())


@spec.equal_or_refused
def another_thread_adds_and_removes_attributes_of_an_object() -> Loop:
    class Own:
        pass

    held = Own()
    return disturbed(held, lambda number: vars(held).clear() if number % 5 == 0 else setattr(held, f"a{number}", 1))


@spec.equal_or_refused
def another_thread_adds_and_removes_submodules() -> Loop:
    model = Net()

    def work(number: int) -> None:
        if number % 2:
            model._modules.pop("extra", None)
        else:
            model.extra = nn.Identity()

    return loop(model, around=lambda: removed_at_the_end(model, work))


@spec.equal_or_refused
def another_thread_trains_another_model() -> Loop:
    other = Net()
    optimizer = sgd(other)

    def work(number: int) -> None:
        squares(other, {"x": torch.ones(4, 8), "y": torch.ones(4, 4)}).backward()
        optimizer.step()
        optimizer.zero_grad()

    return loop(around=lambda: beside(work))


@spec.equal_or_refused
def another_thread_switches_its_own_autocast() -> Loop:
    def work(number: int) -> None:
        with torch.autocast("cpu", enabled=bool(number % 2)):
            torch.ones(2, 2) @ torch.ones(2, 2)

    return loop(around=lambda: beside(work))


@pytest.mark.parametrize("case", spec.cases)
def test_what_is_hard_to_look_at_changes_no_number_and_hangs_nothing(case: Case) -> None:
    case.check()
