"""`planner partition`."""

from __future__ import annotations

import sys
from math import isnan
from typing import TYPE_CHECKING, Any

import click

from planner.cli.output import OutputFile, device_option, examples, json_option, ops_text, show, show_table
from planner.cli.waiting import wait_or_stop
from planner.errors import StowageError
from planner.progress import reporting
from planner.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from planner.graph import Graph
    from planner.machine import Machine
    from planner.partition import PartitionPlan, PartitionSearch

_EPILOG = examples(
    "python -m planner partition gpt --workers 4 --out parts.json",
    "python -m planner partition wresnet:depth=152,widen=10,image=224,batch=64 --workers 8 --machine k80x8 --json",
    "python -m planner partition gpt --workers 8 --memory 40% --pin head.weight=0 --pin tokens.weight=replicated",
    "python -m planner partition --coverage gpt:layers=4,hidden=256 --json",
)


@click.command("partition", short_help="A split of a step over several workers.", epilog=_EPILOG)
@click.argument("model")
@click.option(
    "--workers",
    type=int,
    default=None,
    help="How many workers the step is split over; by default all devices of a machine that has several, else 8.",
)
@click.option(
    "--machine",
    "machine_name",
    default=None,
    help="See `planner machines`; its devices' memory is the limit and its links give the step's time.",
)
@click.option(
    "--memory",
    default=None,
    help="The most that a worker may take, such as 8GiB, or 40% of the step's peak on one device; tensors are "
    "replicated where that saves bytes, as far as it allows.",
)
@click.option(
    "--pin",
    "pins",
    multiple=True,
    metavar="TENSOR=DIMENSION",
    help="Fix a split: a tensor's dimension, or `replicated`, or one for each prime factor of --workers, as in "
    "TENSOR=0,1,1; or OP=AXIS. May be repeated.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="For random choices of the search.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="Stop looking for better partitions by then; sooner where nothing is left to try.",
)
@click.option("--out", type=OutputFile(), default=None, help="Write the partition as JSON here.")
@click.option("--coverage", "as_coverage", is_flag=True, help="List how the operators of MODEL can be split, and end.")
@device_option
@json_option
def command(
    model: str,
    workers: int | None,
    machine_name: str | None,
    memory: str | None,
    pins: tuple[str, ...],
    seed: int,
    seconds: float,
    out: str | None,
    as_coverage: bool,
    captured_for: str,
    as_json: bool,
) -> None:
    """Split the whole step of MODEL over several workers so that they exchange the fewest bytes.

    MODEL is a zoo name with key=value arguments (see `planner models`), or path/to/file.py:function, where the function
    takes no arguments, or has defaults for them, and returns a planner.TrainStep.

    Without --memory and --machine, nothing is replicated that can be split. Ctrl-C ends the search and takes the best
    partition so far, with exit status 0; before there is any, the status is 130 and nothing is written.

    \b
    What the rows say:
      ops         whose ops the step was captured with, by --device: partitions
                  with those of the CPU can be run here
      mesh        into how many parts each level cuts, the outermost first
      moved       bytes that all workers together receive in a step, and at each
                  level
      recursion   the same for the paper's recursion, and how long it took
      lower bound no partition over this mesh moves fewer bytes that splits all it
                  can, or, with --memory, that the limit allows
      gap         how far the partition is above the lower bound, in percent
      worker peak memory of the worker that takes the most, estimated: storages
                  scaled by its share, and what the op that runs fetches
      single peak memory of the step on one device
      step        estimated time on the machine, communication behind compute
      groups      how many groups of tensors are split alike
      baselines   bytes of simpler partitions; - where one is not possible.
                  One that replicates, as data-parallel does, may move fewer
                  than the lower bound; --memory lets the search do so too
      opaque      share of the traffic of ops that no formula describes
      approximate in what a partition made on the device itself may differ; no
                  where nothing does
      valid       whether a validator that shares no code with the search agrees

    With --coverage, an operator is `described` by a formula, from which its splits are derived; `opaque` along some of
    its axes and split along others; or computed `whole` by every worker.
    """
    from planner import zoo
    from planner.capture import capture
    from planner.partition import save_partition, search_partition
    from planner.profile import machine

    if isnan(seconds):
        raise StowageError("--seconds must be a number of 0 or more, got nan")
    fixed = _pins(pins)
    device = None if machine_name is None else machine(machine_name)
    if workers is None:
        devices = 1 if device is None else len(device.devices) * device.hosts
        workers = devices if devices > 1 else 8
    step = zoo.load(model)
    with reporting(True) as report:
        graph = capture(step, device=captured_for, progress=report)
        if as_coverage:
            _show_coverage(graph, as_json)
            return
        report(0.0, "finding how ops can be split")
        search = search_partition(graph, workers, device, memory, pins=fixed, seed=seed, time_limit=seconds)
        plan, stopped = wait_or_stop(search, report)
        if out is not None:
            save_partition(plan, out)
        report(1.0, "comparing with simpler partitions")
        facts = _facts(search, plan, graph, device, stopped)
    show(facts if as_json else _rows(facts, ops_text(graph, device)), as_json)
    if stopped:
        print(f"stopped after {facts['search_seconds']:.1f} s: this is the best partition so far", file=sys.stderr)


def _pins(texts: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in map(_pin, texts):
        if name in found:
            raise StowageError(f"{name} is pinned twice; give one --pin for it")
        found[name] = value
    return found


def _pin(text: str) -> tuple[str, Any]:
    name, equals, value = text.rpartition("=")
    if not (name and equals and value):
        raise StowageError(f"--pin {text} is not TENSOR=DIMENSION, such as --pin layers.0.weight=0")
    levels = [_pin_value(each.strip()) for each in value.split(",")]
    return name, levels[0] if len(levels) == 1 else tuple(levels)


def _pin_value(text: str) -> int | str | None:
    try:
        return int(text)
    except ValueError:
        return None if text == "free" else text


def _facts(
    search: PartitionSearch, plan: PartitionPlan, graph: Graph, device: Machine | None, stopped: bool
) -> dict[str, Any]:
    """The facts about a partition, by their names in JSON."""
    from planner.machine import approximation
    from planner.memory import step_peak
    from planner.partition import Split, coverage, step_time, validate_partition

    solution, progress, recursion = search.solution, search.progress, search.recursion
    assert solution is not None
    assert recursion is not None
    return {
        "workers": plan.workers,
        "mesh": list(plan.mesh),
        "search_seconds": progress.seconds,
        "recursion_seconds": recursion[1],
        "bytes_per_level": list(plan.bytes_per_level),
        "bytes_total": solution.bytes_moved,
        "recursion_bytes_total": recursion[0],
        "bound_bytes": progress.bound_bytes,
        "gap_to_bound_percent": progress.gap_percent,
        "worker_peak_bytes": list(solution.memory.peak_bytes),
        "single_peak_bytes": step_peak(graph),
        "step_seconds": None if device is None else step_time(solution.partitioning, device).seconds,
        "groups": len(search.problem.coarse.groups),
        "baselines": search.baselines,
        "opaque_bytes_percent": 100 - coverage(graph).percent("described")[1],
        "evaluations": progress.evaluations,
        "search_state": progress.state,
        "approximate": approximation(graph, device),
        "stopped": stopped,
        "tensors": len(plan.tensors),
        "tensors_split": sum(any(isinstance(state, Split) for state in states) for states in plan.tensors),
        "valid": not validate_partition(plan, graph),
    }


def _rows(facts: dict[str, Any], ops: str) -> dict[str, Any]:
    """The same facts as rows of the table."""

    def amount(size: float | None) -> str:
        return "-" if size is None else f"{format_bytes(size)} ({size:,.0f} bytes)"

    levels = ", ".join(map(format_bytes, facts["bytes_per_level"]))
    gap, peaks = facts["gap_to_bound_percent"], facts["worker_peak_bytes"]
    baselines = {name: "-" if size is None else format_bytes(size) for name, size in facts["baselines"].items()}
    alike = facts["workers"] > 1 and not facts["tensors_split"]
    paused = "; stopped by --seconds" if facts["search_state"] == "paused" else ""
    over = "" if facts["bound_bytes"] is not None else " in cost over the links"
    tried = f"{facts['evaluations']:,} partition{'s' if facts['evaluations'] != 1 else ''}"
    return {
        **({"warning": "no tensor is split: every worker does the whole step"} if alike else {}),
        "ops": ops,
        "workers": facts["workers"],
        "mesh": " x ".join(map(str, facts["mesh"])) or "1",
        "moved": f"{amount(facts['bytes_total'])}{f': {levels} by level' if levels else ''}",
        "recursion": f"{amount(facts['recursion_bytes_total'])} after {format_seconds(facts['recursion_seconds'])}",
        "lower bound": f"{amount(facts['bound_bytes'])}",
        "gap": "-" if gap is None else f"{gap:.3g} % above the lower bound{over}",
        "worker peak": amount(max(peaks)),
        "single peak": amount(facts["single_peak_bytes"]),
        "step": "-" if facts["step_seconds"] is None else format_seconds(facts["step_seconds"]),
        "groups": f"{facts['groups']:,}",
        "baselines": ", ".join(f"{name} {size}" for name, size in baselines.items()) or "-",
        "opaque": f"{facts['opaque_bytes_percent']:.3g} % of the traffic",
        "tried": f"{tried} in {format_seconds(facts['search_seconds'])}{paused}",
        "approximate": facts["approximate"] or "no",
        "valid": facts["valid"],
    }


def _show_coverage(graph: Graph, as_json: bool) -> None:
    from planner.partition import coverage

    found = coverage(graph)
    shares = {kind: found.percent(kind) for kind in ("described", "opaque", "whole")}
    if not as_json:
        rows = [
            [entry.target, entry.kind, f"{entry.ops:,}", format_bytes(entry.bytes), " ".join(entry.strategies) or "-"]
            for entry in found.operators
        ]
        show_table(["operator", "kind", "ops", "traffic", "axes"], rows)
    show(
        {
            "ops": len(graph.ops),
            **{f"{kind}_ops_percent": ops for kind, (ops, _) in shares.items()},
            **{f"{kind}_bytes_percent": size for kind, (_, size) in shares.items()},
            "operators": [
                {
                    "target": entry.target, "kind": entry.kind, "ops": entry.ops, "bytes": entry.bytes,
                    "axes": list(entry.strategies),
                }
                for entry in found.operators
            ],
        },
        as_json,
        replacements={
            "operators": ...,
            **{f"{kind}_bytes_percent": round(size, 2) for kind, (_, size) in shares.items()},
        },
    )  # fmt: skip
