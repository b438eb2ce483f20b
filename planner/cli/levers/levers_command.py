"""The command, and its rows as JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from planner.cli.output import examples, json_option, machine_device_option, show, show_paragraph, show_table
from planner.progress import reporting
from planner.units import format_bytes

if TYPE_CHECKING:
    from planner.levers import Levers

_EPILOG = examples(
    "python -m planner levers gpt --machine h100",
    "python -m planner levers gpt --machine h100 --budget 50%",
    "python -m planner levers wresnet:depth=152,widen=10,batch=32,image=224 --machine v100-16gb --json",
    "python -m planner levers path/to/file.py:function --machine laptop",
)


@click.command("levers", short_help="What another batch, optimizer or precision would do.", epilog=_EPILOG)
@click.argument("model")
@click.option("--machine", "machine_name", required=True, help="See `planner machines`.")
@click.option(
    "--budget",
    help="Memory for the step, beside what a process takes: 6GiB, or 50% of what it takes unswapped, as `planner swap` "
    "has it; without it, all that the machine's device has.",
)
@machine_device_option
@json_option
def command(model: str, machine_name: str, budget: str | None, captured_for: str | None, as_json: bool) -> None:
    """Say what other ways to make the step of MODEL need: batch, optimizer, precision, checkpointing, plans.

    MODEL is a zoo name with key=value arguments (see `planner models`), or path/to/file.py:function, where the function
    takes no arguments, or has defaults for them, and returns a planner.TrainStep or planner.InferenceStep.

    Peaks are those of the captured order with nothing swapped, and times come from a roofline. Rows per second are of
    the batch, along dimension 0. Numbers are those of the step as given, bit for bit, or up to rounding, or changed.
    The fastest row that fits is named, and of those that keep the numbers, too. What the step does not allow is listed
    with the reason. Ctrl-C ends it without an answer, with exit status 130.
    """
    from planner import zoo
    from planner.levers import levers
    from planner.profile import machine

    with reporting(True) as report:
        report(0.0, "loading the model")
        step, device = zoo.load(model), machine(machine_name, progress=report)
        found = levers(step, device, budget=budget, device=captured_for, progress=report)
    if as_json:
        show(_facts(found), as_json)
    else:
        _show_tables(found)
    most = device.device.memory_bytes
    if found.budget_bytes > most:
        print(
            f"note: the budget of {format_bytes(found.budget_bytes)} is more than the {format_bytes(most)} that "
            f"{device.name} has",
            file=sys.stderr,
        )


def _show_tables(found: Levers) -> None:
    """The rows, the best of them, then what each single lever changes, such that a narrow terminal has room."""
    columns, rows = found.table()
    show_paragraph(found.title)
    click.echo()
    show_table(columns[:-1], [row[:-1] for row in rows])
    best = _fastest(found)
    if best:
        click.echo("\nFastest that fits, by its numbers:")
        show(best, False)
    else:
        lowest = min(found, key=lambda row: row.peak_bytes)
        click.echo()
        show_paragraph(f"Nothing fits; the lowest peak is {format_bytes(lowest.peak_bytes)} ({lowest.name}).")
    click.echo("\nWhat changes:")
    show({row.name: row.change for row in found.rows[1:] if not row.parts}, False)
    if found.unchangeable:
        click.echo("\nNot possible:")
        show({one.name: one.reason for one in found.unchangeable}, False)
    if found.approximate:
        click.echo()
        show_paragraph(f"Approximate: {found.approximate}")


def _fastest(found: Levers) -> dict[str, str]:
    """By what becomes of the numbers, the fastest row that fits, where none that changes them less is as fast."""
    from planner.levers import Numbers

    rates = {row.name: cells[4] for row, cells in zip(found, found.table()[1], strict=True)}
    best: dict[str, str] = {}
    speed = 0.0
    for numbers in Numbers:
        fitting = [row for row in found if row.fits and row.changes_numbers is numbers]
        fastest = max(fitting, key=lambda row: row.samples_per_second, default=None)
        if fastest is not None and fastest.samples_per_second > speed:
            speed = fastest.samples_per_second
            best[str(numbers)] = f"{fastest.name}, {rates[fastest.name]} {found.unit}/s"
    return best


def _facts(found: Levers) -> dict[str, Any]:
    names = (
        "name", "change", "peak_bytes", "step_seconds", "samples_per_second", "fits", "changes_numbers", "parts",
    )  # fmt: skip
    return {
        "name": found.name,
        "machine": found.machine,
        "budget_bytes": found.budget_bytes,
        "unit": found.unit,
        "approximate": found.approximate,
        "rows": [{name: getattr(row, name) for name in names} for row in found.rows],
        "unchangeable": [{"name": one.name, "reason": one.reason} for one in found.unchangeable],
    }
