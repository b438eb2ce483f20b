"""Numbers and code that the loss and forward read from closures, globals, other modules and their own objects."""

from __future__ import annotations

import contextvars
import functools
import itertools
import os
import types
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import pytest
import torch
from beside_eager import Loop
from torch import Tensor, nn

from tests.run.loops.harness import Case, Net, Specification, at, loop, sgd, squares

spec = Specification()
FACTOR = 1.0
TABLE: dict[str, Any] = {}
SETTINGS = types.ModuleType("settings")
CONTEXT: contextvars.ContextVar[float] = contextvars.ContextVar("CONTEXT", default=1.0)


def set_global(name: str, value: object) -> Callable[[], None]:
    return lambda: globals().__setitem__(name, value)


def weighted(read: Callable[[], Any], **rest: Any) -> Loop:
    """A loop whose loss is multiplied by what a function reads."""
    return loop(loss=lambda model, batch: squares(model, batch) * read(), **rest)


def read_factor() -> float:
    return FACTOR


def doubled() -> float:
    return 2 * read_factor()


@spec.equal
def a_number_in_a_closure_is_annealed() -> Loop:
    weight = 1.0

    def anneal(number: int) -> None:
        nonlocal weight
        weight *= 0.5

    def loss(model: Any, batch: Any) -> Tensor:
        return squares(model, batch) * weight

    return loop(loss=loss, before=anneal)


@spec.equal
def a_number_in_a_list_in_a_closure() -> Loop:
    weight = [1.0]
    return weighted(lambda: weight[0], before=at({2: lambda: weight.__setitem__(0, 0.5)}))


@spec.equal
def a_number_in_a_dict_in_a_closure_goes_back_and_forth() -> Loop:
    weight = {"now": 1.0}
    return weighted(lambda: weight["now"], before=lambda number: weight.update(now=1.0 + number % 2))


@spec.equal
def a_number_in_a_namespace_in_a_closure() -> Loop:
    config = types.SimpleNamespace(loss=types.SimpleNamespace(weight=1.0))
    return weighted(lambda: config.loss.weight, before=at({2: lambda: setattr(config.loss, "weight", 0.5)}))


@spec.equal
def a_global_number() -> Loop:
    set_global("FACTOR", 1.0)()
    return weighted(lambda: FACTOR, before=at({2: set_global("FACTOR", 0.5)}))


@spec.equal
def a_global_number_read_by_a_helper_of_a_helper() -> Loop:
    set_global("FACTOR", 1.0)()
    return weighted(lambda: doubled() / 2, before=at({2: set_global("FACTOR", 0.5)}))


@spec.equal
def a_global_number_read_by_forward() -> Loop:
    class Own(Net):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) * FACTOR

    set_global("FACTOR", 1.0)()
    return loop(Own(), before=at({2: set_global("FACTOR", 0.5)}))


@spec.equal
def a_number_in_a_global_dict_read_by_a_submodule() -> Loop:
    class Own(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * TABLE["factor"]

    TABLE["factor"] = 1.0
    model = nn.Sequential(nn.Linear(8, 4), Own())
    return loop(model, before=at({2: lambda: TABLE.update(factor=0.5)}))


@spec.equal
def a_global_read_by_methods_that_no_code_names() -> Loop:
    class Factors:
        def __getitem__(self, place: int) -> float:
            return FACTOR + place

        def __mul__(self, other: float) -> float:
            return FACTOR * other

    factors = Factors()
    set_global("FACTOR", 1.0)()
    return weighted(lambda: factors[0] + factors * 2.0, before=at({3: set_global("FACTOR", 0.5)}))


@spec.equal
def a_global_read_as_an_object_is_made_in_the_loss() -> Loop:
    class Weight:
        def __init__(self) -> None:
            self.value = FACTOR

    set_global("FACTOR", 1.0)()
    return weighted(lambda: Weight().value, before=at({3: set_global("FACTOR", 0.5)}))


@spec.equal
def an_attribute_of_an_imported_module() -> Loop:
    SETTINGS.weight = 1.0
    return weighted(lambda: SETTINGS.weight, before=at({2: lambda: setattr(SETTINGS, "weight", 0.5)}))


@spec.equal
def an_attribute_of_the_loss_function() -> Loop:
    def loss(model: Any, batch: Any) -> Tensor:
        return squares(model, batch) * loss.weight

    loss.weight = 1.0
    return loop(loss=loss, before=at({2: lambda: setattr(loss, "weight", 0.5)}))


@spec.equal
def a_default_argument_of_the_loss_function() -> Loop:
    def loss(model: Any, batch: Any, weight: float = 1.0) -> Tensor:
        return squares(model, batch) * weight

    return loop(loss=loss, before=at({2: lambda: setattr(loss, "__defaults__", (0.5,))}))


@spec.equal
def a_mutable_default_argument_of_the_loss_function() -> Loop:
    def loss(model: Any, batch: Any, *, weights: dict[str, float] = {"a": 1.0}) -> Tensor:  # noqa: B006
        return squares(model, batch) * weights["a"]

    loss.__kwdefaults__["weights"]["a"] = 1.0
    return loop(loss=loss, before=at({2: lambda: loss.__kwdefaults__["weights"].update(a=0.5)}))


@spec.equal
def the_loss_is_a_partial_function_with_a_changed_argument() -> Loop:
    def loss(model: Any, batch: Any, weight: float) -> Tensor:
        return squares(model, batch) * weight

    partial = functools.partial(loss, weight=1.0)
    return loop(loss=partial, before=at({2: lambda: partial.keywords.update(weight=0.5)}))


@spec.equal
def the_loss_is_a_method_of_an_object_with_a_weight() -> Loop:
    class Trainer:
        weight = 1.0

        def loss(self, model: Any, batch: Any) -> Tensor:
            return squares(model, batch) * self.weight

    trainer = Trainer()
    return loop(loss=trainer.loss, before=at({2: lambda: setattr(trainer, "weight", 0.5)}))


@spec.equal
def the_loss_is_an_object_that_can_be_called() -> Loop:
    class Criterion:
        def __init__(self) -> None:
            self.weights = {"mse": 1.0}

        def __call__(self, model: Any, batch: Any) -> Tensor:
            return squares(model, batch) * self.weights["mse"]

    criterion = Criterion()
    return loop(loss=criterion, before=at({2: lambda: criterion.weights.update(mse=0.5)}))


@spec.equal
def a_helper_function_is_replaced() -> Loop:
    TABLE["reduce"] = torch.mean
    return loop(
        loss=lambda model, batch: TABLE["reduce"]((model(batch["x"]) - batch["y"]).square()),
        before=at({2: lambda: TABLE.update(reduce=torch.amax)}),
    )


@spec.equal_or_refused
def an_environment_variable_is_read() -> Loop:
    edits = {2: lambda: os.environ.update(LOOP_WEIGHT="0.5")}
    around = functools.partial(patch.dict, os.environ, LOOP_WEIGHT="1.0")
    return weighted(lambda: float(os.environ["LOOP_WEIGHT"]), before=at(edits), around=around)


@spec.equal_or_refused
def a_context_variable_is_read() -> Loop:
    CONTEXT.set(1.0)
    return weighted(CONTEXT.get, before=at({2: lambda: CONTEXT.set(0.5)}))


@spec.equal_or_refused
def the_loss_takes_the_next_number_of_a_schedule() -> Loop:
    schedule = iter([1.0, 0.5, 0.25, 2.0, 3.0])
    return weighted(lambda: next(schedule))


@spec.equal_or_refused
def the_loss_takes_the_next_number_of_a_generator_function() -> Loop:
    def numbers() -> Iterator[float]:
        for number in range(1, 10):
            yield 1 / number

    schedule = numbers()
    return weighted(lambda: next(schedule))


@spec.equal_or_refused
def the_loss_counts_its_calls() -> Loop:
    counter = itertools.count(1)
    return weighted(lambda: 1 / next(counter))


@spec.equal_or_refused
def the_loss_counts_its_calls_in_an_attribute() -> Loop:
    def loss(model: Any, batch: Any) -> Tensor:
        loss.calls += 1
        return squares(model, batch) / loss.calls

    loss.calls = 0
    return loop(loss=loss, also=loss.__dict__)


@spec.equal_or_refused
def the_loss_appends_its_values_to_a_global_list() -> Loop:
    seen: list[Tensor] = []

    def loss(model: Any, batch: Any) -> Tensor:
        value = squares(model, batch)
        seen.append(value.detach())
        return value

    return loop(loss=loss, also=seen)


@spec.equal_or_refused
def the_loss_logs_shapes_and_nothing_else() -> Loop:
    seen: list[tuple[int, ...]] = []

    def loss(model: Any, batch: Any) -> Tensor:
        seen.append(tuple(batch["x"].shape))
        return squares(model, batch)

    return loop(loss=loss, also=seen)


@spec.equal
def the_weight_follows_the_history_of_losses() -> Loop:
    history: list[float] = []
    return weighted(lambda: 0.5 if len(history) > 2 else 1.0, after=lambda number, loss: history.append(loss))


@spec.equal_or_refused
def the_loss_reads_the_learning_rate_of_the_optimizer() -> Loop:
    model = Net()
    optimizer = sgd(model)

    def loss(model: Any, batch: Any) -> Tensor:
        return squares(model, batch) * optimizer.param_groups[0]["lr"]

    return loop(model, loss, optimizer=optimizer, scheduler=torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5))


@spec.equal_or_refused
def the_loss_reads_the_last_epoch_of_the_scheduler() -> Loop:
    model = Net()
    optimizer = sgd(model)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    return loop(
        model, lambda m, b: squares(m, b) / (1 + scheduler.last_epoch), optimizer=optimizer, scheduler=scheduler
    )


@spec.equal
def a_helper_with_a_cache_is_asked_with_a_changed_number() -> Loop:
    @functools.lru_cache
    def power(value: float) -> float:
        return value**2

    weight = {"now": 2.0}
    return weighted(lambda: power(weight["now"]), before=at({2: lambda: weight.update(now=0.5)}))


@spec.equal
def a_cached_helper_makes_a_tensor_and_eager_uses_it_afterwards() -> Loop:
    @functools.lru_cache
    def table(size: int) -> Tensor:
        return torch.linspace(0, 1, size)

    class Own(Net):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) * table(4)

    model, seen = Own(), []
    return loop(model, after=lambda number, loss: seen.append(model(torch.ones(1, 8)).detach()), also=seen)


@pytest.mark.parametrize("case", spec.cases)
def test_what_code_reads_outside_the_model_is_followed(case: Case) -> None:
    case.check()
