"""`planner swap`."""

from __future__ import annotations

from math import isnan

import click

from planner.cli.output import json_option, show
from planner.cli.progress import progress
from planner.errors import StowageError
from planner.memory import save_plan

_EPILOG = """\b
Examples:
  python -m planner swap gpt --budget 50% --out plan.json
  python -m planner swap wresnet:depth=152,widen=10,batch=32,image=224 --machine v100-16gb --budget 16GB --json"""


@click.command("swap", epilog=_EPILOG)
@click.argument("model")
@click.option("--machine", "machine_name", default="cpu", show_default=True, help="See `planner machines`.")
@click.option("--budget", required=True, help="Device memory, such as 8GiB, or 40% of the step's own peak.")
@click.option("--host-budget", default=None, help="Host memory that may be pinned; no limit by default.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="Stop looking for better plans by then.",
)
@click.option("--seed", type=int, expose_value=False, help="For random choices; today's planners make none.")
@click.option("--method", default=None, help="calendar or on-demand; by default the best plan of all.")
@click.option("--remeasure", is_flag=True, help="Measure op times anew (see `planner machines`); for cpu and auto.")
@click.option("--out", type=click.Path(), default=None, help="Write the plan as JSON here.")
@json_option
def command(
    model: str,
    machine_name: str,
    budget: str,
    host_budget: str | None,
    seconds: float,
    method: str | None,
    remeasure: bool,
    out: str | None,
    as_json: bool,
) -> None:
    """Plan the step of MODEL inside a memory budget; nothing is allocated and no GPU is needed.

    On `cpu` and `auto`, ops are measured here; on presets their times come from a roofline.

    \b
    What the rows say:
      step peak   what the step takes when nothing is swapped: 100 % of a budget
      peak        device memory that the plan takes, at most the budget
      host        pinned host memory that it takes
      ideal       the time of all ops, with no wait for any copy
      step        the time of the plan; percent of ideal compares the two
      bound       no plan within this budget is faster
      gap         how far the plan is above that bound, in percent
      bytes in, bytes out
                  copied to the device and to the host in each step
      evaluations how many plans were timed in the search
      baselines   the times of simpler plans; - where one does not fit
    """
    from planner import zoo
    from planner.capture import capture
    from planner.machine import machine, timed
    from planner.memory import step_peak
    from planner.swap import compare_plans

    if isnan(seconds):
        raise StowageError("--seconds nan is no time to stop looking; give a number of at least 0")
    device = machine(machine_name)
    step = zoo.load(model)
    with progress() as report:
        ready = timed(capture(step, progress=report), device, progress=report, remeasure=remeasure)
        found = compare_plans(
            ready.graph, device, budget, host_budget=host_budget, seconds=ready.seconds, method=method,
            time_limit=seconds, progress=report,
        )  # fmt: skip
    plan, sizes = found.plan, [storage.bytes for storage in ready.graph.storages]
    if out is not None:
        save_plan(plan, out)
    step_seconds = plan.predicted.seconds
    show(
        {
            "step_peak_bytes": step_peak(ready.graph, plan.alignment),
            "budget_bytes": plan.budget_bytes,
            "peak_bytes": plan.peak_bytes,
            "host_bytes": plan.host_bytes,
            "ideal_seconds": found.ideal_seconds,
            "step_seconds": step_seconds,
            "bound_seconds": found.bound_seconds,
            "percent_of_ideal": 100 * found.ideal_seconds / step_seconds,
            "gap_to_bound_percent": 100 * max(0.0, step_seconds / found.bound_seconds - 1),
            "bytes_in": sum(sizes[copy.storage] for copy in plan.swap_ins),
            "bytes_out": sum(sizes[copy.storage] for copy in plan.swap_outs),
            "evaluations": found.evaluations,
            "search_seconds": found.search_seconds,
            "baselines": found.baselines,
            "method": plan.method,
            "valid": True,
        },
        as_json,
    )
