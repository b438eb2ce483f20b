"""What running ops again is worth beside swapping: percent of the ideal step time at several budgets, each in 30 s.

    python benchmarks/recompute.py [--seconds 30] [--rows gpt-h200,nasnet-v100]

swap        each op runs once
recompute   ops run again, nothing is copied; - where nothing fits
joint       both
blocks      torch.utils.checkpoint around each repeated block, ops in their captured order; - where it does not fit
GPT computes in bfloat16, the others in float32.

again       the time in which ops run again in the joint plan, in percent of the ideal step
"""

from __future__ import annotations

import argparse
from time import perf_counter

import torch
from rich import box
from rich.console import Console
from rich.table import Table

from planner.capture import capture
from planner.errors import StowageError
from planner.levers import levers
from planner.machine import op_seconds
from planner.memory import parse_budget, step_peak
from planner.plan import recompute_seconds, validate
from planner.profile import machine
from planner.step import TrainStep
from planner.swap import plan_swaps
from planner.zoo import load

#: By row, the model, the machine, and the budgets in percent of the step's peak or in bytes.
ROWS = {
    "gpt-h200": (
        "gpt:layers=24,hidden=4096,heads=32,sequence=2048,batch=8,optimizer=adam",
        "h200",
        ("75%", "50%", "30%", "15%"),
    ),
    "gpt-a100": (
        "gpt:layers=24,hidden=2048,heads=16,sequence=2048,batch=16,optimizer=adam",
        "a100-80gb",
        ("75%", "50%", "30%", "15%"),
    ),
    "wresnet-v100": ("wresnet:depth=152,widen=10,image=224,width=full,batch=64", "v100-16gb", ("16GB",)),
    "nasnet-v100": ("nasnet:batch=64", "v100-16gb", ("16GB",)),
}
METHODS = ("swap", "recompute", "joint")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0, help="for each search")
    parser.add_argument("--rows", default=",".join(ROWS), help="names, with commas between them")
    arguments = parser.parse_args()
    table = Table(*("row", "ops", "budget", *METHODS, "again %", "blocks", "slowest search"), box=box.SIMPLE)
    for row in arguments.rows.split(","):
        spec, name, budgets = ROWS[row]
        step = load(spec)
        if row.startswith("gpt") and isinstance(step, TrainStep):
            step.autocast = torch.bfloat16
        graph, where = capture(step, progress=False), machine(name)
        ideal = float(op_seconds(graph, where).sum())
        blocks = levers(step, where, device="cpu", evaluations=1, progress=False)["checkpointed blocks"]
        for budget in budgets:
            percent, again, slowest = [], 0.0, 0.0
            for method in METHODS:
                begun = perf_counter()
                try:
                    plan = plan_swaps(graph, where, budget, method=method, time_limit=arguments.seconds, progress=False)
                except StowageError:
                    percent.append("-")
                    continue
                slowest = max(slowest, perf_counter() - begun)
                problems = validate(plan, graph)
                if problems:
                    raise SystemExit(f"{row} {budget} {method}: {problems[0]}")
                copies = method == "recompute" and plan.swap_ins  # a baseline's, which always run
                percent.append("-" if copies else f"{100 * ideal / plan.predicted.seconds:.1f}")
                again = 100 * recompute_seconds(plan) / ideal
            fits = blocks.peak_bytes <= parse_budget(budget, step_peak(graph, where.device.alignment))
            percent += [f"{again:.1f}", f"{100 * ideal / blocks.step_seconds:.1f}" if fits else "-"]
            table.add_row(row, f"{len(graph.ops):,}", budget, *percent, f"{slowest:.1f} s")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
