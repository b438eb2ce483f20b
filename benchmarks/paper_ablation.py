"""What each part of a search is worth: plans made without it, as in SwapAdvisor's ablation (ASPLOS 2020).

Part of `paper_swapadvisor.py`, which prints it. Without local search, ours is the portfolio alone; that further without
- schedules: only the captured order;
- addresses: our orders in a pool of size classes, swapped by the paper's rule within a class;
- swaps: our orders at exact addresses, the least recently used leaves, and its copies run ahead.

What a search finds within a few seconds counts, no baseline does. The paper's own search ran 36 vCPU-hours a plan.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from time import perf_counter
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from planner.cancel import Cancelled, CancelToken
from planner.graph import Graph
from planner.machine import Machine, op_seconds
from planner.memory import parse_budget
from planner.plan import SwapPlan, validate
from planner.swap.baselines.registry import BASELINES
from planner.swap.bounds.any_order import bound_of
from planner.swap.methods.eviction_portfolio import Portfolio, ways
from planner.swap.methods.local_search import LocalSearch
from planner.swap.methods.method import Method, SearchContext
from planner.swap.methods.swapadvisor import Genetic
from planner.swap.methods.swapadvisor.pool import default_allocation, demand_of
from planner.swap.methods.swapadvisor.pool_planner import pool_planner
from planner.swap.problem.problem import Problem, build_problem
from planner.swap.schedule.base_orders import captured
from planner.swap.schedule.budget_feasibility import orders


@dataclass(frozen=True)
class Model:
    """A step, and the paper's samples per second: whole, without schedules, without allocation, with its batch."""

    name: str
    batch: int
    text: str
    paper: tuple[float, float, float] | None = None
    paper_batch: int = 0


MODELS = (
    Model("RNN-8-8K", 128, "rnn:layers=8,hidden=8192,batch=128", (12.2, 0.77, 6.93), 128),
    Model("BRNN-4-8K", 128, "brnn:layers=4,hidden=8192,batch=128"),
    Model("WResNet-152-10", 64, "wresnet:depth=152,widen=10,image=224,batch=64"),
    Model("Inception-4", 64, "inception:version=3,widen=4,batch=64", (13.6, 12.7, 11.5), 32),
    Model("NasNet-25", 32, "nasnet:cells=8,batch=32"),
)


def ablated(
    model: Model, graph: Graph, machine: Machine, budget: str, seconds: float, say: Callable[[str], None]
) -> dict[str, Any]:
    """Samples per second by what was left out.

    Args:
        model, graph: the step.
        machine, budget: where it is to run.
        seconds: of search for each.
        say: told what is being searched.
    """
    problem = build_problem(graph, machine, parse_budget(budget, 1), op_seconds(graph, machine))
    first = captured(problem)

    def captured_only(context: SearchContext) -> Method:
        return Portfolio(context, candidates=[way for way in ways(context) if np.array_equal(way.order, first)])

    searches: dict[str, Callable[[], float]] = {
        "ours": lambda: searched(problem, [Portfolio, LocalSearch], seconds),
        "portfolio": lambda: searched(problem, [Portfolio], seconds),
        "no schedules": lambda: searched(problem, [captured_only], seconds),
        "no addresses": lambda: min(pooled(problem)),
        "no swaps": lambda: min(lru(problem)),
        "swapadvisor": lambda: searched(problem, [Genetic], seconds),
        "swapadvisor, no schedules": lambda: searched(problem, [without(search_schedule=False)], seconds),
        "swapadvisor, no allocation": lambda: searched(problem, [without(search_allocation=False)], seconds),
    }
    found: dict[str, float] = {}
    for name, search in searches.items():
        say(f"{model.name}: {name}")
        found[name] = model.batch / search()
    return {
        "model": model.name, "batch": model.batch, "budget": budget, "seconds": seconds,
        "ideal": model.batch / problem.ideal_seconds, "bound": model.batch / bound_of(problem),
        "samples_per_second": found, "paper": model.paper, "paper_batch": model.paper_batch,
    }  # fmt: skip


def without(**parts: bool) -> Callable[[SearchContext], Method]:
    """The paper's search without a part of it."""
    return lambda context: Genetic(context, **parts)


def searched(problem: Problem, methods: list[Callable[[SearchContext], Method]], seconds: float) -> float:
    """Seconds of the fastest step that methods find one after another; baselines do not count."""
    best: list[SwapPlan] = []
    over = perf_counter() + seconds
    with ThreadPoolExecutor(max(1, os.cpu_count() or 1)) as pool:
        context = SearchContext(
            replace(problem, stop=CancelToken.after(seconds)), bound_of(problem), 0,
            lambda function, items: list(pool.map(function, items)),
            lambda: best[-1].predicted.seconds if best else inf,
        )  # fmt: skip
        with suppress(Cancelled):
            for make in methods:
                method = make(context)
                while perf_counter() < over and (search_step := method.search_step()) is not None:
                    if search_step.plan is not None and search_step.plan.predicted.seconds < context.best():
                        best.append(search_step.plan)
    if best and (problems := validate(best[-1], problem.graph)):
        raise AssertionError(problems[0])
    return context.best()


def pooled(problem: Problem) -> Iterator[float]:
    """Seconds of the step by order, in the pool that the paper's search begins with."""
    demand = demand_of(problem)
    planner, pool = pool_planner(problem, demand, 1.0), default_allocation(problem, demand)
    for _, order in orders(problem):
        yield planner.seconds(order, pool)


def lru(problem: Problem) -> Iterator[float]:
    """Seconds of the step by order, with the least recently used leaving and copies as early as they can be."""
    for _, order in orders(problem):
        ops = tuple(replace(problem.graph.ops[op], id=slot) for slot, op in enumerate(order))
        graph = replace(problem.graph, ops=ops)
        plan = BASELINES["lru-prefetch"](build_problem(graph, problem.machine, problem.budget, problem.seconds[order]))
        yield inf if plan is None else plan.predicted.seconds


def ablation_tables(found: list[dict[str, Any]]) -> Iterator[Table]:
    """Samples per second, a line per model: our search, and the paper's."""
    settings = f"samples per second within {found[0]['budget']}, {found[0]['seconds']:g} s of search each"
    for title, columns in (("What our search loses without", OURS), ("What the paper's search loses without", THEIRS)):
        table = Table(title=f"{title}: {settings}", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
        table.add_column("model", no_wrap=True)
        for heading in ("B", "ideal", "at most", *columns, "paper: all", "schedules", "allocation", "at B"):
            table.add_column(heading, justify="right")
        for one in found:
            numbers = [one["ideal"], one["bound"], *(one["samples_per_second"][name] for name in columns.values())]
            paper = [f"{value:g}" for value in one["paper"]] + [str(one["paper_batch"])] if one["paper"] else []
            table.add_row(one["model"], str(one["batch"]), *(f"{value:.3g}" for value in numbers), *paper)
        yield table


#: Columns of the tables, and what they show.
OURS = {
    "nothing": "ours",
    "local search": "portfolio",
    "schedules": "no schedules",
    "addresses": "no addresses",
    "swaps": "no swaps",
}
THEIRS = {
    "nothing": "swapadvisor",
    "schedules": "swapadvisor, no schedules",
    "allocation": "swapadvisor, no allocation",
}
