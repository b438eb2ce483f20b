"""The command, and its points as a table and as JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from planner.cli.output import (
    device_option,
    examples,
    json_option,
    ops_text,
    show,
    show_paragraph,
    show_table,
    words_of,
)
from planner.cli.waiting import stopped_by_interrupt
from planner.plan import recompute_seconds
from planner.progress import reporting
from planner.units import format_bytes, format_percent, format_seconds

if TYPE_CHECKING:
    from planner.swap import BudgetPoint

_EPILOG = examples(
    "python -m planner sweep gpt --machine h200",
    "python -m planner sweep gpt --machine h200 --budgets 30%,50%,75% --methods swap,recompute,joint",
    "python -m planner sweep inception:batch=64 --machine v100-16gb --budgets 8GB,10GB,12GB --seconds 20 --json",
)


@click.command("sweep", short_help="Plans inside several budgets, by several methods.", epilog=_EPILOG)
@click.argument("model")
@click.option("--machine", "machine_name", default="cpu", show_default=True, help="See `planner machines`.")
@click.option(
    "--budgets",
    default=None,
    help="Device memory, such as 4GiB,8GiB or 30%,50%; by default eight from the least to the step's own peak.",
)
@click.option(
    "--methods", default="auto", show_default=True, help="What searches, such as swap,recompute,joint; see `swap`."
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    help="Time limit of each search; there is one for each method and budget.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="For random choices of the searches.")
@device_option
@json_option
def command(
    model: str,
    machine_name: str,
    captured_for: str,
    budgets: str | None,
    methods: str,
    seconds: float,
    seed: int,
    as_json: bool,
) -> None:
    """Plan the step of MODEL inside several memory budgets: what does more memory buy?

    MODEL is a zoo name with key=value arguments (see `planner models`), or path/to/file.py:function, where the function
    takes no arguments, or has defaults for them, and returns a planner.TrainStep or planner.InferenceStep.

    A row is a budget, a column a method, with the time of the best plan and the share of the speed with infinite memory
    that it reaches; - where the method has no plan, ? where Ctrl-C came before it was tried. On `cpu` and `auto`, ops
    are measured here; on presets their times come from a roofline. Ctrl-C ends it with the points so far.
    """
    from planner import zoo
    from planner.machine import approximation
    from planner.profile import machine, prepare
    from planner.swap import check_choice, peak_of, sweep

    names = words_of("--methods", methods)
    for name in names:
        check_choice(name, seed)
    amounts = None if budgets is None else words_of("--budgets", budgets)
    device, step = machine(machine_name), zoo.load(model)
    with reporting(True) as report, stopped_by_interrupt() as stop:
        ready = prepare(step, device, captured_for=captured_for, progress=report.part(0.0, 0.1))
        found, complete = {}, set[str]()
        for done, name in enumerate(names):
            part = report.part(0.1 + 0.9 * done / len(names), 0.1 + 0.9 * (done + 1) / len(names), name)
            found[name] = sweep(
                ready.graph, device, amounts, seconds=ready.seconds, time_limit_each=seconds, seed=seed, method=name,
                progress=part, stop=stop,
            )  # fmt: skip
            complete |= set() if stop.requested else {name}
    points = [{"method": name, **_facts(point)} for name, each in found.items() for point in each]
    if not points and stop.requested:
        raise KeyboardInterrupt
    if as_json:
        show(
            {
                "name": ready.graph.name, "machine": device.name, "step_peak_bytes": peak_of(ready.graph,
                device.device.alignment), "approximate": approximation(ready.graph, device),
                "stopped": stop.requested, "points": points,
            },
            True,
        )  # fmt: skip
    else:
        show_paragraph(f"ops: {ops_text(ready.graph, device)}")
        click.echo()
        show_table(["budget", *names], _rows(found, complete))
        if caution := approximation(ready.graph, device):
            click.echo()
            show_paragraph(f"Approximate: {caution}")
    if stop.requested:
        print("stopped: these are the points so far", file=sys.stderr)


def _facts(point: BudgetPoint) -> dict[str, Any]:
    return {
        "budget_bytes": point.budget_bytes,
        "peak_bytes": point.plan.peak_bytes,
        "host_bytes": point.plan.host_bytes,
        "step_seconds": point.step_seconds,
        "ideal_seconds": point.ideal_seconds,
        "bound_seconds": point.bound_seconds,
        "percent_of_ideal": point.percent_of_ideal,
        "recompute_seconds": recompute_seconds(point.plan),
        "bytes_in": point.bytes_in,
        "bytes_out": point.bytes_out,
    }


def _rows(found: dict[str, tuple[BudgetPoint, ...]], complete: set[str]) -> list[list[str]]:
    at = {name: {point.budget_bytes: point for point in points} for name, points in found.items()}
    budgets = sorted({budget for points in at.values() for budget in points})
    return [
        [format_bytes(budget), *(_cell(points.get(budget), name in complete) for name, points in at.items())]
        for budget in budgets
    ]


def _cell(point: BudgetPoint | None, tried: bool) -> str:
    if point is None:
        return "-" if tried else "?"
    return f"{format_seconds(point.step_seconds)}, {format_percent(point.percent_of_ideal / 100)}"
