"""Dead code elimination on recorded kernel calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from planner.program import Event, Layout


def find_live(events: Sequence[Event], kept: Iterable[Layout]) -> list[bool]:
    """Return, per event, whether it is live, that is, whether any tensor that outlives the step depends on it.

    Calls that draw random numbers of their own are always live, because the next draw depends on them, and so are those
    that update a tensor without elements: such tokens stand for an order that something else than tensors depends on.

    Args:
        events: the calls in order.
        kept: layouts of the tensors that outlive the step.
    """
    needed = {layout.storage for layout in kept}
    result = []
    for event in reversed(events):
        written = {layout.storage for layout in (*event.mutated, *event.made)}
        ordered = any(not layout.elements for layout in event.mutated)
        draws = event.random and event.draws_as < 0
        matters = draws or ordered or not needed.isdisjoint(written)
        if matters:
            needed.update(layout.storage for layout in event.arguments)
        result.append(matters)
    return result[::-1]
