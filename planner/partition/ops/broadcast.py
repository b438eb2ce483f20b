"""Reading tensors as element-wise operators do: a dimension of size 1 goes with every index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.partition.tdl import Affine, Expression, Operand, as_expression


def at(tensor: Any, coordinates: Sequence[Affine]) -> Expression:
    """The element of a tensor, broadcast to some coordinates; a number is itself."""
    if not isinstance(tensor, Operand):
        return as_expression(tensor)
    lead = len(coordinates) - len(tensor.shape)
    places = [0 if size == 1 else coordinates[lead + number] for number, size in enumerate(tensor.shape)]
    return tensor[tuple(places)]


def pair(value: Sequence[int] | int, count: int = 2) -> tuple[int, ...]:
    """A setting for each of `count` dimensions, of which one may stand for all."""
    values = (value,) if isinstance(value, int) else tuple(value)
    return values * count if len(values) == 1 else values
