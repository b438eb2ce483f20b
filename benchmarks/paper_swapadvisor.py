"""SwapAdvisor's tables (ASPLOS 2020) with our plans beside its figures, and whether each row reaches its goal.

    python benchmarks/paper_swapadvisor.py [--rows main,momentum,small,wide,narrow] [--models RNN,NasNet] [--ablation]

main      the paper's main table: plain SGD within 16 GB
momentum  the same models trained with momentum
small     the main table within 8 GB
wide      WResNet-152-10 widened everywhere, not only inside its bottlenecks: 16 GB
narrow    WResNet-152-4, the paper's comparison with TFLMS

Op times are the machine's roofline, offsets are exact, and every plan has passed the validator. A row's plan is the
best there is when its seconds are over; laying out the graph and all baselines count, capturing the model does not.
`% of ideal` is the step with infinite memory over the plan's step. `any order` is the most that any plan could reach,
`this order` the most that any plan with the order found could reach; both are proven. All of it needs only a CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter
from typing import Any, Literal

from paper_ablation import MODELS, ablated, ablation_tables
from rich import box
from rich.console import Console
from rich.table import Table

from planner.capture import capture
from planner.errors import StowageError
from planner.graph import Graph
from planner.machine import op_seconds
from planner.memory import parse_budget
from planner.profile import machine
from planner.swap import SwapSearch, search_swaps
from planner.swap.bounds.fixed_order import order_bound
from planner.zoo import load

Part = Literal["main", "momentum", "small", "wide", "narrow"]

#: By model: its text for the zoo, and by batch the paper's samples per second: infinite memory, on demand, its own.
PAPER: dict[str, tuple[str, dict[int, tuple[float, float, float]]]] = {
    "RNN-8-8K": ("rnn:layers=8,hidden=8192", {128: (14.5, 0.53, 12.2), 256: (14.7, 1.07, 11.2)}),
    "BRNN-4-8K": ("brnn:layers=4,hidden=8192", {64: (7.97, 0.64, 6.04), 128: (10.9, 1.18, 8.81)}),
    "WResNet-152-10": (
        "wresnet:depth=152,widen=10,image=224",
        {16: (3.85, 2.90, 3.56), 32: (4.07, 3.34, 3.85), 64: (4.21, 3.49, 4.07)},
    ),
    "Inception-4": (
        "inception:version=3,widen=4",
        {16: (12.7, 10.4, 12.5), 32: (13.8, 9.97, 13.6), 64: (14.2, 6.25, 10.0)},
    ),
    "NasNet-25": ("nasnet:cells=8", {16: (7.06, 2.40, 5.95), 32: (8.82, 2.66, 5.30), 64: (9.46, 2.38, 5.02)}),
}
#: WResNet-152-4 by batch: on demand and the paper's own; how fast it is with infinite memory was not published.
NARROW = {16: (14.0, 14.2), 32: (14.3, 15.0), 64: (11.5, 15.2)}


@dataclass(frozen=True)
class Row:
    """A line of the tables: what is planned, how long one may search, what is to be reached, and the paper's figures.

    Args:
        part, name, batch: which line.
        text: the step for the zoo.
        budget: device memory.
        seconds: of search.
        goal: percent `of` ideal, percent of the bound for any order, or samples per second.
        paper: samples per second by name.
    """

    part: Part
    name: str
    batch: int
    text: str
    budget: str
    seconds: float
    goal: float
    of: Literal["ideal", "bound", "samples/s"]
    paper: dict[str, float]


def rows() -> Iterable[Row]:
    """All lines, part by part."""
    lines = [(name, text, batch, figures) for name, (text, by) in PAPER.items() for batch, figures in by.items()]
    for name, text, batch, (ideal, demand, own) in lines:
        paper = {"ideal": ideal, "on demand": demand, "own": own}
        full = name == "NasNet-25" and batch >= 32  # the link limits these two below the ideal
        goal = (95.0, "bound") if full else (98.0, "ideal")
        yield Row("main", name, batch, f"{text},batch={batch}", "16GB", 10, *goal, paper)
    for name, text, batch, _ in lines:
        if name != "NasNet-25":
            yield Row(
                "momentum", name, batch, f"{text},batch={batch},optimizer=momentum", "16GB", 10, 97.0, "ideal", {}
            )
    for name, text, batch, _ in lines:
        yield Row("small", name, batch, f"{text},batch={batch}", "8GB", 60, 90.0, "bound", {})
    for batch in (16, 64):
        text = f"wresnet:depth=152,widen=10,width=full,image=224,batch={batch}"
        yield Row("wide", "WResNet-152-10 full", batch, text, "16GB", 60, 90.0, "bound", {})
    for batch, (demand, own) in NARROW.items():
        text = f"wresnet:depth=152,widen=4,image=224,batch={batch}"
        yield Row(
            "narrow", "WResNet-152-4", batch, text, "16GB", 10, own, "samples/s", {"on demand": demand, "own": own}
        )


@lru_cache(maxsize=16)
def graph_of(text: str) -> Graph:
    """The step of a line, captured once."""
    return capture(load(text))


def planned(row: Row, name: str, seconds: float, console: Console) -> dict[str, Any]:
    """Search for so long, and what came of it; the bound of the plan's order is worked out afterwards."""
    with console.status(f"{row.name} {row.batch}: capturing") as status:
        graph, target = graph_of(row.text), machine(name)
        begin = perf_counter()
        search = search_swaps(graph, target, row.budget, method="swap", time_limit=None)
        while search.progress.state == "running" and (left := begin + seconds - perf_counter()) > 0:
            waited(search, min(left, 0.25))
            status.update(doing(row, search))
        in_time = search.best is not None
        plan = search.best or search.wait()
        took, progress, known = perf_counter() - begin, search.progress, search.history
        search.cancel()
        status.update(f"{row.name} {row.batch}: bound of the order found")
        bound, step = progress.bound_seconds, plan.predicted.seconds
        ordered = bound
        if step > bound * 1.0001:
            memory, op_times = parse_budget(row.budget, 1), op_seconds(graph, target)
            ordered = max(bound, order_bound(graph, target, memory, op_times, plan.order))
        waited(search, 2.0)
    ideal = progress.ideal_seconds
    found = {
        "part": row.part, "model": row.name, "batch": row.batch, "budget": row.budget,
        "ideal_seconds": ideal, "step_seconds": step, "bound_seconds": bound, "order_bound_seconds": ordered,
        "percent_of_ideal": 100 * ideal / step, "percent_of_bound": 100 * bound / step,
        "bound_percent_of_ideal": 100 * ideal / bound, "order_bound_percent_of_ideal": 100 * ideal / ordered,
        "samples_per_second": row.batch / step, "paper_samples_per_second": row.paper,
        "baseline_seconds": search.baselines, "method": plan.method, "search_seconds": took,
        "best_after_seconds": max((point.seconds for point in known), default=0.0), "evaluations": progress.evaluations,
        "goal": row.goal, "goal_of": row.of,
    }  # fmt: skip
    reached = {"ideal": found["percent_of_ideal"], "bound": found["percent_of_bound"], "samples/s": row.batch / step}
    return found | {"reached": in_time and bool(reached[row.of] >= row.goal), "reached_value": reached[row.of]}


def waited(search: SwapSearch, seconds: float) -> None:
    """Let a search go on for a moment; that it has no plan yet does not matter here."""
    try:
        search.wait(seconds)
    except StowageError:
        if search.progress.state == "failed":
            raise


def doing(row: Row, search: SwapSearch) -> str:
    """The state of a search in one line."""
    progress = search.progress
    best = "no plan yet"
    if progress.step_seconds:
        best = f"{100 * progress.ideal_seconds / progress.step_seconds:.1f} % of ideal"
    return f"{row.name} {row.batch}: {best}, {progress.evaluations} plans, {progress.seconds:.0f} s, {progress.doing}"


def verdict(found: dict[str, Any]) -> str:
    """Whether a line reached its goal, in words."""
    unit = "/s" if found["goal_of"] == "samples/s" else f" % of {found['goal_of']}"
    if found["reached"]:
        return f"[green]reached[/] {found['goal']:g}{unit}"
    return f"[red]not[/] {found['goal']:g}{unit}"


def part_table(part: str, found: list[dict[str, Any]], target: str) -> Table:
    """A part's lines as a table."""
    title = f"{part}: swap plans within {found[0]['budget']} on {target}, % of the step with infinite memory"
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("model", no_wrap=True)
    for heading in (
        "B", "ideal s", "ours %", "any order %", "% of bound", "this order %", "on demand %", "LRU ahead %", "paper %",
        "paper ideal/s", "paper/s", "ours/s", "search s", "plans",
    ):  # fmt: skip
        table.add_column(heading, justify="right")
    table.add_column("goal", no_wrap=True)
    for one in found:
        paper, ideal = one["paper_samples_per_second"], one["ideal_seconds"]
        share = f"{100 * paper['own'] / paper['ideal']:.1f}" if "ideal" in paper else ""
        baselines = [one["baseline_seconds"].get(name) for name in ("on-demand", "lru-prefetch")]
        table.add_row(
            one["model"], str(one["batch"]), f"{ideal:.3f}", f"{one['percent_of_ideal']:.2f}",
            f"{one['bound_percent_of_ideal']:.1f}", f"{one['percent_of_bound']:.2f}",
            f"{one['order_bound_percent_of_ideal']:.1f}",
            *("" if seconds is None else f"{100 * ideal / seconds:.1f}" for seconds in baselines), share,
            *(f"{paper[name]:g}" if name in paper else "" for name in ("ideal", "own")),
            f"{one['samples_per_second']:.2f}", f"{one['search_seconds']:.1f}", str(one["evaluations"]), verdict(one),
        )  # fmt: skip
    return table


def main() -> None:
    parts = list(dict.fromkeys(row.part for row in rows()))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", help=f"parts by comma (default: {','.join(parts)}, or none with --ablation)")
    parser.add_argument("--models", default="", help="only models whose name has one of these in it, by comma")
    parser.add_argument("--batches", default="", help="only these batch sizes, by comma")
    parser.add_argument("--seconds", type=float, help="of search per plan (default: 10; small and wide 60)")
    parser.add_argument("--machine", default="v100-16gb", help="preset (default: v100-16gb)")
    parser.add_argument("--ablation", action="store_true", help="what leaving each part of the search out costs")
    parser.add_argument("--json", action="store_true", help="print one object instead of tables")
    chosen = parser.parse_args()
    wanted = [] if chosen.rows is None and chosen.ablation else (chosen.rows or ",".join(parts)).split(",")
    if unknown := set(wanted) - set(parts):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; choose of {', '.join(parts)}")
    names = [name.lower() for name in chosen.models.split(",")]
    batches = [int(batch) for batch in chosen.batches.split(",") if batch]

    def meant(name: str, batch: int) -> bool:
        return any(one in name.lower() for one in names) and (not batches or batch in batches)

    progress = Console(stderr=True, width=160)
    load_at_start = os.getloadavg()[0]
    found: list[dict[str, Any]] = []
    lost: list[dict[str, Any]] = []
    try:
        with progress.status("compiling"):
            search_swaps(capture(load("mlp")), machine(chosen.machine), "70%", method="swap", time_limit=2).wait()
        for row in rows():
            if row.part in wanted and meant(row.name, row.batch):
                found.append(planned(row, chosen.machine, chosen.seconds or row.seconds, progress))
                one = found[-1]
                progress.print(
                    f"{row.part} {row.name} {row.batch}: {one['percent_of_ideal']:.2f} % of ideal, "
                    f"{one['percent_of_bound']:.2f} % of the bound, {one['search_seconds']:.1f} s, {verdict(one)}"
                )
        for model in MODELS if chosen.ablation else ():
            if meant(model.name, model.batch):
                with progress.status(model.name) as status:
                    target, say = machine(chosen.machine), status.update
                    lost.append(ablated(model, graph_of(model.text), target, "16GB", chosen.seconds or 10, say))
    except KeyboardInterrupt:
        progress.print("stopped; this is what there is")
    if chosen.json:
        json.dump({"load_at_start": load_at_start, "rows": found, "ablation": lost}, sys.stdout, indent=1)
        print()
        return
    console = Console(width=200)
    for part in parts:
        if of_part := [one for one in found if one["part"] == part]:
            console.print(part_table(part, of_part, chosen.machine), "")
    if lost:
        for table in ablation_tables(lost):
            console.print(table, "")
    reached = sum(one["reached"] for one in found)
    if found:
        console.print(
            f"{reached} of {len(found)} rows reached; {os.cpu_count()} cores, load {load_at_start:.1f} at start"
        )


if __name__ == "__main__":
    main()
