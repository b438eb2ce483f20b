"""How many plans a second the swap planner's kernels can judge and make, on one core, compilation left out.

    python benchmarks/simulator.py [MODEL ...]

`simulate` runs the three queues of a finished plan. `evict_by_bytes` decides what is off the device when, in one pass
over all slots; a plan takes a few passes until its end is like its start.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import perf_counter

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from planner.capture import capture
from planner.machine import op_seconds
from planner.memory import parse_budget, step_peak
from planner.profile import machine
from planner.swap.evict.bytes_pass import evict_by_bytes
from planner.swap.evict.cyclic_bytes import bytes_pass, clock_of
from planner.swap.evict.state import EvictionInputs
from planner.swap.problem.problem import build_problem
from planner.swap.schedule.base_orders import eager_optimizer_order
from planner.swap.simulate.draft_timing import copy_seconds, time_draft
from planner.swap.simulate.streams import run_queues
from planner.zoo import load

MODELS = (
    "gpt:layers=36,hidden=1280,heads=20,sequence=1024,batch=16",
    "wresnet:depth=152,widen=10,image=224,batch=64",
    "rnn:layers=8,hidden=8192,batch=128",
    "nasnet:cells=8,batch=64",
)


def per_second(work: Callable[[], object], seconds: float) -> float:
    """How often it can be done in a second, tried for that long."""
    work()
    begin, count = perf_counter(), 0
    while perf_counter() - begin < seconds:
        work()
        count += 1
    return count / (perf_counter() - begin)


def measure(model: str, budget: str, seconds: float) -> list[str]:
    graph, device = capture(load(model)), machine("v100-16gb")
    durations = op_seconds(graph, device)
    problem = build_problem(graph, device, parse_budget(budget, step_peak(graph, device.device.alignment)), durations)
    by_bytes, order = bytes_pass(problem, eager_optimizer_order(problem)), eager_optimizer_order(problem)
    none, bias = np.zeros(problem.storages, np.bool_), np.ones(problem.storages)
    draft = by_bytes.draft(clock_of(problem, order), problem.memory, always_resident=none)
    if draft is None:
        return [model, f"does not fit into {budget}"]
    timing, absences, work = time_draft(problem, draft), draft.absences, copy_seconds(problem)[draft.absences.storage]
    outs, ins = timing.outs, timing.ins
    queues = (
        problem.seconds[order], absences.ready[outs], absences.release[outs], work[outs],
        absences.reload[ins], absences.use[ins],
        work[ins], problem.link.shared, np.empty((2, problem.ops + 1), np.int32),
        timing.compute, timing.out_spans, timing.in_spans,
    )  # fmt: skip
    inputs = EvictionInputs(
        order,
        problem.arrays,
        by_bytes.uses,
        clock_of(problem, order),
        by_bytes.work,
        1.0,
        avoid_late_copies=False,
        stop=problem.stop.flag,
    )
    reuses_buffer_of, resident_at_end = draft.reuses_buffer_of.copy(), np.empty(problem.storages, np.bool_)
    rates = (
        per_second(lambda: run_queues(*queues), seconds),
        per_second(
            lambda: evict_by_bytes(
                inputs,
                draft.resident,
                none,
                problem.memory,
                bias,
                by_bytes.absences,
                reuses_buffer_of,
                resident_at_end,
                by_bytes.eviction,
            ),
            seconds,
        ),
    )
    return [model, str(problem.ops), str(len(outs) + len(ins)), *(f"{rate:,.0f}" for rate in rates)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS, metavar="MODEL")
    parser.add_argument("--budget", default="16GB", help="device memory (default: 16GB)")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long to try each (default: 2)")
    arguments = parser.parse_args()
    table = Table(title="Per second on one core", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("model")
    for heading in ("ops", "copies", "simulate /s", "passes /s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for model in arguments.models:
        table.add_row(*measure(model, arguments.budget, arguments.seconds))
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
