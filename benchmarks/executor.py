"""How long a step takes by a plan that swaps nothing, against eager PyTorch.

Both run in turns, so that whatever else the machine does meets both. Each counts with the mean of its faster half.
The plan's step is timed from outside and includes everything, the batch and the record of the timeline.
"""

from __future__ import annotations

import argparse
import statistics
import time
from contextlib import closing
from dataclasses import dataclass

import torch
from rich.console import Console
from rich.table import Table

from planner.capture import capture
from planner.profile import prepare
from planner.run import CpuDevice, Executor
from planner.swap import plan_swaps
from planner.zoo import load

#: About half a second a step on two cores, and many small ops.
MODELS = {
    "wresnet:depth=50,image=96,batch=16": 1.03,
    "gpt:layers=4,hidden=512,heads=8,sequence=256,vocabulary=5000": 1.03,
    "rnn:layers=2,hidden=256,steps=20": 1.00,
}


@dataclass(frozen=True)
class Row:
    """One model: seconds a step."""

    ops: int
    eager: float
    planned: float
    spread: float


def measure(text: str, rounds: int) -> Row:
    step = load(text)
    graph = capture(step)
    ready = prepare(graph, "cpu")
    plan = plan_swaps(ready.graph, ready.machine, "100%", seconds=ready.seconds)
    eager, planned = [], []
    with closing(CpuDevice(plan.peak_bytes, plan.host_bytes)) as device:
        executor = Executor(graph, plan, device)
        executor.load(step.state())
        batch = step.batch_leaves()
        for number in range(rounds + 2):
            start = time.perf_counter()
            step.eager()
            middle = time.perf_counter()
            executor.step(batch)
            if number >= 2:  # the first two warm the caches of both
                eager.append(middle - start)
                planned.append(time.perf_counter() - middle)
    ratios = sorted(p / e for p, e in zip(planned, eager, strict=True))
    spread = ratios[3 * len(ratios) // 4] - ratios[len(ratios) // 4]
    return Row(len(graph.ops), _faster(eager), _faster(planned), spread)


def _faster(seconds: list[float]) -> float:
    return statistics.fmean(sorted(seconds)[: -(-len(seconds) // 2)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help="models to measure; without any, the three that have a goal")
    parser.add_argument("--rounds", type=int, default=15, help="steps of each kind (default 15)")
    parser.add_argument("--threads", type=int, help="PyTorch's threads (default: PyTorch's own choice)")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    table = Table(title=f"step time by a plan at 100 % against eager, {torch.get_num_threads()} threads")
    for column in ("model", "ops", "eager s", "planned s", "ratio", "goal", "quartiles apart"):
        table.add_column(column, justify="left" if column == "model" else "right")
    for text in arguments.models or MODELS:
        row = measure(text, arguments.rounds)
        goal = f"{MODELS[text]:.2f}" if text in MODELS else ""
        numbers = f"{row.eager:.3f}", f"{row.planned:.3f}", f"{row.planned / row.eager:.3f}", goal, f"{row.spread:.3f}"
        table.add_row(text, str(row.ops), *numbers)
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
