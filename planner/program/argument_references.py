"""Placeholders for values among the arguments of a call that has not been made yet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TensorRef:
    """An argument that is a tensor of the graph."""

    tensor: int


@dataclass(frozen=True, slots=True)
class ScalarRef:
    """An argument that is a number which changes from step to step, such as a learning rate."""

    name: str
