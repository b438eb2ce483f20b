"""`planner swap`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from math import isnan
from typing import TYPE_CHECKING, Any

import click

from planner.cli.output import OutputFile, device_option, examples, json_option, ops_text, show, show_lines
from planner.cli.waiting import wait_or_stop
from planner.errors import StowageError
from planner.plan import PlanSummary, save_plan, save_trace
from planner.progress import reporting
from planner.units import format_bytes

if TYPE_CHECKING:
    from planner.machine import Machine
    from planner.plan import SwapPlan
    from planner.profile import PreparedStep
    from planner.swap import SwapSearch

_EPILOG = examples(
    "python -m planner swap gpt --budget 50% --out plan.json",
    "python -m planner swap wresnet:depth=152,widen=10,batch=32,image=224 --machine v100-16gb --budget 16GB --json",
    "python -m planner swap wresnet:depth=152,batch=16,image=224,mode=inference --machine v100-16gb --budget 192MB",
    "python -m planner swap inception:batch=64 --machine v100-16gb --budget 10GB --host-budget 32GB --explain",
    "python -m planner swap gpt --machine v100-16gb --budget 50% --trace step.json",
)

#: Time limit for the bound of the plan's order; a tighter bound takes longer.
_BOUND_SECONDS = 3.0


@click.command("swap", short_help="A plan of swaps inside a memory budget.", epilog=_EPILOG)
@click.argument("model")
@click.option("--machine", "machine_name", default="cpu", show_default=True, help="See `planner machines`.")
@click.option(
    "--budget",
    default=None,
    help="Device memory, such as 8GiB, or 40% of the step's own peak, to which what lies outside of the arena is added "
    "in full; by default what the device has, on a GPU less what the CUDA context and libraries take.",
)
@click.option(
    "--host-budget",
    default=None,
    help="Host memory that may be pinned, such as 32GB, or 40% of the step's own peak; no limit by default.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="Stop looking for better plans by then; sooner where none can be faster or nothing is left to try.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="For random choices of the search.")
@click.option(
    "--method",
    default=None,
    help="auto (the default: whichever of the next three comes furthest), swap (each op runs once), recompute (ops run "
    "again and nothing is copied), joint (both), calendar, on-demand or swapadvisor (as in the paper). "
    "The fastest of its plans and the baselines is taken, with recompute of those that copy nothing.",
)
@click.option(
    "--recompute-limit",
    default=None,
    help="The most that may run again: seconds, or 10% of the ideal step; no limit by default.",
)
@click.option(
    "--explain",
    "explained",
    is_flag=True,
    help="Say what holds the peak, what the step waits for, and why tensors leave; ops count in the plan's order.",
)
@click.option("--remeasure", is_flag=True, help="Measure op times anew (see `planner machines`); for cpu and auto.")
@click.option("--out", type=OutputFile(), default=None, help="Write the plan as JSON here.")
@click.option(
    "--trace", type=OutputFile(), default=None, help="Write the step that the plan foresees here, for ui.perfetto.dev."
)
@click.option("--snapshot", type=OutputFile(), default=None, help="Write the plan here for pytorch.org/memory_viz.")
@click.option(
    "--op-times", type=click.Path(), default=None, help="A trace of torch.profiler, for times in place of the roofline."
)
@device_option
@json_option
def command(
    model: str,
    machine_name: str,
    captured_for: str,
    budget: str | None,
    host_budget: str | None,
    seconds: float,
    seed: int,
    method: str | None,
    recompute_limit: str | None,
    explained: bool,
    remeasure: bool,
    out: str | None,
    trace: str | None,
    snapshot: str | None,
    op_times: str | None,
    as_json: bool,
) -> None:
    """Plan the step of MODEL inside a memory budget; nothing is allocated and no GPU is needed.

    MODEL is a zoo name with key=value arguments (see `planner models`), or path/to/file.py:function, where the function
    takes no arguments, or has defaults for them, and returns a planner.TrainStep or planner.InferenceStep.

    On `cpu` and `auto`, ops are measured here; on presets their times come from a roofline, or a trace of
    torch.profiler. Ctrl-C ends the search and takes the best plan so far, with exit status 0; before there is any plan,
    the status is 130 and nothing is written.

    \b
    What the rows say:
      ops         whose ops the step was captured with, by --device: plans with
                  those of the CPU can be run here; `fit` and `levers` take those
                  of the machine
      step peak   what the step takes when nothing is swapped: 100 % of --budget
      peak        device memory that the plan's arena takes, at most the budget
      outside of the arena
                  on a GPU: what ops and libraries take beside the arena, within
                  the budget too
      host        pinned host memory that it takes
      ideal       the time of all ops, with no wait for any copy
      step        the time of the plan, and the share of ideal that it reaches
      recomputed  the time in which ops run again
      lower bound no plan of the method within this budget is faster, whatever
                  its order
      order bound no plan with the order of this one is faster
      gap         how far the plan is above the lower bound, in percent
      copied in, copied out
                  bytes to the device and to the host in each step
      timed       how many plans were timed in the search, how long it took, and
                  why it ended
      baselines   the times of simpler plans; - where one does not fit
      method      how the plan was found
      approximate in what a plan made on the device itself may differ; no where
                  nothing does
      valid       whether a validator that shares no code with the search agrees
    """
    from planner import zoo
    from planner.machine import usable_bytes
    from planner.profile import machine, prepare
    from planner.snapshot import write as write_snapshot
    from planner.swap import search_swaps

    if isnan(seconds):
        raise StowageError("--seconds must be a number of 0 or more, got nan")
    device = machine(machine_name)
    if remeasure and device.device.kind != "cpu":
        raise StowageError(
            f"--remeasure is for op times that are measured here, and those of {device.name} come from a roofline; "
            "drop it, or plan for --machine cpu"
        )
    limit = usable_bytes(device) if budget is None else budget
    step = zoo.load(model)
    with reporting(True) as report:
        ready = prepare(step, device, captured_for=captured_for, progress=report, remeasure=remeasure, trace=op_times)
        report(0.0, "laying out the graph")
        search = search_swaps(
            ready.graph, device, limit, host_budget=host_budget, seconds=ready.seconds, method=method, seed=seed,
            time_limit=seconds, recompute_limit=recompute_limit,
        )  # fmt: skip
        plan, stopped = wait_or_stop(search, report)
        if out is not None:
            save_plan(plan, out)
        if trace is not None:
            save_trace(trace, ready.graph, plan)
        if snapshot is not None:
            write_snapshot(snapshot, ready.graph, plan)
        report(1.0, "proving a bound for the plan's order")
        facts = _facts(search, plan, ready, device, stopped)
    explanation = None
    if explained:
        from planner.swap import explain

        explanation = explain(plan, ready.graph, device, ready.seconds)
    if as_json:
        show(facts if explanation is None else {**facts, "explanation": explanation.to_json()}, True)
    else:
        show({"ops": ops_text(ready.graph, device), **_rows(facts)}, False)
        if explanation is not None:
            # without what a row has said
            show_lines(f"\n{replace(explanation, approximate='')}")
    if stopped:
        print(f"stopped after {facts['search_seconds']:.1f} s: this is the best plan so far", file=sys.stderr)
    for remark in _remarks(plan, plan.peak_bytes + ready.graph.outside_bytes, device):
        print(f"note: {remark}", file=sys.stderr)


def _facts(search: SwapSearch, plan: SwapPlan, ready: PreparedStep, device: Machine, stopped: bool) -> dict[str, Any]:
    """The facts about a plan, by their names in JSON."""
    from planner.machine import approximation
    from planner.swap import CLOSE, order_bound, peak_of

    progress, step = search.progress, plan.predicted.seconds
    bound = for_this_order = min(progress.bound_seconds, step)
    summary = PlanSummary(ready.graph, plan, progress.ideal_seconds, bound)
    if step > bound * CLOSE and len(plan.order) == len(ready.graph.ops):  # the bound is for orders without repeats
        limit = 0.0 if stopped else _BOUND_SECONDS
        for_this_order = order_bound(
            ready.graph, device, plan.budget_bytes, ready.seconds, plan.order, time_limit=limit, progress=False
        )
    return {
        "step_peak_bytes": peak_of(ready.graph, plan.alignment),
        "budget_bytes": plan.budget_bytes,
        "peak_bytes": plan.peak_bytes,
        **({"outside_bytes": ready.graph.outside_bytes} if ready.graph.outside_bytes else {}),
        "host_bytes": plan.host_bytes,
        "ideal_seconds": summary.ideal_seconds,
        "step_seconds": step,
        "recompute_seconds": summary.recompute_seconds,
        "bound_seconds": bound,
        "order_bound_seconds": min(max(bound, for_this_order), step),
        "percent_of_ideal": summary.percent_of_ideal,
        "gap_to_bound_percent": summary.gap_to_bound_percent,
        "bytes_in": summary.bytes_in,
        "bytes_out": summary.bytes_out,
        "evaluations": progress.evaluations,
        "search_seconds": progress.seconds,
        "search_state": progress.state,
        "baselines": search.baselines,
        "method": plan.method,
        "approximate": approximation(ready.graph, device),
        "stopped": stopped,
        "valid": summary.valid,
    }


def _remarks(plan: SwapPlan, needed: int, machine: Machine) -> Iterator[str]:
    """What the machine has too little of for a plan that needs so many bytes of its device memory."""
    from planner.machine import reserve_of

    memory, host = machine.device.memory_bytes, machine.host_memory_bytes
    reserved = sum(part.bytes for part in reserve_of(machine.device))
    beside = f", of which the CUDA context and libraries take {format_bytes(reserved)}" if reserved else ""
    for option, what, takes, available, has in (
        ("--budget", "memory", needed, memory - reserved, f"{format_bytes(memory)}{beside}"),
        ("--host-budget", "host memory", plan.host_bytes, host, format_bytes(host)),
    ):
        if takes > available:
            advice = f"; give {option} {available} to stay within it" if available > 0 else ""
            yield f"the plan takes {format_bytes(takes)} of {what} and {machine.name} has {has}{advice}"


def _rows(facts: dict[str, Any]) -> dict[str, Any]:
    """The same facts as rows of the table."""
    from planner.units import format_seconds

    def bytes_text(name: str) -> str:
        return f"{format_bytes(facts[name])} ({facts[name]:,} bytes)"

    def seconds_text(name: str) -> str:
        return format_seconds(facts[name])

    return {
        "step peak": bytes_text("step_peak_bytes"),
        "budget": bytes_text("budget_bytes"),
        "peak": bytes_text("peak_bytes"),
        **({"outside of the arena": bytes_text("outside_bytes")} if "outside_bytes" in facts else {}),
        "host": bytes_text("host_bytes"),
        "ideal": seconds_text("ideal_seconds"),
        "step": f"{seconds_text('step_seconds')}, {facts['percent_of_ideal']:.4g} % of ideal",
        "recomputed": seconds_text("recompute_seconds"),
        "lower bound": f"{seconds_text('bound_seconds')} for any order",
        "order bound": f"{seconds_text('order_bound_seconds')} for this order",
        "gap": f"{facts['gap_to_bound_percent']:.3g} % above the lower bound",
        "copied in": bytes_text("bytes_in"),
        "copied out": bytes_text("bytes_out"),
        "timed": f"{facts['evaluations']:,} plans in {facts['search_seconds']:.1f} s{_why_ended(facts)}",
        "baselines": ", ".join(
            f"{name} {'-' if seconds is None else format_seconds(seconds)}"
            for name, seconds in facts["baselines"].items()
        ),
        "method": facts["method"],
        "approximate": facts["approximate"] or "no",
        "valid": facts["valid"],
    }


def _why_ended(facts: dict[str, Any]) -> str:
    """Why the search ended, which tells whether more time may help."""
    from planner.swap import CLOSE

    if facts["step_seconds"] <= facts["bound_seconds"] * CLOSE:
        return "; no plan is faster"
    return {"done": "; nothing is left to try", "paused": "; its time was up", "cancelled": "; it was stopped"}.get(
        facts["search_state"], ""
    )
