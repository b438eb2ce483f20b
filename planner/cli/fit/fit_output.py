"""What fits, as facts in JSON and as rows of the table."""

from __future__ import annotations

from collections.abc import Iterator
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
    slower = {_percent(share): asdict(answer) for share, answer in found.slower.items()}
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
    values = found.asked
    tried = {needs.value: needs for needs in found.tried}

    def row(answer: Largest, *, unswapped: bool = False) -> Phrases:
        if answer.value is None:
            return Phrases([_none(found, tried[values[0]], unswapped=unswapped)])
        needs = tried[answer.value]
        takes = format_bytes(needs.unswapped_bytes) if unswapped else _speed(needs)
        by_host = found.stopped_by_host and answer.value == found.at_all.value and not unswapped
        stop = f"host memory stops {found.over}={values[values.index(answer.value) + 1]}" if by_host else ""
        caveats = (f"({words})" for words in (stop, *_caveats(answer, found)) if words)
        return Phrases([f"{found.over}={answer.value}: {takes}", *caveats])

    failures = "; ".join(f"{found.over}={failure.value}: {failure.error}" for failure in found.failed)
    reserved = (f"{part.name} {format_bytes(part.bytes)}" for part in found.reserve if part.bytes)
    return {
        "step": step.replace(",", ", "),  # which a narrow terminal can wrap
        "machine": _machine(machine),
        "budget": f"{format_bytes(found.budget_bytes)} of {found.machine}",
        "reserved": ", ".join(reserved) or "nothing",
        "unswapped": row(found.unswapped, unswapped=True),
        "full speed": row(found.full_speed),
        **{f"{_percent(share)} slower": row(answer) for share, answer in found.slower.items()},
        "at all": row(found.at_all),
        "tried": f"{len(tried)} of {len(values):,} values{_predicted(found)}",
        **({"fails": failures} if failures else {}),
    }


def _none(found: Fit, smallest: Needs, *, unswapped: bool) -> str:
    """Why there is no answer: the smallest value fails already."""
    size, takes = f"{found.over}={smallest.value}", format_bytes(smallest.unswapped_bytes)
    advice = "; try smaller ones" if smallest.value > 1 else ""
    if unswapped:
        return f"none: {size} already takes {takes}{advice}"
    if smallest.step_seconds is not None:
        slower = format_percent(smallest.step_seconds / smallest.ideal_seconds - 1)
        return f"none: {size} is already {slower} slower{advice}"
    why = "more host memory than there is" if found.stopped_by_host else f"{takes} unswapped and no plan was found"
    return f"none: {size} already takes {why}{advice}"


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


def _caveats(answer: Largest, found: Fit) -> Iterator[str]:
    """What to know before relying on an answer."""
    if answer.value == found.asked[-1]:
        yield f"the model stops {found.over}={answer.value + 1}" if found.stopped_by_model else "the last asked for"
    if not answer.proven:
        yield "larger ones not all tried"
    if not answer.monotone:
        yield "some smaller ones fail"


def _predicted(found: Fit) -> str:
    """How many values were tried by a predicted graph alone."""
    count = sum(not needs.captured for needs in found.tried)
    return f", {count} of them predicted" if count else ""


def _percent(share: float) -> str:
    return f"{100 * share:g}%"
