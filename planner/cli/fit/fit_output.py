"""What fits, as facts in JSON and as rows of the table."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from planner.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from planner.fit import Fit, Largest, Needs

#: Percent from which on a step is said to be slower.
_SHOWN = 0.05


def facts_of(found: Fit) -> dict[str, Any]:
    """The facts by their names in JSON."""
    slower = {_percent(share): asdict(answer) for share, answer in found.slower.items()}
    return {**asdict(found), "slower": slower}


def rows_of(found: Fit, values: range) -> dict[str, Any]:
    """The rows of the table.

    Args:
        found: the answers.
        values: all that were asked about.
    """
    tried = {needs.value: needs for needs in found.tried}

    def row(answer: Largest, *, unswapped: bool = False) -> str:
        if answer.value is None:
            return f"none of {values[0]} to {values[-1]}{_caveats(answer, values)}"
        needs = tried[answer.value]
        takes = format_bytes(needs.unswapped_bytes) if unswapped else _speed(needs)
        return f"{found.over}={answer.value}: {takes}{_caveats(answer, values)}"

    reserved = (f"{part.name} {format_bytes(part.bytes)}" for part in found.reserve if part.bytes)
    return {
        "budget": f"{format_bytes(found.budget_bytes)} of {found.machine}",
        "reserved": ", ".join(reserved) or "nothing",
        "unswapped": row(found.unswapped, unswapped=True),
        "full speed": row(found.full_speed),
        **{f"{_percent(share)} slower": row(answer) for share, answer in found.slower.items()},
        "at all": row(found.at_all),
        "tried": f"{len(tried)} of {len(values):,} values{_predicted(found)}",
    }


def _speed(needs: Needs) -> str:
    """The time of the plan's step, how much slower that is if it shows, and the host memory that it takes."""
    assert needs.step_seconds is not None
    slower = 100 * (needs.step_seconds / needs.ideal_seconds - 1)
    how_much = f", {slower:.2g} % slower" if slower >= _SHOWN else ""
    host = f", {format_bytes(needs.host_bytes)} in the host" if needs.host_bytes else ""
    return f"{format_seconds(needs.step_seconds)} a step{how_much}{host}"


def _caveats(answer: Largest, values: range) -> str:
    """What to know before relying on an answer."""
    said = ""
    if answer.value == values[-1]:
        said += " (the last asked for)"
    if not answer.proven:
        said += " (larger ones not all tried)"
    if not answer.monotone:
        said += " (some smaller ones fail)"
    return said


def _predicted(found: Fit) -> str:
    """How many values were tried by a predicted graph alone."""
    count = sum(not needs.captured for needs in found.tried)
    return f", {count} of them predicted" if count else ""


def _percent(share: float) -> str:
    return f"{100 * share:g}%"
