"""Random ops of an accelerator draw the numbers of their place in the captured order, in whatever order they run."""

from __future__ import annotations

from itertools import permutations
from typing import Any, cast

import pytest
import torch

from planner.program import BoundCall
from planner.run.devices.accelerator.philox_offsets import PhiloxOffsets

ADVANCES = {3: 4, 5: 8, 9: 12}


class CountingGenerator:
    """A generator as accelerators have it: what it draws is decided by its offset, which each op moves."""

    def __init__(self) -> None:
        self.offset = 0

    def get_offset(self) -> int:
        return self.offset

    def set_offset(self, offset: int) -> None:
        self.offset = offset


class Step:
    """Three random ops, each with a number of draws of its own."""

    def __init__(self, offset: int) -> None:
        self.generator = CountingGenerator()
        self.generator.offset = offset
        self.drawn: dict[int, list[int]] = {}
        calls = {op: BoundCall(self.draw, (op,), {}) for op in (9, 3, 5)}
        self.states = PhiloxOffsets(cast(Any, None), calls, cast(torch.Generator, self.generator))
        self.drawn.clear()

    def draw(self, op: int) -> None:
        start = self.generator.offset
        self.generator.offset += ADVANCES[op]
        self.drawn.setdefault(op, []).append(start)


def test_finding_out_how_far_ops_move_it_leaves_it_where_it_was() -> None:
    assert Step(40).generator.offset == 40


@pytest.mark.parametrize("order", list(permutations(ADVANCES)))
def test_each_op_draws_at_its_place_and_the_step_ends_where_the_captured_one_does(order: tuple[int, ...]) -> None:
    step = Step(40)
    for _ in range(2):
        step.states.begin()
        for op in order:
            step.states.restore(op)
            step.draw(op)
        step.states.restore(-1)
    assert step.drawn == {3: [40, 64], 5: [44, 68], 9: [52, 76]}
    assert step.generator.offset == 88


def test_an_op_that_runs_again_draws_as_it_did() -> None:
    step = Step(0)
    step.states.begin()
    for op in (5, 3, 5):
        step.states.restore(op)
        step.draw(op)
    assert step.drawn[5] == [4, 4]
