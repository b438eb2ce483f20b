"""The list of plans for the page, and in what two of them differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.plan import PlanComparison
from widgets.messages.message import Message, message


def plans_message(rows: Sequence[Mapping[str, Any]], dropped: int, *, undo: bool, redo: bool) -> Message:
    """Pack the list of plans.

    Args:
        rows: the plans, in the order in which they were made.
        dropped: how many older ones are no longer in the list.
        undo, redo: whether there is anything to go back to, or forward to.
    """
    return message("plans", {"rows": rows, "dropped": dropped, "undo": undo, "redo": redo})


def difference_message(first: int, second: int, comparison: PlanComparison | None) -> Message:
    """Pack the comparison of two plans of the list.

    Args:
        first, second: their numbers.
        comparison: in what they differ; None for no comparison.
    """
    if comparison is None:
        return message("plan_difference", {"first": first, "second": second, "figures": [], "tensors": [], "same": 0})
    return message("plan_difference", {
        "first": first, "second": second, "figures": comparison.figure_rows(), "same": comparison.same_tensors,
        "tensors": [
            [each.storage, each.name, each.bytes, str(each.first), str(each.second)] for each in comparison.tensors
        ],
    })  # fmt: skip
