"""Inference within little memory: the seconds of a ResNet-152 beside SwapAdvisor's (ASPLOS 2020).

    python benchmarks/inference.py [--machine v100-16gb] [--seconds 20]

The model is the plain ResNet-152 (`widen=1`) on images of 224 pixels; parameters are not updated, so they are dropped
without a copy. A captured graph counts the temporary memory that our own kernels on the CPU take, so that every plan
can be run; here it is left out. Megabytes are decimal.

Every row is planned twice. With the paper's kernels: all ops are as many times faster or slower than the machine's
roofline says as make the step with infinite memory last as long as the paper's did in the most memory; then the seconds
of two planners on one machine stand side by side. With the machine's own roofline: `ideal` is its step with infinite
memory, and where that is above the paper's time no plan can equal it. That roofline is too slow for the forward passes
of narrow networks: MXNet 1.2, which the paper built on, published 398.8 and 480.4 images a second for this model in
batches of 16 and 64 on a V100 (docs/faq/perf.md of its sources), 0.0401 and 0.1332 s.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from rich import box
from rich.console import Console
from rich.table import Table

from planner.capture import capture
from planner.errors import StowageError
from planner.graph import Graph
from planner.machine import Machine, op_seconds
from planner.plan import validate
from planner.profile import machine
from planner.swap import PlanWithBaselines, plan_with_baselines
from planner.zoo import load

#: The paper's seconds by batch and budget in MB.
PAPER = {
    1: {64: 0.024, 128: 0.022, 192: 0.018, 512: 0.017},
    16: {128: 0.077, 192: 0.044, 512: 0.040},
    64: {512: 0.238, 640: 0.123},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", default="v100-16gb", help="preset (default: v100-16gb)")
    parser.add_argument("--seconds", type=float, default=20.0, help="of search for each plan (default: 20)")
    arguments = parser.parse_args()
    own = machine(arguments.machine)
    table = Table(
        title=f"ResNet-152 inference on {own.name}", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False
    )
    for heading in (
        "batch", "budget MB", "paper s", "paper's kernels: plan s", "bound s", "x paper", "moved MB",
        "roofline: plan s", "ideal s", "x paper",
    ):  # fmt: skip
        table.add_column(heading, justify="right")
    console, why = Console(width=120), []
    for batch, rows in PAPER.items():
        graph = capture(load(f"wresnet:depth=152,image=224,batch={batch},mode=inference")).with_workspaces({})
        ideal, fastest = float(op_seconds(graph, own).sum()), min(rows.values())
        theirs = at_speed(own, ideal / fastest)
        for budget, paper in rows.items():
            with console.status(f"batch {batch}, {budget} MB"):
                found = [plan(graph, device, budget, arguments.seconds) for device in (theirs, own)]
            why += [f"batch {batch}, {budget} MB: {error}." for error in found if isinstance(error, StowageError)]
            on_theirs, on_own = map(time_of, found)
            table.add_row(
                str(batch), str(budget), f"{paper:.3f}",
                text(on_theirs), bound(found[0]), text(on_theirs and on_theirs / paper, 2), moved(graph, found[0]),
                text(on_own), f"{ideal:.4f}", text(on_own and on_own / paper, 2),
            )  # fmt: skip
    console.print(table)
    for line in why:
        console.print(line, highlight=False)


def at_speed(target: Machine, factor: float) -> Machine:
    """The machine with all its kernels as many times as fast; its link stays as it is."""
    device = target.device
    faster = replace(
        device,
        flops={dtype: peak * factor for dtype, peak in device.flops.items()},
        memory_bandwidth=device.memory_bandwidth * factor,
        launch_seconds=device.launch_seconds / factor,
    )
    return replace(target, devices=(faster,) * len(target.devices))


def bound(found: PlanWithBaselines | StowageError) -> str:
    return "-" if isinstance(found, StowageError) else f"{found.bound_seconds:.4f}"


def plan(graph: Graph, device: Machine, budget: int, seconds: float) -> PlanWithBaselines | StowageError:
    """A valid plan, or why there is none."""
    try:
        found = plan_with_baselines(graph, device, f"{budget}MB", time_limit=seconds)
    except StowageError as error:
        return error
    assert not validate(found.plan, graph)
    return found


def time_of(found: PlanWithBaselines | StowageError) -> float | None:
    return None if isinstance(found, StowageError) else found.plan.predicted.seconds


def text(value: float | None, digits: int = 4) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def moved(graph: Graph, found: PlanWithBaselines | StowageError) -> str:
    if isinstance(found, StowageError):
        return "-"
    copies = (*found.plan.swap_ins, *found.plan.swap_outs)
    return f"{sum(graph.storages[copy.storage].bytes for copy in copies) / 1e6:.0f}"


if __name__ == "__main__":
    main()
