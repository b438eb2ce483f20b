"""Hooks on modules, on what they return and on parameters that change numbers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from beside_eager import Loop
from torch import Tensor, nn

from tests.run.loops.harness import Case, Net, Specification, at, loop, squares

spec = Specification()


def hooked(attach: Callable[[Net], object], **rest: Any) -> Loop:
    """A loop over a model that a hook hangs on from the start."""
    model = Net()
    attach(model)
    return loop(model, **rest)


@spec.equal
def a_hook_changes_what_a_layer_returns() -> Loop:
    return hooked(lambda model: model.first.register_forward_hook(lambda module, args, out: out * 2))


@spec.equal
def a_hook_changes_what_a_layer_is_given() -> Loop:
    return hooked(lambda model: model.first.register_forward_pre_hook(lambda module, args: (args[0] + 1,)))


@spec.equal
def a_hook_with_named_arguments_changes_them() -> Loop:
    def change(module: Any, args: Any, kwargs: Any) -> Any:
        return (args[0] * 0.5,), kwargs

    return hooked(lambda model: model.first.register_forward_pre_hook(change, with_kwargs=True))


@spec.equal
def a_hook_is_added_in_the_third_step() -> Loop:
    model = Net()
    add = {2: lambda: model.first.register_forward_hook(lambda module, args, out: out * 2)}
    return loop(model, before=at(add))


@spec.equal
def a_hook_is_removed_in_the_third_step() -> Loop:
    model = Net()
    handle = model.first.register_forward_hook(lambda module, args, out: out * 2)
    return loop(model, before=at({2: handle.remove}))


@spec.equal
def a_hook_is_replaced_by_another() -> Loop:
    model = Net()
    handles = [model.first.register_forward_hook(lambda module, args, out: out * 2)]

    def replace() -> None:
        handles[0].remove()
        model.first.register_forward_hook(lambda module, args, out: out * 3)

    return loop(model, before=at({2: replace}))


@spec.equal
def a_hook_reads_a_number_in_its_closure() -> Loop:
    scale = {"now": 1.0}
    return hooked(
        lambda model: model.first.register_forward_hook(lambda module, args, out: out * scale["now"]),
        before=at({2: lambda: scale.update(now=0.5)}),
    )


@spec.equal
def a_hook_is_a_method_of_an_object_with_a_number() -> Loop:
    class Scale:
        by = 1.0

        def __call__(self, module: Any, args: Any, out: Tensor) -> Tensor:
            return out * self.by

    scale = Scale()
    return hooked(
        lambda model: model.last.register_forward_hook(scale), before=at({2: lambda: setattr(scale, "by", 3)})
    )


@spec.equal
def a_hook_reads_an_attribute_of_its_module() -> Loop:
    model = Net()
    model.first.gain = 1.0
    model.first.register_forward_hook(lambda module, args, out: out * module.gain)
    return loop(model, before=at({2: lambda: setattr(model.first, "gain", 0.5)}))


@spec.equal
def a_hook_keeps_an_activation_for_the_loss() -> Loop:
    kept: dict[str, Tensor] = {}

    def loss(model: Any, batch: Any) -> Tensor:
        value = squares(model, batch)
        return value + kept.pop("first").square().mean()

    def keep(module: Any, args: Any, out: Tensor) -> None:
        kept["first"] = out

    model = Net()
    model.first.register_forward_hook(keep)
    return loop(model, loss)


@spec.equal
def forward_hangs_a_hook_on_a_tensor_that_scales_its_gradient() -> Loop:
    class Own(Net):
        def forward(self, x: Tensor) -> Tensor:
            hidden = torch.tanh(self.first(x))
            hidden.register_hook(lambda gradient: gradient * 0.5)
            return self.last(hidden)

    return loop(Own())


@spec.equal
def forward_hangs_a_hook_on_a_tensor_that_clips_its_gradient_by_an_attribute() -> Loop:
    class Own(Net):
        limit = 1.0

        def forward(self, x: Tensor) -> Tensor:
            hidden = torch.tanh(self.first(x))
            hidden.register_hook(lambda gradient: gradient.clamp(-self.limit, self.limit))
            return self.last(hidden)

    model = Own()
    return loop(model, before=at({2: lambda: setattr(model, "limit", 1e-3)}))


@spec.equal
def a_function_with_a_backward_of_its_own() -> Loop:
    class Reverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            return -0.5 * gradient

    class Own(Net):
        def forward(self, x: Tensor) -> Tensor:
            return self.last(Reverse.apply(self.first(x)))

    return loop(Own())


@spec.equal_or_refused
def a_function_with_a_backward_reads_a_global_strength() -> Loop:
    class Reverse(torch.autograd.Function):
        strength = 1.0

        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            return -Reverse.strength * gradient

    class Own(Net):
        def forward(self, x: Tensor) -> Tensor:
            return self.last(Reverse.apply(self.first(x)))

    return loop(Own(), before=at({2: lambda: setattr(Reverse, "strength", 0.1)}))


@spec.equal_or_refused
def a_full_backward_hook_changes_the_gradient() -> Loop:
    return hooked(lambda model: model.last.register_full_backward_hook(lambda module, gin, gout: (gin[0] * 0.5,)))


@spec.equal_or_refused
def a_full_backward_hook_is_added_in_the_third_step() -> Loop:
    model = Net()
    change = lambda module, gin, gout: (gin[0] * 0.5,)  # noqa: E731
    return loop(model, before=at({2: lambda: model.last.register_full_backward_hook(change)}))


@spec.equal_or_refused
def a_backward_pre_hook_changes_the_gradient() -> Loop:
    return hooked(lambda model: model.last.register_full_backward_pre_hook(lambda module, gout: (gout[0] * 0.5,)))


@spec.equal_or_refused
def a_parameter_has_a_hook() -> Loop:
    return hooked(lambda model: model.first.weight.register_hook(lambda gradient: gradient * 0.5))


@spec.equal_or_refused
def a_parameter_gets_a_hook_in_the_third_step() -> Loop:
    model = Net()
    return loop(model, before=at({2: lambda: model.first.weight.register_hook(lambda gradient: gradient * 0.5)}))


@spec.equal_or_refused
def a_parameter_has_a_hook_after_its_gradient_is_accumulated() -> Loop:
    def halve(parameter: Tensor) -> None:
        parameter.grad.mul_(0.5)

    return hooked(lambda model: model.first.weight.register_post_accumulate_grad_hook(halve))


@spec.equal_or_refused
def a_hook_for_all_modules_changes_what_they_return() -> Loop:
    @contextmanager
    def around() -> Any:
        def double(module: nn.Module, args: Any, out: Tensor) -> Tensor | None:
            return out * 2 if isinstance(module, nn.Linear) else None

        handle = nn.modules.module.register_module_forward_hook(double)
        try:
            yield
        finally:
            handle.remove()

    return loop(around=around)


@spec.equal_or_refused
def a_hook_for_all_modules_is_added_in_the_third_step() -> Loop:
    handles: list[Any] = []

    def add() -> None:
        handles.append(nn.modules.module.register_module_forward_hook(lambda module, args, out: out * 2))

    return loop(before=at({2: add, 4: lambda: handles.pop().remove()}))


@spec.equal_or_refused
def forward_hangs_hooks_on_its_parts_when_it_is_first_called() -> Loop:
    class Recorder(Net):
        def __init__(self) -> None:
            super().__init__()
            self.recorded: list[Tensor] = []
            self.ready = False

        def forward(self, x: Tensor) -> Tensor:
            if not self.ready:
                self.first.register_forward_hook(lambda module, args, out: self.recorded.append(out))
                self.ready = True
            out = super().forward(x)
            return out + self.recorded.pop().mean()

    return loop(Recorder())


@spec.equal_or_refused
def spectral_norm_of_the_older_kind_is_a_hook() -> Loop:
    return loop(nn.Sequential(nn.utils.spectral_norm(nn.Linear(8, 8)), nn.Tanh(), nn.Linear(8, 4)))


@spec.equal
def weight_norm_of_the_older_kind_is_a_hook() -> Loop:
    return loop(nn.Sequential(nn.utils.weight_norm(nn.Linear(8, 8)), nn.Tanh(), nn.Linear(8, 4)))


@pytest.mark.parametrize("case", spec.cases)
def test_hooks_do_what_they_do_in_eager(case: Case) -> None:
    case.check()
