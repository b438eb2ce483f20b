"""`planner run`."""

from __future__ import annotations

from statistics import median

import click

from planner.cli.output import json_option, show
from planner.cli.progress import progress
from planner.errors import StowageError

_EPILOG = """\b
Examples:
  python -m planner run gpt --budget 50% --check
  python -m planner run wresnet:depth=50,batch=16 --plan plan.json --steps 5 --json"""


@click.command("run", epilog=_EPILOG)
@click.argument("model")
@click.option("--budget", default=None, help="Device memory, such as 8GiB, or 40% of the step's own peak.")
@click.option("--plan", "plan_file", type=click.Path(), default=None, help="Run this plan (see `planner swap --out`).")
@click.option("--steps", type=int, default=3, show_default=True, help="How many steps to make.")
@click.option("--device", default="cpu", show_default=True, help="What to run on.")
@click.option("--check", is_flag=True, help="Run eager PyTorch beside it and compare every bit.")
@click.option("--stress", is_flag=True, help="Delay the streams at random and poison freed memory, to find races.")
@json_option
def command(
    model: str,
    budget: str | None,
    plan_file: str | None,
    steps: int,
    device: str,
    check: bool,
    stress: bool,
    as_json: bool,
) -> None:
    """Make steps of MODEL inside a memory budget, by a plan made here or before.

    With --check the exit status is 1 where anything differs from eager PyTorch.
    """
    if (budget is None) == (plan_file is None):
        raise StowageError("say how much memory the steps may take: give either --budget or --plan")
    from planner import zoo
    from planner.memory import load_plan
    from planner.run import run

    plan = None if plan_file is None else load_plan(plan_file)
    step = zoo.load(model)
    with progress() as report:
        result = run(step, plan, budget=budget, steps=steps, device=device, check=check, stress=stress, progress=report)
    show(
        {
            "device": result.device,
            "budget_bytes": result.budget_bytes,
            "peak_bytes": result.peak_bytes,
            "predicted_peak_bytes": result.predicted_peak_bytes,
            "host_bytes": result.host_bytes,
            "step_seconds": result.step_seconds,
            "predicted_step_seconds": result.predicted_step_seconds,
            "eager_step_seconds": median(result.eager_step_seconds) if result.eager_step_seconds else None,
            "losses": result.losses,
            "mismatches": len(result.mismatches),
            "compared": result.compared,
        },
        as_json,
    )
    if result.mismatches:
        click.echo(f"differs from eager PyTorch: {', '.join(result.mismatches[:10])}", err=True)
        raise click.exceptions.Exit(1)
