"""What fits, as facts in JSON and as rows of the table."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from planner.cli.output import Phrases
from planner.machine import PRESETS, SETTINGS
from planner.units import format_bytes, format_percent, format_seconds

if TYPE_CHECKING:
    from planner.fit import Fit, Largest, Needs
    from planner.machine import Machine

#: The share of time from which on a step is said to be slower.
_SHOWN = 0.0005


def facts_of(found: Fit, step: str, machine: Machine) -> dict[str, Any]:
    """The facts by their names in JSON."""
    from planner.fit import share_text

    slower = {share_text(share): asdict(answer) for share, answer in found.slower.items()}
    about = {"step": step, "memory_bytes": machine.device.memory_bytes, "host_memory_bytes": machine.host_memory_bytes}
    asked = {"first": found.asked[0], "last": found.asked[-1]}
    stopped = {"stopped_by_model": found.stopped_by_model}
    return {**about, **asdict(found), **stopped, "slower": slower, "asked": asked}


def rows_of(found: Fit, step: str, machine: Machine) -> dict[str, Any]:
    """The rows of the table.

    Args:
        found: the answers.
        step: what was asked about, with all settings.
        machine: the machine.
    """
    from planner.fit import remarks, share_text, why_none

    values = found.asked
    tried = {needs.value: needs for needs in found.tried}

    def row(answer: Largest, *, unswapped: bool = False) -> Phrases:
        if answer.value is None:
            advice = "; try smaller ones" if values[0] > 1 else ""
            return Phrases([f"none: {why_none(found, unswapped=unswapped)}{advice}"])
        needs = tried[answer.value]
        takes = format_bytes(needs.unswapped_bytes) if unswapped else _speed(needs)
        remarked = (f"({words})" for words in remarks(found, answer, unswapped=unswapped))
        return Phrases([f"{found.over}={answer.value}: {takes}", *remarked])

    failures = "; ".join(f"{found.over}={failure.value}: {failure.error}" for failure in found.failed)
    reserved = (f"{part.name} {format_bytes(part.bytes)}" for part in found.reserve if part.bytes)
    return {
        "step": step.replace(",", ", "),  # which a narrow terminal can wrap
        "machine": _machine(machine),
        "budget": f"{format_bytes(found.budget_bytes)} of {found.machine}",
        "reserved": ", ".join(reserved) or "nothing",
        "unswapped": row(found.unswapped, unswapped=True),
        "full speed": row(found.full_speed),
        **{f"{share_text(share)} slower": row(answer) for share, answer in found.slower.items()},
        "at all": row(found.at_all),
        "tried": f"{len(tried)} of {len(values):,} values{_predicted(found)}",
        **({"fails": failures} if failures else {}),
        "approximate": found.approximate or "no",
    }


def _machine(machine: Machine) -> str:
    """A machine with its memory; of a preset also whether the host's is assumed, and how to say what it is."""
    device, host = format_bytes(machine.device.memory_bytes), format_bytes(machine.host_memory_bytes)
    each = " each" if len(machine.devices) > 1 else ""
    preset, _, settings = machine.name.partition(":")
    said = f"{machine.name}: {device} of memory{each}, {host} of host memory"
    if "host_memory=" in settings or preset not in PRESETS:
        return said
    example = ",".join(filter(None, (settings, f"host_memory={SETTINGS['host_memory']}")))
    return f"{said} (assumed; set yours as in {preset}:{example})"


def _speed(needs: Needs) -> str:
    """The time of the plan's step, how much slower that is if it shows, and the host memory that it takes."""
    assert needs.step_seconds is not None
    slower = needs.step_seconds / needs.ideal_seconds - 1
    how_much = f", {format_percent(slower)} slower" if slower >= _SHOWN else ""
    host = f", {format_bytes(needs.host_bytes)} in the host" if needs.host_bytes else ""
    return f"{format_seconds(needs.step_seconds)} a step{how_much}{host}"


def _predicted(found: Fit) -> str:
    """How many values were tried by a predicted graph alone."""
    count = sum(not needs.captured for needs in found.tried)
    return f", {count} of them predicted" if count else ""
