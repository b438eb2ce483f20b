"""Are plans as fast as predicted, and in the predicted order? Every baseline and the search, run on this CPU.

    python benchmarks/plan_order.py [--budget 40% --budget 60%] [--link 2] [MODEL ...]

The link is imitated at a bandwidth below what memory allows, and PyTorch gets all cores but one, so that the copies
have one of their own, as they have engines of their own on a GPU. Two plans for one step, of one budget or of two, are
a pair that counts where their predictions differ by more than two percent; SwapAdvisor (ASPLOS 2020, section 6.4) had
19 of 20 pairs in the predicted order.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import torch
from rich.console import Console
from rich.table import Table

from planner.capture import capture
from planner.machine import Link
from planner.memory import parse_budget, step_peak
from planner.plan import SwapPlan
from planner.profile import machine, measure_ops
from planner.run import run
from planner.step import TrainStep
from planner.swap import plan_swaps
from planner.swap.baselines.registry import BASELINES
from planner.swap.problem.problem import build_problem
from planner.zoo import load

MODELS = (
    "wresnet:depth=50,image=96,batch=16",
    "gpt:layers=6,hidden=512,heads=8,sequence=128,vocabulary=5000",
    "rnn:layers=2,hidden=512,steps=20,batch=64",
    "inception:version=3,widen=1,batch=4",
)
BUDGETS = ("40%", "60%")
GOAL_PERCENT = 10.0
APART = 1.02


def plans_of(
    text: str, budgets: Sequence[str], link: Link, threads: int
) -> tuple[TrainStep, dict[tuple[str, str], SwapPlan]]:
    """A step and its plans by budget and method, the op times measured in this run."""
    torch.set_num_threads(threads)
    here = replace(machine("cpu"), host_link=link)
    step = load(text)
    graph = capture(step)
    measured = measure_ops(graph, here, cache=False)
    graph = graph.with_workspaces({op: int(size) for op, size in enumerate(measured.workspace_bytes) if size})
    peak, plans = step_peak(graph, here.device.alignment), {}
    for budget in budgets:
        problem = build_problem(graph, here, parse_budget(budget, peak), measured.seconds)
        for name, make in BASELINES.items():
            if (plan := make(problem)) is not None:
                plans[budget, name] = plan
        plans[budget, "search"] = plan_swaps(
            graph, here, problem.budget, seconds=measured.seconds, method="swap", time_limit=10
        )
    return step, plans


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS, metavar="MODEL")
    parser.add_argument(
        "--budget", action="append", metavar="SHARE",
        help="of the step's own peak; may be given again (default: 40%% and 60%%)",
    )  # fmt: skip
    parser.add_argument("--steps", type=int, default=7, help="steps by each plan (default: 7)")
    parser.add_argument("--threads", type=int, default=max((os.cpu_count() or 2) - 1, 1), help="of PyTorch")
    parser.add_argument("--link", type=float, default=2.0, help="GB/s one way; both ways together half as much again")
    arguments = parser.parse_args()
    link = Link(arguments.link * 1e9, 1.5 * arguments.link * 1e9)
    table = Table(title=f"plans on {arguments.threads} threads, link {arguments.link:g} GB/s")
    for column in ("model", "budget", "plan", "predicted s", "measured s", "off by", "goal"):
        table.add_column(column, justify="left" if column in {"model", "plan"} else "right", overflow="fold")
    pairs = kept = 0
    for text in arguments.models:
        step, plans = plans_of(text, arguments.budget or BUDGETS, link, arguments.threads)
        times: list[tuple[float, float]] = []
        for (budget, name), plan in plans.items():
            steps = sorted(run(step, plan, steps=arguments.steps + 1, link_bandwidth=link).wait().step_seconds[1:])
            seconds = statistics.fmean(steps[: -(-len(steps) // 2)])
            times.append((plan.predicted.seconds, seconds))
            off = 100 * (plan.predicted.seconds / seconds - 1)
            row = f"{plan.predicted.seconds:.4f}", f"{seconds:.4f}", f"{off:+.1f} %", f"{GOAL_PERCENT:g} %"
            table.add_row(text, budget, name, *row)
        for one, other in combinations(sorted(times), 2):
            if other[0] > APART * one[0]:
                pairs += 1
                kept += other[1] > one[1]
    console = Console(width=120)
    console.print(table)
    console.print(f"{kept} of {pairs} pairs of plans in the predicted order")


if __name__ == "__main__":
    main()
