"""What a way of searching for plans looks like to the search that runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple, Protocol, TypeVar

from planner.plan import SwapPlan
from planner.swap.problem.problem import Problem

Item = TypeVar("Item")
Result = TypeVar("Result")


class Turn(NamedTuple):
    """What one turn of a search has done.

    `evaluations` plans were timed; `plan` is one that may be better than all before, or None. `doing` says in words
    what is being tried and `share` how much of it is done, from 0 to 1.
    """

    evaluations: int
    plan: SwapPlan | None
    doing: str
    share: float


@dataclass(frozen=True, eq=False)
class Setting:
    """What every method is given.

    Args:
        problem: what is planned; its `stop` is asked between pieces of work that take well under a second.
        bound: seconds that no plan goes below; whoever meets it may stop.
        seed: for random choices; the same seed and number of turns give the same plans.
        each: applies a function to every item, in threads where there are some, and returns results in the order of
            the items. Kernels free the interpreter's lock; what is applied must not share scratch between items.
        best: seconds of the fastest plan so far, whichever method found it.
        plan: that plan.
    """

    problem: Problem
    bound: float
    seed: int
    each: Each
    best: Callable[[], float] = lambda: inf
    plan: Callable[[], SwapPlan | None] = lambda: None


class Each(Protocol):
    """Applies a function to every item and returns the results in order."""

    def __call__(self, function: Callable[[Item], Result], items: Iterable[Item], /) -> list[Result]:
        """Apply."""
        ...


class Method(Protocol):
    """A way of searching. Made with a `Setting`; everything it decides follows from that and the number of turns."""

    def turn(self) -> Turn | None:
        """Work for a moment, well under a second where that can be; None when nothing is left to try.

        Raises:
            Stopped: it was asked to stop; the next turn is the one that this would have been.
        """
        ...

    def memory(self) -> dict[str, Any]:
        """All that is needed to go on later, as plain JSON data."""
        ...

    def recall(self, memory: dict[str, Any]) -> None:
        """Go on from what `memory` returned, on a new object with the same setting."""
        ...
