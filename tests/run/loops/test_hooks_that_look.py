"""Hooks that only look: called with real values, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from beside_eager import Loop
from torch import Tensor

from tests.run.loops.harness import Case, Net, Specification, at, loop

spec = Specification()


def hooked(attach: Callable[[Net], object], **rest: Any) -> Loop:
    """A loop over a model that a hook hangs on from the start."""
    model = Net()
    attach(model)
    return loop(model, **rest)


@spec.equal_or_refused
def a_hook_keeps_the_mean_of_what_a_layer_returns() -> Loop:
    seen: list[float] = []

    def look(module: Any, args: Any, out: Tensor) -> None:
        seen.append(out.detach().mean().item())

    return hooked(lambda model: model.first.register_forward_hook(look), also=seen)


@spec.equal_or_refused
def a_hook_keeps_what_a_layer_returns() -> Loop:
    seen: list[Tensor] = []
    return hooked(
        lambda model: model.first.register_forward_hook(lambda module, args, out: seen.append(out.detach())), also=seen
    )


@spec.equal_or_refused
def a_hook_counts_its_calls() -> Loop:
    calls = {"forward": 0}

    def count(module: Any, args: Any) -> None:
        calls["forward"] += 1

    return hooked(lambda model: model.first.register_forward_pre_hook(count), also=calls)


@spec.equal_or_refused
def a_hook_that_looks_is_added_in_the_third_step() -> Loop:
    model, seen = Net(), []
    add = {2: lambda: model.first.register_forward_hook(lambda module, args, out: seen.append(out.detach()))}
    return loop(model, before=at(add), also=seen)


@spec.equal_or_refused
def forward_keeps_the_gradient_of_a_tensor_on_the_model() -> Loop:
    class Own(Net):
        def forward(self, x: Tensor) -> Tensor:
            self.hidden = torch.tanh(self.first(x))
            self.hidden.retain_grad()
            return self.last(self.hidden)

    model, seen = Own(), []

    def read(number: int, loss: float) -> None:
        seen.append(model.hidden.grad.clone())
        if number == 4:
            del model.hidden

    return loop(model, after=read, also=seen)


@spec.equal_or_refused
def a_hook_on_a_tensor_keeps_its_gradient() -> Loop:
    seen: list[Tensor] = []

    class Own(Net):
        def forward(self, x: Tensor) -> Tensor:
            hidden = torch.tanh(self.first(x))
            hidden.register_hook(lambda gradient: seen.append(gradient.detach()))
            return self.last(hidden)

    return loop(Own(), also=seen)


@spec.equal_or_refused
def a_full_backward_hook_keeps_norms() -> Loop:
    seen: list[float] = []

    def look(module: Any, gin: Any, gout: Any) -> None:
        seen.append(float(gout[0].norm()))

    return hooked(lambda model: model.last.register_full_backward_hook(look), also=seen)


@spec.equal
def the_gradients_after_a_step_are_the_steps_own_or_none() -> Loop:
    model, right = Net(), []
    before: list[Tensor] = []

    def compare(number: int, loss: float) -> None:
        weight = model.first.weight.detach()
        gradient = model.first.weight.grad
        right.append(gradient is None or torch.equal(before.pop() - gradient, weight))

    return loop(
        model,
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0, foreach=False),
        before=lambda number: before.append(model.first.weight.detach().clone()),
        after=compare,
        also=right,
    )


@spec.equal
def hooks_of_the_state_dict_change_nothing_of_a_step() -> Loop:
    return hooked(lambda model: model.register_state_dict_post_hook(lambda module, state, prefix, meta: None))


@pytest.mark.parametrize("case", spec.cases)
def test_hooks_do_what_they_do_in_eager(case: Case) -> None:
    case.check()
