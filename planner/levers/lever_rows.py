"""The result: a row for each way to change a step, and why others are not possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from html import escape

from planner.capture import capture
from planner.graph import Graph
from planner.plan import SwapPlan
from planner.step import Step
from planner.units import format_bytes, format_seconds


class Numbers(StrEnum):
    """How the numbers of a changed step compare with those of the given one."""

    SAME = "bit for bit"
    ROUNDING = "up to rounding if the loss is a mean over the rows"
    CHANGED = "changed"


@dataclass(frozen=True, eq=False)
class LeverRow:
    """A way to change a step, and what the changed step needs.

    Args:
        name: in a few words; of a pair, both names.
        change: what changes, in words.
        peak_bytes: device memory: of the captured order with nothing swapped, or of the plan, with what ops and
            libraries take outside of its arena.
        step_seconds: by the machine's roofline, or of the plan.
        samples_per_second: rows of the batch per second; whole batches where rows are not known.
        fits: whether the peak is within the memory of the machine.
        changes_numbers: whether the numbers stay those of the given step.
        parts: the names of the levers of a pair; empty for a single lever.
        plan: what is swapped and recomputed; None without.
        make_step: makes the changed step.
        device: the type of device whose ops it is captured with.
    """

    name: str
    change: str
    peak_bytes: int
    step_seconds: float
    samples_per_second: float
    fits: bool
    changes_numbers: Numbers
    parts: tuple[str, ...]
    plan: SwapPlan | None
    make_step: Callable[[], Step]
    device: str

    def __repr__(self) -> str:
        """One line, without the function that makes the step."""
        fits = "fits" if self.fits else "does not fit"
        needs = f"{format_bytes(self.peak_bytes)}, {format_seconds(self.step_seconds)} a step"
        return f"<LeverRow {self.name}: {needs}, {fits}, numbers {self.changes_numbers}>"

    @cached_property
    def step(self) -> Step:
        """The changed step, made when it is first asked for; its model is a copy with tensors of its own."""
        return self.make_step()

    @property
    def graph(self) -> Graph:
        """The captured graph of the changed step.

        Raises:
            StowageError: the step cannot be captured any more.
        """
        return capture(self.step, device=self.device, progress=False)


@dataclass(frozen=True, slots=True)
class Unchangeable:
    """A lever that a step does not have.

    Args:
        name: of the lever.
        reason: one sentence.
    """

    name: str
    reason: str


@dataclass(frozen=True, eq=False, repr=False)
class Levers:
    """A step as it was given and as it could be.

    Args:
        name: of the step.
        machine: name of the machine.
        budget_bytes: memory for the step: what was asked for, or that of the machine's device without what a process
            takes beside the step.
        unit: what is counted per second: `"rows"` of the batch, along dimension 0, or whole `"batches"`.
        rows: the given step first, then single levers, then pairs.
        unchangeable: the levers that the step does not have.
        approximate: in what rows found on the machine itself may differ, in a sentence; empty where in nothing.
    """

    name: str
    machine: str
    budget_bytes: int
    unit: str
    rows: tuple[LeverRow, ...]
    unchangeable: tuple[Unchangeable, ...]
    approximate: str

    def __getitem__(self, name: str) -> LeverRow:
        """The row of that name.

        Raises:
            KeyError: there is none.
        """
        found = next((row for row in self.rows if row.name == name), None)
        if found is None:
            raise KeyError(f"{name!r}; there are {', '.join(row.name for row in self.rows)}")
        return found

    def __iter__(self) -> Iterator[LeverRow]:
        """The rows, in order."""
        return iter(self.rows)

    @property
    def title(self) -> str:
        """What the table is about."""
        return f"{self.name} on {self.machine}, {format_bytes(self.budget_bytes)} for the step"

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """The header and the cells of the table, as text."""
        cells = [
            (
                row.name, format_bytes(row.peak_bytes), "yes" if row.fits else "no", format_seconds(row.step_seconds),
                _count(row.samples_per_second), str(row.changes_numbers), row.change,
            )
            for row in self.rows
        ]  # fmt: skip
        return ("lever", "peak", "fits", "step", f"{self.unit}/s", "numbers", "what changes"), cells

    def __repr__(self) -> str:
        """A table in plain text."""
        header, rows = self.table()
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (header, *rows)]
        return "\n".join([self.title, *lines, *(f"not {one.name}: {one.reason}" for one in self.unchangeable)])

    def _repr_html_(self) -> str:
        """The same table for a notebook."""
        header, rows = self.table()
        left = 'style="text-align:left"'
        head = "".join(f"<th {left}>{escape(text)}</th>" for text in header)
        body = "".join(f"<tr>{''.join(f'<td {left}>{escape(text)}</td>' for text in row)}</tr>" for row in rows)
        others = "".join(f"<li><b>{escape(one.name)}</b>: {escape(one.reason)}</li>" for one in self.unchangeable)
        listed = f"<p>Not possible:</p><ul>{others}</ul>" if others else ""
        caption = f"<caption {left}>{escape(self.title)}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{listed}"


def _count(amount: float) -> str:
    return f"{amount:,.0f}" if amount >= 100 else f"{amount:.3g}"
