"""The result: figures of two plans, what happens to each tensor, and when their memory differs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from html import escape

from planner.graph import Kind
from planner.plan.comparison.unlike_memory import MemorySpan
from planner.plan.schema.swap_plan import SwapPlan
from planner.plan.schema.timeline import MemorySamples
from planner.units import bytes_label, format_bytes, format_seconds, several

Cells = Sequence[Sequence[str]]
#: The most tensors, and the most times at which memory differs, in a table.
_MOST_TENSORS, _MOST_TIMES = 12, 4


class Treatment(StrEnum):
    """What a plan does with a storage: copied to or from the host is swapped, made again in a step is recomputed."""

    KEPT = "kept"
    SWAPPED = "swapped"
    RECOMPUTED = "recomputed"
    BOTH = "swapped and recomputed"


@dataclass(frozen=True, slots=True)
class PlanFigures:
    """The key figures of one of the plans.

    Args:
        method, machine: which planner made it, and for which machine.
        budget_bytes: the limit that it was made under.
        peak_bytes, host_bytes: size of the device arena and of the host slab.
        step_seconds, stall_seconds, recompute_seconds: predicted length of the step, the part of it in which compute
            waits, and the part in which ops run again.
        bytes_out, bytes_in: bytes copied to the host and to the device in each step.
        recomputed_ops: how many times an op runs again in a step.
    """

    method: str
    machine: str
    budget_bytes: int
    peak_bytes: int
    host_bytes: int
    step_seconds: float
    stall_seconds: float
    recompute_seconds: float
    bytes_out: int
    bytes_in: int
    recomputed_ops: int


@dataclass(frozen=True, slots=True)
class TensorDifference:
    """A storage that the two plans treat differently.

    Args:
        storage, name, kind, bytes: which one.
        line: the user's line that it belongs to, as `model.py:123`; `""` if none is known.
        first, second: what each plan does with it.
        first_spans, second_spans: when it is on the device, as pairs of seconds.
    """

    storage: int
    name: str
    kind: Kind
    bytes: int
    line: str
    first: Treatment
    second: Treatment
    first_spans: tuple[tuple[float, float], ...]
    second_spans: tuple[tuple[float, float], ...]


@dataclass(frozen=True, eq=False, repr=False)
class PlanComparison:
    """Two plans of one step.

    Args:
        name: of the step.
        first_plan, second_plan: what was compared.
        first, second: their key figures.
        tensors: the storages that they treat differently, the largest first; scratch memory is left out.
        same_tensors: how many storages with memory they treat alike.
        first_memory, second_memory: predicted bytes on the device over the step.
        times: when memory differs by at least a hundredth of the higher peak, in order, until the shorter step ends.
    """

    name: str
    first_plan: SwapPlan
    second_plan: SwapPlan
    first: PlanFigures
    second: PlanFigures
    tensors: tuple[TensorDifference, ...]
    same_tensors: int
    first_memory: MemorySamples
    second_memory: MemorySamples
    times: tuple[MemorySpan, ...]

    @property
    def largest_times(self) -> tuple[MemorySpan, ...]:
        """The times in which memory differs most, by bytes and duration, the largest first."""
        return tuple(sorted(self.times, key=lambda span: -abs(span.bytes) * (span.stop - span.start)))

    def figure_rows(self) -> Cells:
        """A row for each figure: its name, and the amounts of both plans."""
        one, other = self.first, self.second
        return [
            ("method", one.method, other.method),
            ("machine", one.machine, other.machine),
            ("budget", format_bytes(one.budget_bytes), format_bytes(other.budget_bytes)),
            ("peak", *_changed(one.peak_bytes, other.peak_bytes, format_bytes)),
            ("step", *_changed(one.step_seconds, other.step_seconds, format_seconds)),
            ("compute waits", format_seconds(one.stall_seconds), format_seconds(other.stall_seconds)),
            ("copied to the host", format_bytes(one.bytes_out), format_bytes(other.bytes_out)),
            ("copied to the device", format_bytes(one.bytes_in), format_bytes(other.bytes_in)),
            ("pinned host memory", format_bytes(one.host_bytes), format_bytes(other.host_bytes)),
            ("run again", _again(one), _again(other)),
        ]

    def tensor_rows(self) -> Cells:
        """A row for each of the largest differing tensors: name, size, line, and what both plans do."""
        shown = self.tensors if len(self.tensors) <= _MOST_TENSORS else self.tensors[: _MOST_TENSORS - 1]
        rows = [(one.name, bytes_label(one.bytes), one.line, str(one.first), str(one.second)) for one in shown]
        if rest := self.tensors[len(shown) :]:
            rows.append((f"{len(rest):,} more", bytes_label(sum(one.bytes for one in rest)), "", "", ""))
        return rows

    def time_rows(self) -> Cells:
        """A row for each of the times in which memory differs most: from when to when, how much, and where that is."""
        return [
            (
                f"{format_seconds(span.start)} to {format_seconds(span.stop)}",
                f"{bytes_label(abs(span.bytes))} more in the {'second' if span.bytes > 0 else 'first'}",
                f"{span.phase}, at {span.op}",
            )
            for span in self.largest_times[:_MOST_TIMES]
        ]

    def __repr__(self) -> str:
        """One line."""
        differing = sum(one.bytes for one in self.tensors)
        peaks = f"{format_bytes(self.first.peak_bytes)} and {format_bytes(self.second.peak_bytes)}"
        steps = f"{format_seconds(self.first.step_seconds)} and {format_seconds(self.second.step_seconds)}"
        verb = "is" if len(self.tensors) == 1 else "are"
        return (
            f"<PlanComparison of {self.name}: peaks of {peaks}, steps of {steps}; "
            f"{several(len(self.tensors), 'tensor')} of {format_bytes(differing)} {verb} treated differently>"
        )

    def _repr_html_(self) -> str:
        """The figures, the tensors and the times as tables of a notebook."""
        tables: list[tuple[Sequence[str], Cells]] = [(("", "first", "second"), self.figure_rows())]
        if self.tensors:
            tables.append((("tensor", "bytes", "line", "first", "second"), self.tensor_rows()))
        if self.times:
            tables.append((("when memory differs", "by up to", "where"), self.time_rows()))
        return "".join(_html(header, rows) for header, rows in tables)


def _changed(first: float, second: float, form: Callable[[float], str]) -> tuple[str, str]:
    """Both amounts, the second with its change in percent if that shows."""
    change = round(100 * (second / first - 1)) if first else 0
    more = f" ({'+' if change > 0 else '-'}{abs(change)} %)" if change else ""
    return form(first), f"{form(second)}{more}"


def _again(figures: PlanFigures) -> str:
    if not figures.recomputed_ops:
        return "no op"
    return f"{several(figures.recomputed_ops, 'op')}, {format_seconds(figures.recompute_seconds)}"


def _html(header: Sequence[str], rows: Cells) -> str:
    left = 'style="text-align:left"'
    head = "".join(f"<th {left}>{escape(text)}</th>" for text in header)
    body = "".join(f"<tr>{''.join(f'<td {left}>{escape(text)}</td>' for text in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
