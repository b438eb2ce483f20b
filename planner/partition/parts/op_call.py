"""The call of an op as far as it decides which parts of it a worker can compute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.partition.strategy import Replicated, State, Strategy
from planner.partition.tdl import Description


@dataclass(frozen=True, eq=False)
class OpCall:
    """An operator's call, with operands for tensors.

    Args:
        target: the overload.
        arguments: by name in the operator's schema, defaults included.
        description: what it computes.
        outputs: per output of the op, the output of the description that it is.
        dtypes: per output of the op, its type.
    """

    target: Any
    arguments: Mapping[str, Any]
    description: Description
    outputs: tuple[int, ...]
    dtypes: tuple[str, ...]

    def gives(self, strategy: Strategy) -> tuple[State, ...]:
        """How the op's outputs are spread afterwards, in their order; whole if they have no elements."""
        states = (strategy.outputs[number] for number in self.outputs)
        return tuple(Replicated() if state is None else state for state in states)
