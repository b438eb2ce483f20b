"""What watching a run costs: steps with the monitor and a live chart's reader, against steps without.

The reader asks ten times a second for the snapshots and for what the steps so far amount to. What a run notes of each
step besides, watched or not (its loss, time and timeline, and where the random generator is), is shown beside it.

All are made by one executor in turns, so that whatever else the machine does meets all. Every turn gives a ratio to the
turn beside it; shown is the median of these ratios with the interval that holds it in 19 of 20 such measurements. (The
ratio of two medians swings by 3 % from one measurement to the next: a machine has slower and faster minutes.)
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from threading import Event, Thread

import torch
from paired import interval, middle
from rich.console import Console
from rich.table import Table

from planner.cancel import CancelToken
from planner.capture import capture
from planner.plan import SwapPlan
from planner.profile import prepare
from planner.run import CpuDevice, Executor
from planner.run.checks.retrace import Recheck
from planner.run.checks.state_writeback import StateWriteback
from planner.run.loop.monitor import Monitor
from planner.run.loop.result import RunLog
from planner.run.loop.step_loop import StepLoop
from planner.run.prepare.plan_run import RunRequest
from planner.swap import plan_swaps
from planner.zoo import load

MODELS = ("wresnet:depth=50,image=64,batch=8", "gpt:layers=4,hidden=256,heads=4,sequence=128", "mlp")
GOAL = 1.01


def measure(text: str, budget: str, rounds: int) -> dict[str, object]:
    step = load(text)
    graph = capture(step)
    ready = prepare(graph, "cpu")
    plan = plan_swaps(ready.graph, ready.machine, budget, seconds=ready.seconds, time_limit=5)
    generator, monitor, done = torch.Generator(), Monitor(time.perf_counter()), RunLog()
    turns: dict[str, list[float]] = {"without": [], "watched": [], "noted": []}
    with closing(CpuDevice(plan.peak_bytes, plan.host_bytes)) as device:
        executor = Executor(graph, plan, device, generator=generator)
        kept = StateWriteback(step, generator, graph.program.effects, shared=False)
        asked = RunRequest(
            step, plan, budget, None, rounds, "cpu", check=False, stress=False, remeasure=False, recheck=0
        )
        stop = CancelToken()
        recheck = Recheck(step, 0, stop)
        session = StepLoop(
            asked, executor, kept, generator, done, graph.program.effects, stop, followed=False, smaller=False
        )
        batch = step.batch_leaves()

        def plain() -> None:
            record = executor.step(batch)
            kept.keep(executor.state(), record.left)

        def watched(make: Callable[[], None]) -> float:
            with monitor.watching(executor.present, 0), reading(monitor, done, plan, recheck):
                return repeated(make)

        kinds: dict[str, Callable[[], float]] = {
            "without": lambda: repeated(plain),
            "watched": lambda: watched(plain),
            "noted": lambda: watched(lambda: session.step(batch)),
        }
        for number in range(rounds + 2):
            for kind in sorted(kinds, reverse=bool(number % 2)):  # in either order
                seconds = kinds[kind]()
                if number >= 2:  # the first two warm up
                    turns[kind].append(seconds)
    return {
        "model": text, "ops": len(graph.ops), "rounds": rounds, "seconds": statistics.median(turns["without"]),
        "ratio": middle(turns["watched"], turns["without"]),
        "ratio_with_notes": middle(turns["noted"], turns["without"]),
        "goal": GOAL, "snapshots": len(monitor.snapshots),
    }  # fmt: skip


def repeated(make: Callable[[], None], least: float = 0.15) -> float:
    """Seconds a step, over as many steps as take so long that the monitor comes round."""
    start, count = time.perf_counter(), 0
    while count == 0 or time.perf_counter() - start < least:
        make()
        count += 1
    return (time.perf_counter() - start) / count


@contextmanager
def reading(monitor: Monitor, done: RunLog, plan: SwapPlan, recheck: Recheck) -> Iterator[None]:
    over = Event()

    def read() -> None:
        while not over.wait(0.1):
            _ = monitor.snapshots, done.result("", "cpu", plan, recheck)

    thread = Thread(target=read, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help="models to measure; without any, a CNN, a GPT and an MLP")
    parser.add_argument("--budget", default="60%", help="of the step's own peak (default 60%%)")
    parser.add_argument("--rounds", type=int, default=100, help="turns of each kind (default 100)")
    parser.add_argument("--threads", type=int, help="PyTorch's threads (default: PyTorch's own choice)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    rows = [measure(text, arguments.budget, arguments.rounds) for text in arguments.models or MODELS]
    if arguments.json:
        print(json.dumps({"budget": arguments.budget, "threads": torch.get_num_threads(), "rows": rows}))
        return
    table = Table(title=f"steps with monitor and live chart over steps without, {torch.get_num_threads()} threads")
    for column in ("model", "ops", "step s", "ratio", "goal", "with a run's notes", "snapshots"):
        table.add_column(column, justify="left" if column == "model" else "right")
    for row in rows:
        table.add_row(
            str(row["model"]), str(row["ops"]), f"{row['seconds']:.4f}", interval(row["ratio"]), f"{row['goal']:.2f}",
            interval(row["ratio_with_notes"]), str(row["snapshots"]),
        )  # fmt: skip
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
