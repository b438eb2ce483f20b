"""How the default method shares its time: its steps beside the fastest of swapping, recomputing and both on their own.

    python benchmarks/methods.py [--seconds 0.4,2] [--rows mlp,gpt]

Each method gets the same time; with `--seconds inf`, all end by themselves. Numbers are percent above the fastest step
of the three; 0 is as good as knowing which to take. `auto` keeps up where it is at most 1 % slower.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from math import inf

from rich import box
from rich.console import Console
from rich.table import Table

from planner.capture import capture
from planner.errors import StowageError
from planner.graph import Graph
from planner.machine import Machine, op_seconds
from planner.plan import SwapPlan, validate
from planner.profile import machine
from planner.swap import plan_with_baselines
from planner.zoo import load

#: Models that are small enough for a search to come somewhere in less than a second.
ROWS = {
    "mlp": "mlp:layers=6,hidden=1024,batch=512",
    "mlp-deep": "mlp:layers=16,hidden=2048,batch=4096",
    "gpt": "gpt:layers=3,hidden=1024,sequence=1024,batch=16,dropout=0.1",
    "gpt-adam": "gpt:layers=6,hidden=768,sequence=512,batch=8,optimizer=adam",
    "gpt-small": "gpt:layers=2,hidden=256,sequence=128,batch=8",
    "wresnet": "wresnet:depth=50,batch=32,image=224,optimizer=momentum",
    "rnn": "rnn:layers=2,hidden=512,steps=8,batch=64",
}
MACHINES, BUDGETS = ("v100-16gb", "h200", "laptop"), ("75%", "50%", "30%")
SINGLE = ("swap", "recompute", "joint")
_KEEPS_UP = 1.01
_LATE = 1.25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", default="0.4,2", help="for each search, with commas between them")
    parser.add_argument("--rows", default=",".join(ROWS), help="names, with commas between them")
    arguments = parser.parse_args()
    rows = arguments.rows.split(",")
    warm_up()
    for seconds in map(float, arguments.seconds.split(",")):
        show(rows, f"{seconds:g} s", lambda *case, seconds=seconds: timed(*case, seconds))


def show(rows: list[str], limit: str, planned: Callable[[Graph, Machine, str, str], SwapPlan | None]) -> None:
    """Print the table of all cases under one limit, and how often the default keeps up."""
    table = Table("model", "ops", "machine", "budget", "% of ideal", *SINGLE, "auto", title=limit, box=box.SIMPLE)
    kept = cases = 0
    for row in rows:
        graph = capture(load(ROWS[row]), progress=False)
        for name in MACHINES:
            for budget in BUDGETS:
                where = machine(name)
                found = {method: planned(graph, where, budget, method) for method in (*SINGLE, "auto")}
                for plan in filter(None, found.values()):
                    if problems := validate(plan, graph):
                        raise SystemExit(f"{row} {name} {budget}: {problems[0]}")
                seconds = {method: inf if plan is None else plan.predicted.seconds for method, plan in found.items()}
                best = min(seconds[method] for method in SINGLE)
                if best == inf:
                    continue
                cases, kept = cases + 1, kept + (seconds["auto"] <= _KEEPS_UP * best)
                above = ["-" if each == inf else f"{100 * (each / best - 1):.1f}" for each in seconds.values()]
                ideal = 100 * ideal_seconds(graph, where) / best
                table.add_row(row, f"{len(graph.ops):,}", name, budget, f"{ideal:.1f}", *above)
    console = Console(width=120)
    console.print(table)
    console.print(f"{limit}: auto keeps up in {kept} of {cases} cases, {100 * kept / max(1, cases):.0f} %\n")


def timed(graph: Graph, where: Machine, budget: str, method: str, seconds: float) -> SwapPlan | None:
    try:
        found = plan_with_baselines(graph, where, budget, method=method, time_limit=seconds, progress=False)
    except StowageError:
        return None
    late = method == "recompute" and found.search_seconds > _LATE * seconds  # it goes on until it has any plan
    return None if late else found.plan


def ideal_seconds(graph: Graph, where: Machine) -> float:
    return float(op_seconds(graph, where).sum())


def warm_up() -> None:
    """Load every kernel from disk before anything is timed."""
    graph, where = capture(load("gpt:layers=1"), progress=False), machine("laptop")
    for method in SINGLE:
        timed(graph, where, "50%", method, 4.0)


if __name__ == "__main__":
    main()
