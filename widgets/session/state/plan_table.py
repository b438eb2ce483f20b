"""The list of plans as a user reads it: a sequence of rows, and a table in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import overload

from planner.plan import SwapPlan
from planner.units import bytes_label, format_percent, format_seconds, several

_HEADS = (
    "", "plan", "machine", "budget", "step", "of ideal", "copied", "run again", "method", "note",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class PlanRow:
    """One plan of the list.

    Args:
        number: the plan's number, counted from 1; it never changes.
        name, note: the user's words, or `"plan 3"` and `""`.
        machine: readable name of the machine that it was made for.
        plan: the plan, with the budget that it was made within.
        percent_of_ideal: its speed relative to infinite memory.
        bytes_moved: bytes copied in each step, both ways.
        recompute_seconds: the part of the step in which ops run again.
        search: the method of the search whose best plan it is, such as `"swap"`; None for any other plan.
        best: whether it is the fastest of the list for its machine.
        shown: whether it is the plan that is shown.
    """

    number: int
    name: str
    machine: str
    plan: SwapPlan
    percent_of_ideal: float
    bytes_moved: int
    recompute_seconds: float
    search: str | None
    note: str
    best: bool
    shown: bool

    @property
    def budget_bytes(self) -> int:
        """The budget that it was made within."""
        return self.plan.budget_bytes

    @property
    def step_seconds(self) -> float:
        """Predicted length of the step."""
        return self.plan.predicted.seconds

    @property
    def method(self) -> str:
        """The method that was searched, with the policy that made the plan: `swap (tflms)`, or that policy alone."""
        made = self.plan.method
        return made if self.search in (None, made) else f"{self.search} ({made})"

    def __repr__(self) -> str:
        """It in one line."""
        named = f" {self.name!r}" if self.name != f"plan {self.number}" else ""
        return (
            f"<Plan {self.number}{named} for {self.machine}, {bytes_label(self.budget_bytes)}: "
            f"{format_seconds(self.step_seconds)} a step, {format_percent(self.percent_of_ideal / 100)} of ideal, "
            f"{self.method}>"
        )

    def cells(self) -> list[str]:
        """It as a row of text."""
        marks = f"{'▸' if self.shown else ''}{'★' if self.best else ''}"
        return [
            marks, self.name, self.machine, bytes_label(self.budget_bytes), format_seconds(self.step_seconds),
            format_percent(self.percent_of_ideal / 100), bytes_label(self.bytes_moved),
            format_seconds(self.recompute_seconds), self.method, self.note,
        ]  # fmt: skip


class PlanTable(Sequence[PlanRow]):
    """The list of plans at one moment, the first that was made first.

    Args:
        rows: the plans.
        dropped: how many older ones are no longer in the list.
    """

    def __init__(self, rows: Sequence[PlanRow], dropped: int) -> None:
        self._rows, self.dropped = tuple(rows), dropped

    @overload
    def __getitem__(self, at: int) -> PlanRow: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[PlanRow]: ...
    def __getitem__(self, at: int | slice) -> PlanRow | Sequence[PlanRow]:
        return self._rows[at]

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        cells = [list(_HEADS), *([" ".join(cell.split()) for cell in row.cells()] for row in self._rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in cells] if self._rows else []
        return "\n".join([f"<{several(len(self), 'plan')}{self._words()}>", *lines])

    def _repr_html_(self) -> str:
        """The list as a table of a notebook."""
        head = "".join(f'<th style="text-align:left">{text}</th>' for text in _HEADS)
        body = "".join(
            "<tr>" + "".join(f'<td style="text-align:left">{escape(cell)}</td>' for cell in row.cells()) + "</tr>"
            for row in self._rows
        )
        foot = f"<p>{self._words()[2:]}.</p>" if self.dropped else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{foot}"

    def _words(self) -> str:
        return f"; {self.dropped:,} older without a name or a note were dropped" if self.dropped else ""
