"""`planner run`."""

from __future__ import annotations

from dataclasses import asdict
from statistics import median
from typing import TYPE_CHECKING

import click

from planner.cli.output import OutputFile, examples, json_option, show
from planner.cli.run_on_workers import run_on_workers
from planner.errors import StowageError
from planner.progress import reporting

if TYPE_CHECKING:
    from planner.graph import Graph
    from planner.run import RunResult

_EPILOG = examples(
    "python -m planner run gpt --budget 50% --check",
    "python -m planner run wresnet:depth=50,batch=16 --plan plan.json --steps 5 --json",
    "python -m planner run mlp --budget 60% --steps 5 --trace steps.json",
    "python -m planner run gpt --workers 4 --check",
    "python -m planner run gpt --partition parts.json --budget 60% --json",
    "torchrun --nproc-per-node 4 -m planner run gpt --partition parts.json --check",
)

#: Ratio of measured and predicted step times from which a remark is printed.
_REMARK_RATIO = 1.5
_MAX_NAMED = 20


@click.command("run", short_help="Steps made inside a memory budget.", epilog=_EPILOG)
@click.argument("model")
@click.option(
    "--budget",
    default=None,
    help="Device memory, such as 8GiB, or 40% of the step's own peak; with workers, each of its own.",
)
@click.option("--plan", "plan_file", type=click.Path(), default=None, help="Run this plan (see `planner swap --out`).")
@click.option("--workers", type=int, default=None, help="Split the step over so many processes and run them together.")
@click.option(
    "--partition",
    "partition_file",
    type=click.Path(),
    default=None,
    help="Split it as this file says (see `planner partition --out`).",
)
@click.option(
    "--checkpoint",
    type=click.Path(),
    default=None,
    help="With workers: write the state to this folder, and go on from what is in it.",
)
@click.option("--steps", type=int, default=3, show_default=True, help="How many steps to make.")
@click.option("--device", default="cpu", show_default=True, help="What to run on: cpu, or cuda for the current GPU.")
@click.option("--check", is_flag=True, help="Run eager PyTorch beside it and compare every bit.")
@click.option("--stress", is_flag=True, help="Delay the streams at random and poison freed memory, to find races.")
@click.option("--remeasure", is_flag=True, help="Measure op times anew (see `planner machines`).")
@click.option("--trace", type=OutputFile(), default=None, help="Write what was measured here, for ui.perfetto.dev.")
@json_option
def command(
    model: str,
    budget: str | None,
    plan_file: str | None,
    workers: int | None,
    partition_file: str | None,
    checkpoint: str | None,
    steps: int,
    device: str,
    check: bool,
    stress: bool,
    remeasure: bool,
    trace: str | None,
    as_json: bool,
) -> None:
    """Make steps of MODEL inside a memory budget, by a plan made here or before.

    A budget in percent is of the step's own peak, printed as `step peak`: what the step takes when nothing is swapped,
    the temporary memory of its ops included as it was measured here. On a GPU, where that lies outside of the arena, it
    is of the arena, and the rest comes on top.

    With --check the exit status is 1 where anything differs from eager PyTorch. Ctrl-C prints what was done until then.

    With --workers or --partition the step is split over processes on this machine, and --budget is what each of them
    may take. Sums over workers are rounded in another order than eager PyTorch's, so --check then says how far the
    results are from eager's, beside how far eager's own move when its state is moved by one unit in the last place; the
    exit status is 1 beyond 30 times that. Under torchrun, each rank runs one worker of a --partition, on one or several
    hosts, and rank 0 prints.
    """
    if steps < 1:
        raise StowageError(f"{steps} steps cannot be run; ask for at least 1")
    if workers is not None or partition_file is not None:
        for option, given in (
            ("--plan", plan_file),
            ("--trace", trace),
            ("--stress", stress),
            ("--remeasure", remeasure),
        ):
            if given:
                raise StowageError(f"{option} is for a step on one device; leave it out or run without --workers")
        if device != "cpu":
            raise StowageError(f"workers run on the CPU, not on {device}; leave out --device")
        run_on_workers(model, workers, partition_file, budget, steps, check, checkpoint, as_json)
        return
    if checkpoint is not None:
        raise StowageError("--checkpoint is for a step on workers; leave it out or run with --workers")
    if (budget is None) == (plan_file is None):
        raise StowageError("say how much memory the steps may take: give either --budget or --plan")
    from planner import zoo
    from planner.capture import capture
    from planner.plan import load_plan, save_trace
    from planner.run import Stopped, run

    plan = None if plan_file is None else load_plan(plan_file)
    step = zoo.load(model)
    stopped = None
    with reporting(True) as report:
        try:
            result = run(
                step, plan, budget=budget, steps=steps, device=device, check=check or "first", stress=stress,
                remeasure=remeasure, progress=report,
            ).wait()  # fmt: skip
        except Stopped as stop:
            result, stopped = stop.result, stop
    graph = capture(step, device=device)
    if trace is not None:
        save_trace(trace, graph, result.plan, result.timelines)
    _show(result, graph, check, as_json)
    if stopped is not None:
        click.echo(str(stopped), err=True)
        raise click.exceptions.Exit(130)
    if result.mismatches:
        click.echo(f"differs from eager PyTorch: {', '.join(result.mismatches[:10])}", err=True)
        raise click.exceptions.Exit(1)
    if not (stress or remeasure):
        _remark(result)


def _show(result: RunResult, graph: Graph, check: bool, as_json: bool) -> None:
    from planner.memory import step_peak

    plan, mismatched, gpu = result.plan, list(result.mismatches[:_MAX_NAMED]), result.gpu_memory
    peak = step_peak(graph.with_workspaces(dict(plan.workspaces)), plan.alignment)
    if result.device != "cpu":  # what is outside of the arena is known as it was measured in the run
        peak += max(0, result.peak_bytes - plan.peak_bytes - graph.outside_bytes)
    show(
        {
            "device": result.device,
            "step_peak_bytes": peak,
            "budget_bytes": result.budget_bytes,
            "peak_bytes": result.peak_bytes,
            "predicted_peak_bytes": result.predicted_peak_bytes,
            "host_bytes": result.host_bytes,
            **({"library_bytes": result.library_bytes} if result.library_bytes else {}),
            **({} if gpu is None else {f"gpu_{name}_bytes": size for name, size in asdict(gpu).items()}),
            "step_seconds": result.step_seconds,
            "predicted_step_seconds": result.predicted_step_seconds,
            "eager_step_seconds": median(result.eager_step_seconds) if result.eager_step_seconds else None,
            "losses": result.losses,
            **({"skipped": result.skipped} if result.skipped else {}),
            "mismatches": len(result.mismatches),
            "mismatched": mismatched,
            "compared": result.compared,
            "checked": result.checked,
            "launched_together": result.launched_together,
        },
        as_json,
        replacements={
            **({"mismatched": mismatched or ...} if check else dict.fromkeys(_CHECK_FACTS, ...)),
            "launched_together": result.launched_together or ...,
        },
    )


_CHECK_FACTS = ("eager_step_seconds", "mismatches", "mismatched", "compared")


def _remark(result: RunResult) -> None:
    """Print a remark if a step's time differs from the plan's; the first step is a warm-up."""
    seconds, predicted = result.step_seconds[1:], result.predicted_step_seconds
    if result.measured_busy:
        click.echo(
            f"a step took {median(seconds):.3g} s and {predicted:.3g} s were predicted from op times measured while "
            "this computer was busy: they are measured again for the next plan",
            err=True,
        )
    elif seconds and not 1 / _REMARK_RATIO < median(seconds) / predicted < _REMARK_RATIO:
        click.echo(
            f"a step took {median(seconds):.3g} s and {predicted:.3g} s were predicted from op times measured before: "
            "plan again with --remeasure if this machine is now faster or slower than it was then",
            err=True,
        )
