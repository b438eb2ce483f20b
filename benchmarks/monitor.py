"""What watching a run costs: steps with the monitor, the run's bookkeeping and a reader, against steps without.

Both are made by one executor in turns, so that whatever else the machine does meets both. Every turn gives a ratio to
the turn beside it; shown is the median of these ratios with the interval that holds it in 19 of 20 such measurements,
of the time that passed and of the processor time of all threads, which other programs disturb less. (The ratio of the
two medians swings by 3 % from one measurement to the next: a machine has slower and faster minutes.) The reader asks
ten times a second for the snapshots and for what the steps so far amount to, as a live chart does.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from threading import Event, Thread

import torch
from rich.console import Console
from rich.table import Table

from planner.capture import capture
from planner.machine import machine, timed
from planner.run import CpuDevice, Executor
from planner.run.kept import Kept
from planner.run.monitor import Monitor
from planner.run.preparing import Asked
from planner.run.result import Done
from planner.run.session import Session
from planner.swap import plan_swaps
from planner.zoo import load

MODELS = ("wresnet:depth=50,image=64,batch=8", "gpt:layers=4,hidden=256,heads=4,sequence=128", "mlp")
GOAL = 1.01


def measure(text: str, budget: str, rounds: int) -> dict[str, object]:
    step = load(text)
    graph = capture(step)
    ready = timed(graph, machine("cpu"))
    plan = plan_swaps(ready.graph, machine("cpu"), budget, seconds=ready.seconds, time_limit=5)
    generator, monitor, done = torch.Generator(), Monitor(time.perf_counter()), Done()
    turns: list[tuple[float, float, float, float]] = []
    with closing(CpuDevice(plan.peak_bytes, plan.host_bytes)) as device:
        executor = Executor(graph, plan, device, generator=generator)
        kept = Kept(step, generator, shared=False)
        asked = Asked(step, plan, budget, None, rounds, "cpu", check=False, stress=False, remeasure=False)
        session = Session(asked, executor, kept, generator, done, followed=False)
        batch = step.batch_leaves()

        def plain() -> None:
            executor.step(batch)
            kept.keep(executor)

        def watched() -> tuple[float, float]:
            with monitor.watching(executor.present, 0), reading(monitor, done, plan):
                return repeated(lambda: session.step(batch))

        for number in range(rounds + 2):
            if number % 2:  # in either order
                with_it, without = watched(), repeated(plain)
            else:
                without, with_it = repeated(plain), watched()
            if number >= 2:  # the first two warm up
                turns.append((*without, *with_it))
    return {
        "model": text, "ops": len(graph.ops), "rounds": rounds,
        "seconds_without": statistics.median(turn[0] for turn in turns),
        "seconds_with": statistics.median(turn[2] for turn in turns),
        "ratio": middle([turn[2] / turn[0] for turn in turns]),
        "processor_ratio": middle([turn[3] / turn[1] for turn in turns]),
        "goal": GOAL, "snapshots": len(monitor.snapshots),
    }  # fmt: skip


def middle(values: list[float]) -> list[float]:
    """The median with the ends of the interval that holds it 19 times of 20: lower end, median, upper end."""
    ordered = sorted(values)
    aside = math.sqrt(len(ordered)) * 0.98  # 1.96 standard deviations of how many of n fall below the median
    low, high = math.floor(len(ordered) / 2 - aside), math.ceil(len(ordered) / 2 + aside)
    return [ordered[max(low, 0)], statistics.median(ordered), ordered[min(high, len(ordered) - 1)]]


def repeated(make: object, least: float = 0.15) -> tuple[float, float]:
    """Seconds a step and processor seconds a step, over as many steps as take so long that the monitor comes round."""
    assert callable(make)
    start, work, count = time.perf_counter(), time.process_time(), 0
    while count == 0 or time.perf_counter() - start < least:
        make()
        count += 1
    return (time.perf_counter() - start) / count, (time.process_time() - work) / count


@contextmanager
def reading(monitor: Monitor, done: Done, plan: object) -> Iterator[None]:
    over = Event()

    def read() -> None:
        while not over.wait(0.1):
            _ = monitor.snapshots, done.result("", "cpu", plan)  # type: ignore[arg-type]

    thread = Thread(target=read, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def interval(ends: object) -> str:
    assert isinstance(ends, list)
    low, median, high = ends
    return f"{median:.4f} ({low:.4f}-{high:.4f})"


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
    table = Table(title=f"a step with and without monitor and handle, {torch.get_num_threads()} threads")
    for column in ("model", "ops", "without s", "with s", "ratio", "processor ratio", "goal", "snapshots"):
        table.add_column(column, justify="left" if column == "model" else "right")
    for row in rows:
        table.add_row(
            str(row["model"]), str(row["ops"]), f"{row['seconds_without']:.4f}", f"{row['seconds_with']:.4f}",
            interval(row["ratio"]), interval(row["processor_ratio"]), f"{row['goal']:.2f}", str(row["snapshots"]),
        )  # fmt: skip
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
