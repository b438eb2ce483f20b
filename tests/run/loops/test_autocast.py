"""Autocast around the loop, from some step on, and within forward."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import Any

import pytest
import torch
from beside_eager import Loop
from torch import Tensor
from torch.nn.functional import mse_loss

from tests.run.loops.harness import Case, Net, Specification, at, loop, squares

spec = Specification()


def from_step_to_step(first: int, last: int, make: Any, build: Any = loop, **rest: Any) -> Loop:
    """A loop that enters a context manager before one step and leaves it before another."""
    stack = ExitStack()
    edits = {first: lambda: stack.enter_context(make()), last: stack.close}
    return build(before=at(edits), around=lambda: stack, **rest)  # left in any case, where the loop is refused too


def uncached() -> AbstractContextManager[object]:
    return torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False)


@spec.equal
def autocast_around_the_loop() -> Loop:
    return loop(around=uncached)


@spec.equal_or_refused
def autocast_around_the_loop_with_its_cache() -> Loop:
    # eager then goes on with the casts of the first step's weights
    return loop(around=lambda: torch.autocast("cpu", dtype=torch.bfloat16))


@spec.equal
def autocast_to_half_precision_around_the_loop() -> Loop:
    return loop(around=lambda: torch.autocast("cpu", dtype=torch.float16, cache_enabled=False))


@spec.equal
def autocast_from_the_third_step_to_the_fifth() -> Loop:
    return from_step_to_step(2, 4, uncached)


@spec.equal
def autocast_is_switched_by_hand_in_mid_training() -> Loop:
    edits = {2: lambda: torch.set_autocast_enabled("cpu", True), 4: lambda: torch.set_autocast_enabled("cpu", False)}
    return loop(around=lambda: torch.autocast("cpu", enabled=False, cache_enabled=False), before=at(edits))


@spec.equal
def autocast_within_the_loss() -> Loop:
    def loss(model: Any, batch: Any) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return squares(model, batch)

    return loop(loss=loss)


@spec.equal
def autocast_within_forward_to_a_dtype_that_the_user_changes() -> Loop:
    class Own(Net):
        kind = torch.bfloat16

        def forward(self, x: Tensor) -> Tensor:
            with torch.autocast("cpu", dtype=self.kind):
                return super().forward(x)

    model = Own()
    return loop(
        model,
        lambda m, b: mse_loss(m(b["x"]).float(), b["y"]),
        before=at({2: lambda: setattr(model, "kind", torch.float16)}),
    )


@spec.equal
def a_part_of_forward_is_left_out_of_autocast() -> Loop:
    class Own(Net):
        def forward(self, x: Tensor) -> Tensor:
            out = torch.tanh(self.first(x))
            with torch.autocast("cpu", enabled=False):
                return self.last(out.float())

    return loop(Own(), around=uncached)


@spec.equal
def autocast_as_an_argument_of_the_step() -> Loop:
    return loop(options={"autocast": torch.bfloat16})


@pytest.mark.parametrize("case", spec.cases)
def test_settings_are_those_of_the_step_that_is_made(case: Case) -> None:
    case.check()
