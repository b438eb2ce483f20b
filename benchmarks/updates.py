"""What it costs a search to be watched: evaluations in equal time with a session that tells how it goes, and without.

Both search the same graph with the same seed, in turns, so that whatever else the machine does meets both. Every turn
gives a ratio to the turn beside it; shown is the median of these ratios with the interval that holds it in 19 of 20
such measurements. On a machine that others use too even that swings by several percent, the processor time that an
evaluation takes by less: it is compared likewise, and the thread that tells is looked at alone. The session packs every
better plan and what there is to say, and a listener makes of it what a notebook's kernel sends. What it costs a run to
be watched, `monitor.py` tells.
"""

from __future__ import annotations

import argparse
import json
import statistics
from threading import Event, get_ident
from time import process_time, thread_time

from paired import interval, middle

from planner.capture import capture
from planner.graph import Graph
from planner.profile import machine
from planner.swap import search_swaps
from planner.zoo import load
from widgets.messages.message import Message
from widgets.session import Session

MODEL = "gpt:layers=12,hidden=256,sequence=128,batch=4,optimizer=adam"
MACHINE = "v100-16gb"
GOAL = 0.02
_OVER = frozenset({"paused", "done", "failed", "cancelled"})


def alone(graph: Graph, budget: str, seconds: float) -> tuple[int, float, float]:
    """Evaluations, seconds and the program's processor seconds of a search that nobody watches."""
    begun = process_time()
    search = search_swaps(graph, machine(MACHINE), budget, method="swap", time_limit=seconds)
    search.wait()
    return search.progress.evaluations, search.progress.seconds, process_time() - begun


def watched(graph: Graph, budget: str, seconds: float) -> tuple[int, float, float, int, int, float]:
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
    begun = process_time()
    session.start_search(seconds)
    over.wait()
    spent = process_time() - begun
    search = session.search
    assert search is not None
    progress = search.progress
    session.close()
    processor = max((times[-1] - times[0] for times in worked.values()), default=0.0)
    return progress.evaluations, progress.seconds, spent, len(sizes), sum(sizes), processor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default=MODEL, help=f"to plan for (default {MODEL})")
    parser.add_argument("--budget", default="30%", help="of the step's own peak (default 30%%)")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each search (default 3)")
    parser.add_argument("--rounds", type=int, default=30, help="turns of each kind (default 30)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    graph = capture(load(arguments.model))
    rates: dict[bool, list[float]] = {False: [], True: []}
    efforts: dict[bool, list[float]] = {False: [], True: []}
    told: list[tuple[int, int, float]] = []
    for number in range(arguments.rounds + 1):
        for watching in (number % 2 == 0, number % 2 == 1):
            if watching:
                evaluations, seconds, spent, messages, size, processor = watched(
                    graph, arguments.budget, arguments.seconds
                )
            else:
                evaluations, seconds, spent = alone(graph, arguments.budget, arguments.seconds)
            if number:  # the first turns warm up
                rates[watching].append(evaluations / seconds)
                efforts[watching].append(spent / evaluations)
                if watching:
                    told.append((messages, size, processor / seconds))
    ratio, effort = middle(rates[True], rates[False]), middle(efforts[True], efforts[False])
    cost = 1 - ratio[1]
    messages, size, processor = (statistics.median(each) for each in zip(*told, strict=True))
    result = {
        "model": arguments.model, "ops": len(graph.ops), "budget": arguments.budget, "seconds": arguments.seconds,
        "rounds": arguments.rounds, "rate_without": statistics.median(rates[False]),
        "rate_with": statistics.median(rates[True]), "ratio": ratio, "cost": cost, "goal": GOAL, "met": cost < GOAL,
        "effort": effort, "messages": messages, "bytes": size, "processor_share": processor,
    }  # fmt: skip
    if arguments.json:
        print(json.dumps(result))
        return
    print(f"{len(graph.ops)} ops, {arguments.seconds:g} s, {arguments.rounds} times")
    print(f"evaluations a second: {result['rate_without']:.1f} alone, {result['rate_with']:.1f} watched")
    print(f"watched over alone: {interval(ratio)}, goal {1 - GOAL}: {'met' if cost < GOAL else 'missed'}")
    print(f"processor time of an evaluation, watched over alone: {interval(effort)}")
    print(f"who watches works {processor:.2%} of the time, for {messages:.0f} messages of {size / 1e3:.0f} KB together")


if __name__ == "__main__":
    main()
