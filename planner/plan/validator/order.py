"""Every op reads and writes the same versions of storages as in captured order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from planner.graph import Graph
from planner.plan.swap_plan import SwapPlan


def check_order(plan: SwapPlan, graph: Graph) -> list[str]:
    """Compare the versions that each op sees in the plan's order with those of the captured order.

    A storage's version is how often it has been written. As every writer sees its captured version too, equal
    counts mean equal histories.
    """
    if sorted(plan.order) != list(range(len(graph.ops))):
        return [f"the order does not hold each of the {len(graph.ops)} ops once"]
    captured = _versions(graph, range(len(graph.ops)))
    planned = _versions(graph, plan.order)
    writers: dict[int, list[int]] = defaultdict(list)
    for op, written in enumerate(graph.writes):
        for storage in written:
            writers[storage].append(op)
    problems = []
    for slot, op in enumerate(plan.order):
        for storage, version in planned[op].items():
            expected = captured[op][storage]
            name, what = graph.ops[op].name, graph.storages[storage].name
            if version < expected:
                writer = graph.ops[writers[storage][expected - 1]].name
                problems.append(f"op {name} in slot {slot} needs {what} as op {writer} leaves it, which runs later")
            elif version > expected:
                writer = graph.ops[writers[storage][expected]].name
                problems.append(f"op {name} in slot {slot} needs {what} as it is before op {writer}, which ran earlier")
    return problems


def _versions(graph: Graph, order: Iterable[int]) -> dict[int, dict[int, int]]:
    """Per op, the version that it sees of each storage that it reads or writes."""
    count: dict[int, int] = defaultdict(int)
    met = {}
    for op in order:
        met[op] = {storage: count[storage] for storage in (*graph.reads[op], *graph.writes[op])}
        for storage in graph.writes[op]:
            count[storage] += 1
    return met
