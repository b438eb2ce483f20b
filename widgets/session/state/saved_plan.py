"""A plan as a list keeps it in a file: with the user's words, and how it was found."""

from __future__ import annotations

from dataclasses import dataclass

from planner.plan import SwapPlan


@dataclass(frozen=True, eq=False)
class SavedPlan:
    """A plan of a file.

    Args:
        plan: a valid plan of the step.
        name, note: the user's words, `""` for none.
        searched: the method of the search whose best plan it was, None for any other plan.
    """

    plan: SwapPlan
    name: str = ""
    note: str = ""
    searched: str | None = None
