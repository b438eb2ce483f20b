"""Random ops whose numbers were drawn before in the step draw them again: those of their first run, or another op's.

The generator is set back to its state before the numbers were first drawn, and afterwards to where it was. So nothing
need be known of how many numbers an op draws: with the inputs of its first run it draws as many again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from planner.plan import PlanIndex

_Action = tuple[Callable[..., None], tuple[Any, ...]]


class RepeatedDraws:
    """What to do with the generator before and after the ops of a plan that first draws all numbers in captured order.

    Args:
        index: of the plan.
        generator: the generator that random ops draw from.
    """

    def __init__(self, index: PlanIndex, generator: torch.Generator) -> None:
        self._generator = generator
        self._states: dict[int, torch.Tensor] = {}  # by op whose numbers are drawn again, before its first run
        self._ahead: torch.Tensor | None = None
        self._before: dict[int, _Action] = {}
        self._after: dict[int, _Action] = {}
        for slot, number in enumerate(index.plan.order):
            op = index.graph.ops[number]
            if not op.random:
                continue
            first = index.slots_of(op.drawn_first_by)[0]
            if slot != first:
                self._before[first] = self._keep, (op.drawn_first_by,)
                self._before[slot] = self._go_back, (op.drawn_first_by,)
                self._after[slot] = self._go_on, ()

    def before(self, slot: int) -> list[_Action]:
        """What to call on the compute stream before the op of a slot."""
        return [self._before[slot]] if slot in self._before else []

    def after(self, slot: int) -> list[_Action]:
        """What to call on the compute stream after the op of a slot."""
        return [self._after[slot]] if slot in self._after else []

    def _keep(self, op: int) -> None:
        self._states[op] = self._generator.get_state()

    def _go_back(self, op: int) -> None:
        self._ahead = self._generator.get_state()
        self._generator.set_state(self._states[op])

    def _go_on(self) -> None:
        if self._ahead is not None:
            self._generator.set_state(self._ahead)
