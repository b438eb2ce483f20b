"""What holds a peak, and how it compares with the predicted one, as facts in JSON and as rows of tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from planner.units import bytes_label

if TYPE_CHECKING:
    from planner.snapshot import LineBytes, PeakComparison


def holder_rows(holders: Sequence[LineBytes], most: int) -> list[list[str]]:
    """A row for each of the lines that hold the most, and one for all others."""
    rows = [[one.line or "no line is known", bytes_label(one.bytes), f"{one.allocations:,}"] for one in holders[:most]]
    rest = holders[most:]
    if rest:
        blocks = sum(one.allocations for one in rest)
        rows.append([f"{len(rest):,} more", bytes_label(sum(one.bytes for one in rest)), f"{blocks:,}"])
    return rows


def holder_facts(one: LineBytes) -> dict[str, Any]:
    """A line by its names in JSON."""
    return {"line": one.line, "bytes": one.bytes, "allocations": one.allocations}


def comparison_rows(compared: PeakComparison) -> list[list[str]]:
    """From the predicted peak to the measured one."""
    parts = [[name, _signed(size)] for name, size in compared.rows.items()]
    predicted, measured = bytes_label(compared.predicted_bytes), bytes_label(compared.measured_bytes)
    return [["predicted peak", predicted], *parts, ["measured peak", measured]]


def comparison_facts(compared: PeakComparison) -> dict[str, Any]:
    """A comparison by its names in JSON."""
    return {
        "measured_bytes": compared.measured_bytes,
        "predicted_bytes": compared.predicted_bytes,
        "rows": dict(compared.rows),
        "paired_bytes": compared.paired_bytes,
        "is_of_another_step": compared.is_of_another_step,
        "lines": [
            {"line": one.line, "measured_bytes": one.measured_bytes, "predicted_bytes": one.predicted_bytes}
            for one in compared.lines
        ],
    }


def _signed(size: int) -> str:
    return f"{'-' if size < 0 else '+' if size else ''}{bytes_label(abs(size))}"
