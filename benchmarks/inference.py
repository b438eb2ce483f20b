"""Inference within little memory: the seconds of a ResNet-152 beside SwapAdvisor's (ASPLOS 2020).

    python benchmarks/inference.py [--machine v100-16gb] [--seconds 20]

The model is the plain ResNet-152 (`widen=1`) on images of 224 pixels; parameters are not updated, so they are dropped
without a copy. `ideal` is the step with infinite memory by the machine's roofline. The paper measured its times with
kernels of its own, so `x paper` compares the models of two machines too; `x ideal` is what a plan decides, beside the
paper's time over its own time in the most memory (`paper x`). A captured graph counts the temporary memory that our
own kernels on the CPU take, so that every plan can be run; here it is left out. Megabytes are decimal.
"""

from __future__ import annotations

import argparse

from rich import box
from rich.console import Console
from rich.table import Table

from planner.capture import capture
from planner.errors import StowageError
from planner.graph import Graph
from planner.machine import Machine, machine, op_seconds
from planner.memory import validate
from planner.swap import SwapComparison, compare_plans
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
    parser.add_argument("--seconds", type=float, default=20.0, help="of search for each row (default: 20)")
    arguments = parser.parse_args()
    device = machine(arguments.machine)
    table = Table(
        title=f"ResNet-152 inference on {device.name}", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False
    )
    for heading in (
        "batch", "budget MB", "plan s", "ideal s", "bound s", "paper s", "x paper", "x ideal", "paper x", "moved MB",
    ):  # fmt: skip
        table.add_column(heading, justify="right", no_wrap=True)
    console, why = Console(width=120), []
    for batch, rows in PAPER.items():
        graph = capture(load(f"wresnet:depth=152,image=224,batch={batch},mode=inference")).with_workspaces({})
        ideal, fastest = float(op_seconds(graph, device).sum()), min(rows.values())
        if ideal > fastest:
            why.append(
                f"batch {batch}: the roofline's ideal of {ideal:.4f} s is above the paper's fastest {fastest:.3f} s, "
                "so no plan can equal that time here."
            )
        for budget, paper in rows.items():
            with console.status(f"batch {batch}, {budget} MB"):
                found = plan(graph, device, budget, arguments.seconds)
            if isinstance(found, StowageError):
                why.append(f"batch {batch}, {budget} MB: {found}.")
            step = time_of(found)
            table.add_row(
                str(batch), str(budget), text(step), f"{ideal:.4f}",
                "-" if isinstance(found, StowageError) else f"{found.bound_seconds:.4f}", f"{paper:.3f}",
                text(step and step / paper, 2), text(step and step / ideal, 2), f"{paper / fastest:.2f}",
                moved(graph, found),
            )  # fmt: skip
    console.print(table)
    for line in why:
        console.print(line, highlight=False)


def plan(graph: Graph, device: Machine, budget: int, seconds: float) -> SwapComparison | StowageError:
    """A valid plan, or why there is none."""
    try:
        found = compare_plans(graph, device, f"{budget}MB", time_limit=seconds)
    except StowageError as error:
        return error
    assert not validate(found.plan, graph)
    return found


def time_of(found: SwapComparison | StowageError) -> float | None:
    return None if isinstance(found, StowageError) else found.plan.predicted.seconds


def text(value: float | None, digits: int = 4) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def moved(graph: Graph, found: SwapComparison | StowageError) -> str:
    if isinstance(found, StowageError):
        return "-"
    copies = (*found.plan.swap_ins, *found.plan.swap_outs)
    return f"{sum(graph.storages[copy.storage].bytes for copy in copies) / 1e6:.0f}"


if __name__ == "__main__":
    main()
