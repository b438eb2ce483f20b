"""Values that the loss and forward find by a string, an import, a weak reference, or in objects of unusual classes."""

from __future__ import annotations

import array
import ctypes
import functools
import sys
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from beside_eager import Loop
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from tests.run.loops.harness import Case, Net, Specification, at, loop, sgd, squares

spec = Specification()


def weighted(read: Callable[[], Any], change: Callable[[], object], **rest: Any) -> Loop:
    """A loop whose loss is multiplied by what a function reads, and that changes it before the fifth step."""
    return loop(loss=lambda model, batch: squares(model, batch) * read(), before=at({4: change}), **rest)


def config(**values: Any) -> Any:
    """A class of the user's with attributes."""
    return type("Config", (), {"__module__": "__main__", **values})


@spec.equal
def the_loss_imports_a_module_whose_number_changes() -> Loop:
    settings: Any = types.ModuleType("settings_of_a_test")
    settings.weight = 1.0
    sys.modules[settings.__name__] = settings

    def read() -> float:
        from settings_of_a_test import weight  # type: ignore[import-not-found]

        return float(weight)

    return weighted(read, lambda: setattr(settings, "weight", 2.0))


@spec.equal
def an_attribute_is_named_by_a_string() -> Loop:
    kept = config(weight=1.0)
    return weighted(lambda: getattr(kept, "weight"), lambda: setattr(kept, "weight", 2.0))  # noqa: B009


@spec.equal
def a_method_is_named_by_a_string_that_is_put_together() -> Loop:
    weight = [1.0]

    class Own(Net):
        kind = "plain"

        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = getattr(self, f"forward_{self.kind}")(x)
            return result

        def forward_plain(self, x: Tensor) -> Tensor:
            return super().forward(x) * weight[0]

    return loop(Own(), before=at({4: lambda: weight.__setitem__(0, 2.0)}))


@spec.equal
def all_attributes_of_a_class_are_read() -> Loop:
    kept = config(a=1.0, b=2.0)
    return weighted(
        lambda: sum(value for name, value in vars(kept).items() if not name.startswith("_")),
        lambda: setattr(kept, "a", 3.0),
    )


@spec.equal
def a_number_is_of_a_class_of_its_own() -> Loop:
    class Percent(float):
        pass

    model: Any = Net()
    model.share = Percent(1.0)
    return loop(
        model, lambda m, b: squares(m, b) * m.share, before=at({4: lambda: setattr(model, "share", Percent(2.0))})
    )


@spec.equal
def a_pair_is_of_a_class_of_its_own() -> Loop:
    class Pair(tuple[float, float]):
        __slots__ = ()

    kept = {"pair": Pair((1.0, 3.0))}
    return weighted(lambda: kept["pair"][0], lambda: kept.update(pair=Pair((2.0, 3.0))))


@spec.equal
def a_dict_of_a_class_of_its_own_has_an_attribute() -> Loop:
    class Config(dict[str, float]):
        weight = 1.0

    kept = Config()
    return weighted(lambda: kept.weight, lambda: setattr(kept, "weight", 2.0))


@spec.equal
def a_dict_is_seen_through_a_proxy() -> Loop:
    kept = {"weight": 1.0}
    view = types.MappingProxyType(kept)
    return weighted(lambda: view["weight"], lambda: kept.update(weight=2.0))


@spec.equal
def values_of_a_dict_are_kept_and_read_later() -> Loop:
    kept = {"weight": 1.0}
    view = kept.values()
    return weighted(lambda: sum(view), lambda: kept.update(weight=2.0))


@spec.equal
def an_object_is_weakly_referenced() -> Loop:
    trainer = config(weight=1.0)()
    seen = weakref.ref(trainer)
    return weighted(lambda: seen().weight, lambda: setattr(trainer, "weight", 2.0))  # type: ignore[union-attr]


@spec.equal
def numbers_are_kept_by_module_in_a_weak_dictionary() -> Loop:
    model = Net()
    kept = weakref.WeakKeyDictionary({model: 1.0})
    return loop(model, lambda m, b: squares(m, b) * kept[model], before=at({4: lambda: kept.__setitem__(model, 2.0)}))


@spec.equal
def an_event_is_set() -> Loop:
    warm = threading.Event()
    return weighted(lambda: 2.0 if warm.is_set() else 1.0, warm.set)


@spec.equal
def a_number_lies_in_an_array() -> Loop:
    kept = array.array("d", [1.0])
    return weighted(lambda: kept[0], lambda: kept.__setitem__(0, 2.0))


@spec.equal
def a_number_lies_in_bytes() -> Loop:
    kept = bytearray([1])
    return weighted(lambda: kept[0], lambda: kept.__setitem__(0, 2))


@spec.equal
def a_number_is_of_c() -> Loop:
    kept = ctypes.c_double(1.0)
    return weighted(lambda: kept.value, lambda: setattr(kept, "value", 2.0))


@spec.equal
def a_function_looks_like_one_of_pytorchs() -> Loop:
    weight = [1.0]

    @functools.wraps(mse_loss)
    def own(input: Tensor, target: Tensor) -> Tensor:
        return mse_loss(input, target) * weight[0]

    return loop(loss=lambda m, b: own(m(b["x"]), b["y"]), before=at({4: lambda: weight.__setitem__(0, 2.0)}))


@spec.equal
def a_class_of_pytorchs_gets_another_forward() -> Loop:
    before = nn.Linear.forward

    def doubled(self: nn.Linear, x: Tensor) -> Tensor:
        return 2 * before(self, x)

    return loop(
        before=at({2: lambda: setattr(nn.Linear, "forward", doubled), 4: lambda: setattr(nn.Linear, "forward", before)})
    )


@spec.equal
def a_function_of_pytorchs_is_exchanged() -> Loop:
    functional: Any = torch.nn.functional
    before = functional.gelu

    def loss(model: Any, batch: Any) -> Tensor:
        return mse_loss(torch.nn.functional.gelu(model(batch["x"])), batch["y"])

    given = {2: lambda: setattr(functional, "gelu", functional.silu), 4: lambda: setattr(functional, "gelu", before)}
    return loop(loss=loss, before=at(given))


@spec.equal
def autocast_in_the_loss_begins_to_take_another_dtype() -> Loop:
    def loss(model: Any, batch: Any) -> Tensor:
        with torch.autocast("cpu"):
            return squares(model, batch)

    given = {
        2: lambda: torch.set_autocast_dtype("cpu", torch.float16),
        4: lambda: torch.set_autocast_dtype("cpu", torch.bfloat16),
    }
    return loop(loss=loss, before=at(given))


@spec.equal
def a_hook_is_hung_at_the_first_call() -> Loop:
    class Own(Net):
        ready = False

        def forward(self, x: Tensor) -> Tensor:
            if not self.ready:
                self.last.register_forward_hook(lambda module, given, result: result * 2)
                self.ready = True
            return super().forward(x)

    model = Own()
    hung: list[int] = []
    return loop(model, after=lambda number, loss: hung.append(len(model.last._forward_hooks)), also=hung)


@spec.equal
def the_forward_pass_is_recorded_for_a_profile() -> Loop:
    class Own(Net):
        def forward(self, x: Tensor) -> Tensor:
            with torch.profiler.record_function("forward"):
                return super().forward(x)

    return loop(Own())


@spec.equal
def a_layer_is_compiled() -> Loop:
    model: Any = Net()
    model.first = torch.compile(model.first, backend="eager")
    return loop(model, after=lambda number, loss: number == 4 and setattr(model, "first", model.first._orig_mod))


@spec.equal_or_refused
def the_loss_counts_in_bytes_and_in_a_number_of_c() -> Loop:
    kept, number = bytearray([1]), ctypes.c_double(1.0)
    seen: list[float] = []

    def loss(model: Any, batch: Any) -> Tensor:
        kept[0] += 1
        number.value += 1
        return squares(model, batch) * kept[0] * number.value

    return loop(loss=loss, after=lambda step, value: seen.append(kept[0] + number.value), also=seen)


@spec.equal_or_refused
def the_loss_sets_the_learning_rate() -> Loop:
    model = Net()
    optimizer = sgd(model)
    late = [False]

    def loss(m: Any, batch: Any) -> Tensor:
        if late[0]:
            optimizer.param_groups[0]["lr"] = 0.01
        return squares(m, batch)

    return loop(model, loss, optimizer=optimizer, before=at({4: lambda: late.__setitem__(0, True)}))


@spec.equal_or_refused
def forward_gives_a_weight_other_memory() -> Loop:
    class Own(Net):
        late = False

        def forward(self, x: Tensor) -> Tensor:
            if self.late:
                self.last.weight.data = self.last.weight.data / self.last.weight.data.norm()
            return super().forward(x)

    model = Own()
    return loop(model, before=at({4: lambda: setattr(model, "late", True)}))


@spec.equal_or_refused
def forward_freezes_a_layer_after_its_use() -> Loop:
    class Own(Net):
        def forward(self, x: Tensor) -> Tensor:
            result = super().forward(x)
            self.first.requires_grad_(False)
            return result

    return loop(Own())


@spec.equal_or_refused_by_the_second_look
def a_function_is_registered_for_a_type_in_the_middle() -> Loop:
    @functools.singledispatch
    def weight(value: object) -> float:
        return 1.0

    return weighted(lambda: weight(1), lambda: weight.register(int, lambda value: 2.0))


@spec.equal_or_refused_by_the_second_look
def one_of_very_many_numbers_changes() -> Loop:
    kept = [1.0] * 20_000
    return weighted(lambda: kept[7], lambda: kept.__setitem__(7, 2.0))


@pytest.mark.parametrize("case", spec.cases)
def test_what_is_hard_to_find_is_followed(case: Case) -> None:
    case.check()


def test_a_program_run_by_an_installed_tool_is_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    profiler = types.ModuleType("__main__")
    profiler.__file__ = torch.__file__  # as `python -m` leaves it, in site-packages
    monkeypatch.setitem(sys.modules, "__main__", profiler)
    Case(all_attributes_of_a_class_are_read, may_be_refused=False).check()
