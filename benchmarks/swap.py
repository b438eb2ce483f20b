"""How close swap plans come to a step with infinite memory, on SwapAdvisor's workloads (ASPLOS 2020, table 2).

    python benchmarks/swap.py [--budget 16GB] [--optimizer sgd] [MODEL ...]

`bound` is the share of ideal that no plan exceeds, whatever its order; `on demand` swaps what an op waits for, least
recently used first. Op times are the machine's roofline, offsets are exact, and every plan has passed the validator.
"""

from __future__ import annotations

import argparse

from rich import box
from rich.console import Console
from rich.table import Table

from planner.capture import capture
from planner.errors import StowageError
from planner.machine import machine
from planner.memory import format_bytes
from planner.swap import SwapComparison, compare_plans
from planner.zoo import load

#: The paper's own share of ideal, in percent, by model.
PAPER = {
    "rnn:layers=8,hidden=8192,batch=128": 84, "rnn:layers=8,hidden=8192,batch=256": 76,
    "brnn:layers=4,hidden=8192,batch=64": 76, "brnn:layers=4,hidden=8192,batch=128": 81,
    "wresnet:depth=152,widen=10,image=224,batch=16": 92, "wresnet:depth=152,widen=10,image=224,batch=32": 95,
    "wresnet:depth=152,widen=10,image=224,batch=64": 97,
    "inception:version=3,widen=4,batch=16": 98, "inception:version=3,widen=4,batch=32": 98.6,
    "inception:version=3,widen=4,batch=64": 70,
    "nasnet:cells=8,batch=16": 84, "nasnet:cells=8,batch=32": 60, "nasnet:cells=8,batch=64": 53,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(PAPER), metavar="MODEL")
    parser.add_argument("--machine", default="v100-16gb", help="preset (default: v100-16gb)")
    parser.add_argument("--budget", default="16GB", help="device memory (default: 16GB)")
    parser.add_argument("--optimizer", default="sgd", help="sgd, momentum, adam or adamw (default: sgd)")
    arguments = parser.parse_args()
    title = f"Swap plans within {arguments.budget} on {arguments.machine}, {arguments.optimizer}"
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("model", no_wrap=True)
    for heading in ("ideal s", "plan s", "% of ideal", "bound %", "on demand %", "paper %", "host", "search s"):
        table.add_column(heading, justify="right", no_wrap=True)
    console = Console(width=140)
    for model in arguments.models:
        graph = capture(load(f"{model}{',' if ':' in model else ':'}optimizer={arguments.optimizer}"))
        with console.status(model):
            try:
                found = compare_plans(graph, machine(arguments.machine), arguments.budget)
            except StowageError as error:
                table.add_row(model, str(error))
                continue
        table.add_row(model, *cells(found), str(PAPER.get(model, "")), *costs(found))
    console.print(table)


def cells(found: SwapComparison) -> list[str]:
    demand = found.baselines["on-demand"]
    shares = [found.ideal_seconds / seconds if seconds else 0.0 for seconds in (found.bound_seconds, demand)]
    step = found.plan.predicted.seconds
    return [
        f"{found.ideal_seconds:.3f}", f"{step:.3f}", f"{100 * found.ideal_seconds / step:.1f}",
        *(f"{100 * share:.1f}" for share in shares),
    ]  # fmt: skip


def costs(found: SwapComparison) -> list[str]:
    return [format_bytes(found.plan.host_bytes), f"{found.search_seconds:.1f}"]


if __name__ == "__main__":
    main()
