"""Predicted against measured step time on this CPU, with op times measured in the same run.

The plan, its prediction and its execution share one link, imitated at a bandwidth below what memory allows. PyTorch
gets all cores but one, so that the copies have one of their own, as they have engines of their own on a GPU. Op times
are means over the quieter rounds of measuring, so step times are means over the faster half of the steps. A computer
that others share changes its speed within a minute, so each budget has several rounds of steps, and ops are measured
before and after each. A row is that of the round in the middle, `from` and `to` are the outermost ones, and `drift` is
the most by which ops took longer or shorter within a round.
"""

from __future__ import annotations

import argparse
import os
import statistics
from dataclasses import replace

import torch
from rich.console import Console
from rich.table import Table

from planner.capture import capture
from planner.errors import StowageError
from planner.machine import Link
from planner.profile import machine, measure_ops
from planner.run import run
from planner.swap import plan_swaps, simulate
from planner.zoo import load

MODELS = (
    "wresnet:depth=50,image=96,batch=16",
    "gpt:layers=6,hidden=512,heads=8,sequence=128,vocabulary=5000",
    "rnn:layers=2,hidden=512,steps=20,batch=64",
)
GOAL_PERCENT = 10.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help="models to run; without any, a CNN, a GPT and an LSTM")
    parser.add_argument("--budgets", default="100%,50%,30%", help="of the step's own peak (default 100%%,50%%,30%%)")
    parser.add_argument("--rounds", type=int, default=5, help="of steps by each plan (default 5)")
    parser.add_argument("--steps", type=int, default=4, help="steps in a round (default 4)")
    parser.add_argument("--threads", type=int, default=max((os.cpu_count() or 2) - 1, 1), help="of PyTorch")
    parser.add_argument("--link", type=float, default=4.0, help="GB/s one way; both ways together half as much again")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    link = Link(arguments.link * 1e9, 1.5 * arguments.link * 1e9)
    here = replace(machine("cpu"), host_link=link)
    table = Table(title=f"step time on {here.device.name}, {arguments.threads} threads, link {arguments.link:g} GB/s")
    for column in (
        "model",
        "budget",
        "swapped MiB",
        "predicted s",
        "measured s",
        "off by",
        "from",
        "to",
        "drift",
        "goal",
    ):
        table.add_column(column, justify="left" if column == "model" else "right", overflow="fold")
    for text in arguments.models or MODELS:
        step = load(text)
        graph = capture(step)
        for budget in arguments.budgets.split(","):
            ops = measure_ops(graph, here, cache=False)  # the cache may have been filled while the machine was busy
            graph = graph.with_workspaces({op: int(size) for op, size in enumerate(ops.workspace_bytes) if size})
            try:
                plan = plan_swaps(graph, here, budget, seconds=ops.seconds)
            except StowageError as error:
                table.add_row(text, budget, "", "", "", "", "", "", "", str(error))
                continue
            rounds, drift, before = [], 0.0, measure_ops(graph, here, cache=False).seconds
            for _ in range(arguments.rounds):
                steps = sorted(run(step, plan, steps=arguments.steps + 1, link_bandwidth=link).wait().step_seconds[1:])
                measured = statistics.fmean(steps[: -(-len(steps) // 2)])
                after = measure_ops(graph, here, cache=False).seconds
                predicted = simulate(plan, graph, here, (before + after) / 2).seconds
                rounds.append((100 * (predicted / measured - 1), predicted, measured))
                drift = max(drift, 100 * abs(after.sum() / before.sum() - 1))
                before = after
            rounds.sort()
            off, predicted, measured = rounds[len(rounds) // 2]
            copies = [*plan.swap_outs, *plan.swap_ins]
            swapped = sum(graph.storages[copy.storage].bytes for copy in copies) / 2**20
            apart = [f"{percent:+.1f} %" for percent in (off, rounds[0][0], rounds[-1][0])]
            numbers = f"{swapped:.1f}", f"{predicted:.4f}", f"{measured:.4f}", *apart, f"{drift:.1f} %"
            table.add_row(text, budget, *numbers, f"{GOAL_PERCENT:g} %")
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
