"""Saves searches for partitions to files and loads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from planner import json_fields
from planner.cancel import CancelToken
from planner.errors import StowageError
from planner.files import read_text, write_text
from planner.graph import Graph, fingerprint
from planner.json_fields import Envelope
from planner.machine import Machine
from planner.partition.handle.driver import PartitionPoint, PartitionSearchState
from planner.partition.handle.inputs import make_partition_problem
from planner.partition.handle.problem import PartitionTrial, Solution
from planner.partition.handle.trials import Outcome

_ENVELOPE = Envelope("search for partitions", "stowage-partition-search", 1, "begin a new search")


def save_partition_search(search_state: PartitionSearchState, path: str | Path) -> None:
    """Save the state of a search for partitions.

    What every trial gave is saved, and which of them was best; that one is solved again when the search is loaded.

    Raises:
        StowageError: the file cannot be written; an existing one is left unchanged.
    """
    problem, best = search_state.problem, search_state.solution
    body = {
        "graph": fingerprint(problem.graph),
        "workers": problem.workers,
        "machine": None if problem.machine is None else problem.machine.name,
        "memory": problem.memory,
        "pins": {name: value if isinstance(value, int | str) else list(value) for name, value in problem.pins.items()},
        "seed": search_state.seed,
        "seconds": search_state.seconds,
        "first": search_state.first,
        "baselines": search_state.baselines,
        "outcomes": [[each.cost, each.peak_bytes, each.bound] for each in search_state.outcomes],
        "history": [
            [point.seconds, point.evaluations, point.bytes_moved, point.peak_bytes, point.method]
            for point in search_state.history
        ],
        "best": None if best is None else [list(best.trial.mesh), best.trial.solver, best.trial.price],
    }
    write_text(path, _ENVELOPE.seal(body))


def read_partition_search(
    path: str | Path, graph: Graph, machine: Machine | None, stop: CancelToken
) -> PartitionSearchState:
    """Load the state of a search for partitions.

    Args:
        path: the file.
        graph, machine: as when the search was started.
        stop: interrupts the search.

    Raises:
        StowageError: the file is damaged, or from a search for another graph or machine.
    """
    data = _ENVELOPE.open(read_text(path), path)
    if data.get("graph") != fingerprint(graph):
        raise StowageError(f"{path} is a search for another graph; load it with that graph or begin a new search")
    if data.get("machine") != (None if machine is None else machine.name):
        if data.get("machine") is None:
            raise StowageError(f"{path} was searched without a machine; leave `machine` out")
        raise StowageError(f'{path} is a search for the machine "{data["machine"]}"; load it with that machine')
    try:
        return _state(data, graph, machine, stop)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise StowageError(f"{path} is damaged: it holds what no search has written; begin a new search") from error


def _state(data: dict[str, Any], graph: Graph, machine: Machine | None, stop: CancelToken) -> PartitionSearchState:
    """The saved search state; any built-in exception means that the data is not one."""
    pins = {
        json_fields.text(name, "pin"): value if isinstance(value, int | str) else tuple(value)
        for name, value in data["pins"].items()
    }
    memory = json_fields.whole_or_none(data["memory"], "memory")
    problem = make_partition_problem(graph, json_fields.whole(data["workers"], "workers"), machine, memory, pins, stop)
    outcomes = [
        Outcome(
            None if moved is None else _number(moved),
            json_fields.whole(peak, "peak"),
            None if bound is None else _number(bound),
        )
        for moved, peak, bound in data["outcomes"]
    ]
    best: Solution | None = None
    if data["best"] is not None:
        mesh, solver, price = data["best"]
        best = problem.solve(PartitionTrial(tuple(mesh), solver, None if price is None else _number(price)))
    search_state = PartitionSearchState(problem, json_fields.whole(data["seed"], "seed"), stop, outcomes, best)
    search_state.seconds = _number(data["seconds"])
    if data["first"] is not None:
        moved, seconds = data["first"]
        search_state.first = _number(moved), _number(seconds)
    search_state.baselines = {
        json_fields.text(name, "baseline"): None if moved is None else _number(moved)
        for name, moved in data["baselines"].items()
    }
    search_state.history = [
        PartitionPoint(
            _number(seconds), json_fields.whole(count, "count"), _number(moved),
            json_fields.whole(peak, "peak"), json_fields.text(method, "method"),
        )
        for seconds, count, moved, peak, method in data["history"]
    ]  # fmt: skip
    return search_state


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise ValueError(f"{value!r} is no amount")
    return value
