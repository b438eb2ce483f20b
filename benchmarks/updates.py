"""What it costs a search to be watched: evaluations in equal time with a session that tells how it goes, and without.

Both search the same graph with the same seed, in turns, so that whatever else the machine does meets both; the medians
are compared. Where the machine is not quiet these differ by chance by more than what is measured, so the processor time
of the thread that watches is told too, as a share of the time searched. The session packs every better plan and what
there is to say, and a listener makes of it what a notebook's kernel sends. What it costs a run to be watched,
`monitor.py` tells.
"""

from __future__ import annotations

import argparse
import json
import statistics
from threading import Event, get_ident
from time import thread_time

from rich.console import Console
from rich.table import Table

from planner.capture import capture
from planner.graph import Graph
from planner.machine import machine
from planner.swap import search_swaps
from planner.zoo import load
from widgets.canvas.columns import Message
from widgets.session import Session

MODEL = "gpt:layers=12,hidden=256,sequence=128,batch=4,optimizer=adam"
MACHINE = "v100-16gb"
GOAL = 0.02
_OVER = frozenset({"paused", "done", "failed", "cancelled"})


def alone(graph: Graph, budget: str, seconds: float) -> tuple[int, float]:
    """Evaluations and seconds of a search that nobody watches."""
    search = search_swaps(graph, machine(MACHINE), budget, time_limit=seconds)
    search.wait()
    return search.progress.evaluations, search.progress.seconds


def watched(graph: Graph, budget: str, seconds: float) -> tuple[int, float, int, int, float]:
    """The same of one that a session watches; its messages and bytes, and the processor seconds of who tells them."""
    session = Session(graph, machine=MACHINE, budget=budget)
    _ = session.plan
    over, sizes = Event(), []
    worked: dict[int, list[float]] = {}

    def send(message: Message) -> None:
        sizes.append(len(json.dumps(message.content).encode()) + sum(len(buffer) for buffer in message.buffers))
        worked.setdefault(get_ident(), []).append(thread_time())
        if message.kind == "search" and message.content["state"] in _OVER:
            over.set()

    session.listen(send)
    session.start_search(seconds)
    over.wait()
    search = session.search
    assert search is not None
    progress = search.progress
    session.close()
    processor = max((times[-1] - times[0] for times in worked.values()), default=0.0)
    return progress.evaluations, progress.seconds, len(sizes), sum(sizes), processor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default=MODEL, help=f"to plan for (default {MODEL})")
    parser.add_argument("--budget", default="30%", help="of the step's own peak (default 30%%)")
    parser.add_argument("--seconds", type=float, default=6.0, help="of each search (default 6)")
    parser.add_argument("--rounds", type=int, default=8, help="turns of each kind (default 8)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    graph = capture(load(arguments.model))
    rates: dict[bool, list[float]] = {False: [], True: []}
    told: list[tuple[int, int, float]] = []
    for number in range(arguments.rounds + 1):
        for watching in (number % 2 == 0, number % 2 == 1):
            if watching:
                evaluations, seconds, messages, size, processor = watched(graph, arguments.budget, arguments.seconds)
            else:
                evaluations, seconds = alone(graph, arguments.budget, arguments.seconds)
            if number:  # the first turns warm up
                rates[watching].append(evaluations / seconds)
                if watching:
                    told.append((messages, size, processor / seconds))
    without, having = (statistics.median(rates[each]) for each in (False, True))
    cost = 1 - having / without
    messages, size, processor = (statistics.median(each) for each in zip(*told, strict=True))
    result = {
        "model": arguments.model, "ops": len(graph.ops), "budget": arguments.budget, "seconds": arguments.seconds,
        "rounds": arguments.rounds, "rate_without": without, "rate_with": having, "cost": cost, "goal": GOAL,
        "met": cost < GOAL, "spread_without": spread(rates[False]), "spread_with": spread(rates[True]),
        "messages": messages, "bytes": size, "processor_share": processor,
    }  # fmt: skip
    if arguments.json:
        print(json.dumps(result))
        return
    table = Table(title=f"{len(graph.ops)} ops, {arguments.seconds:g} s, {arguments.rounds} times")
    for column in ("", "evaluations/s", "spread"):
        table.add_column(column, justify="left" if not column else "right")
    table.add_row("alone", f"{without:.1f}", f"{spread(rates[False]):.1%}")
    table.add_row("watched", f"{having:.1f}", f"{spread(rates[True]):.1%}")
    Console(width=110).print(table)
    verdict = "met" if cost < GOAL else "missed"
    print(f"cost {cost:.2%}, goal under {GOAL:.0%}: {verdict}")
    print(f"who watches works {processor:.2%} of the time, for {messages:.0f} messages of {size / 1e3:.0f} KB together")


def spread(rates: list[float]) -> float:
    """Half the distance between the quartiles, of the median."""
    if len(rates) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(rates, n=4)
    return (high - low) / 2 / middle


if __name__ == "__main__":
    main()
