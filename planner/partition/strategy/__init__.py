"""Strategies: every way of splitting an op, what it needs, what it leaves, and the bytes that it moves."""

from planner.partition.strategy.communication import (
    conversion_bytes,
    extent_mask,
    input_bytes,
    overlap,
    received_elements,
    stage_bytes,
)
from planner.partition.strategy.states import Partial, Replicated, Split, State, Unread, chunk, held, own_digit
from planner.partition.strategy.strategies import StageReduction, Strategy, needs, split_along, strategies

__all__ = [
    "Partial", "Replicated", "Split", "StageReduction", "State", "Strategy", "Unread", "chunk", "conversion_bytes",
    "extent_mask", "held", "input_bytes", "needs", "overlap", "own_digit", "received_elements", "split_along",
    "stage_bytes", "strategies",
]  # fmt: skip
