"""Which of a step's kernel calls matter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from planner.capture.events import Event, Layout


def wanted(events: Sequence[Event], kept: Iterable[Layout]) -> list[bool]:
    """Per event, whether anything that outlives the step follows from it.

    Calls that draw random numbers count always, because the next draw follows from them.

    Args:
        events: the calls in order.
        kept: what outlives the step.
    """
    needed = {layout.storage for layout in kept}
    result = []
    for event in reversed(events):
        written = {layout.storage for layout in (*event.mutated, *event.made)}
        matters = event.random or not needed.isdisjoint(written)
        if matters:
            needed.update(layout.storage for layout in event.arguments)
        result.append(matters)
    return result[::-1]
