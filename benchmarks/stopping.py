"""How soon a run ends that is stopped at any moment, from the capture of its step to the last bit that it writes back.

    python benchmarks/stopping.py
    python benchmarks/stopping.py gpt:layers=8,hidden=1536,sequence=512,batch=4,optimizer=adam --moments 60

Every run makes its model anew. Half of them capture their step, half measure all ops anew; each is stopped at a moment
of its own, and together the moments cover what a whole run of its kind takes.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import time
from collections import defaultdict

from rich.console import Console
from rich.table import Table

from planner.capture import capture
from planner.run import Run, run
from planner.zoo import load

GOAL_ACKNOWLEDGED, GOAL_ENDED = 0.2, 2.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="gpt:layers=4,hidden=768,sequence=256,batch=4,optimizer=adam")
    parser.add_argument("--moments", type=int, default=40, help="how many runs are stopped (default 40)")
    parser.add_argument("--budget", default="60%", help="of the step's own peak (default 60%%)")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    whole(chosen.model, chosen.budget, known=True, remeasure=False)  # compiles, and measures what was never measured
    kinds = list(itertools.product((False, True), (False, True)))  # whether its step is known, whether ops are measured
    spent = {kind: whole(chosen.model, chosen.budget, known=kind[0], remeasure=kind[1]) for kind in kinds}
    draws = random.Random(chosen.seed)
    ends: dict[str, list[tuple[float, float]]] = defaultdict(list)
    rounds = -(-chosen.moments // len(kinds))
    for number in range(chosen.moments):
        kind = kinds[number % len(kinds)]
        moment = spent[kind] * (number // len(kinds) + draws.random()) / rounds
        doing, told, ended = stop_at(chosen.model, chosen.budget, moment, known=kind[0], remeasure=kind[1])
        ends[doing].append((told, ended))
        print(f"{number + 1} of {chosen.moments}, {doing}: told {1e3 * told:.1f} ms, ended {ended:.2f} s", flush=True)
    shortest, longest = min(spent.values()), max(spent.values())
    table = Table(title=f"{chosen.model}, {chosen.budget}: whole runs take {shortest:.1f} to {longest:.1f} s")
    for name in ("stopped while", "runs", "acknowledged, worst", "ended, median", "ended, worst"):
        table.add_column(name, justify="left" if name == "stopped while" else "right")
    for doing, times in sorted(ends.items()):
        told, ended = max(a for a, _ in times), [b for _, b in times]
        table.add_row(
            doing, str(len(times)), f"{1e3 * told:.1f} ms", f"{statistics.median(ended):.2f} s", f"{max(ended):.2f} s"
        )
    Console().print(table)
    worst = max(max(b for _, b in times) for times in ends.values())
    print(f"worst {worst:.2f} s; wanted {GOAL_ENDED} s, acknowledged after {GOAL_ACKNOWLEDGED} s")


def whole(model: str, budget: str, *, known: bool, remeasure: bool) -> float:
    """Seconds of a run that nobody stops, of two steps with eager PyTorch beside them."""
    step = load(model)
    if known:
        capture(step, progress=False)
    began = time.perf_counter()
    run(step, budget=budget, steps=2, check=True, remeasure=remeasure, progress=False).wait()
    return time.perf_counter() - began


def stop_at(model: str, budget: str, seconds: float, *, known: bool, remeasure: bool) -> tuple[str, float, float]:
    """What a run did when it was stopped, and how long it took to say so and to end."""
    step = load(model)
    if known:
        capture(step, progress=False)
    running: Run = run(step, budget=budget, steps=2, check=True, remeasure=remeasure, progress=False)
    running._runner.await_end(seconds)
    doing = running.progress.doing.partition(",")[0]
    doing = "ended already" if running.progress.state != "running" else doing
    began = time.perf_counter()
    running.cancel()
    while running.progress.doing not in {"stopping", "stopped", "done"}:
        time.sleep(0.001)
    told = time.perf_counter() - began
    running._runner.await_end(None)
    return doing, told, time.perf_counter() - began


if __name__ == "__main__":
    main()
