"""Saves searches to files and loads them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from planner import json_fields
from planner.errors import StowageError
from planner.files import read_text, write_text
from planner.graph import Graph, fingerprint
from planner.json_fields import Envelope
from planner.machine import Machine
from planner.plan import SwapPlan, plan_from_json, plan_to_json, require_each_op_once, validate
from planner.progress import Progress
from planner.swap.baselines.registry import BASELINES
from planner.swap.methods import checkpoint_validation as valid
from planner.swap.methods.preference import rank_of
from planner.swap.problem.problem import Problem, Seconds
from planner.swap.search.driver import METHODS, Point, SearchState
from planner.swap.search.family import Family
from planner.swap.search.inputs import make_problem
from planner.swap.simulate.streams import simulate

_ENVELOPE = Envelope("search", "stowage-search", 5, "begin a new search")


def save_search(search_state: SearchState, path: str | Path) -> None:
    """Save the state of a search.

    Raises:
        StowageError: the file cannot be written; an existing one is left unchanged.
    """
    problem, plans = search_state.problem, _plans(search_state)
    body = {
        "graph": fingerprint(problem.graph),
        "machine": problem.machine.name,
        "times": _times(problem),
        "budget": problem.budget,
        "host_budget": search_state.host_budget,
        "method": search_state.method,
        "seed": search_state.seed,
        "evaluations": search_state.evaluations,
        "seconds": search_state.seconds,
        "least_host": search_state.least_host,
        "baselines": search_state.baselines,
        "history": [
            [point.seconds, point.evaluations, point.step_seconds, point.method] for point in search_state.history
        ],
        "recompute_limit": search_state.recompute_limit if np.isfinite(search_state.recompute_limit) else None,
        "plans": [json.loads(plan_to_json(plan)) for plan in plans],
        "best": _place(plans, search_state.best),
        "families": [_family_data(family, plans) for family in search_state.families],
    }
    write_text(path, _ENVELOPE.seal(body))


def read_search(
    path: str | Path, graph: Graph, machine: Machine, seconds: Seconds | None, report: Progress
) -> SearchState:
    """Load the state of a search.

    Args:
        path: the file.
        graph, machine, seconds: as when the search was started.
        report: called with the share done.

    Raises:
        StowageError: the file is damaged, or from a search for another graph, machine or other op times.
    """
    report(0.0, "reading the search")
    data = _ENVELOPE.open(read_text(path), path)
    try:
        return _restored(data, path, graph, machine, seconds, report)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise StowageError(f"{path} is damaged: it holds what no search has written; begin a new search") from error


def _restored(
    data: dict[str, Any], path: str | Path, graph: Graph, machine: Machine, seconds: Seconds | None, report: Progress
) -> SearchState:
    """The saved search state; any built-in exception means that the data is not one."""
    if data["graph"] != fingerprint(graph):
        raise StowageError(f"{path} is a search for another graph; load it with that graph or begin a new search")
    if data["machine"] != machine.name:
        raise StowageError(f'{path} is a search for the machine "{data["machine"]}"; load it with that machine')
    if data["method"] not in [*METHODS]:
        raise ValueError("there is no such method")
    budget, host_budget = (
        json_fields.whole(data["budget"], "budget"),
        json_fields.whole_or_none(data["host_budget"], "budget"),
    )
    report(0.3, "laying out the graph")
    problem, _ = make_problem(graph, machine, budget, None, seconds)
    if data["times"] != _times(problem):
        raise StowageError(
            f"{path} is a search with other op times or workspaces; load it with those it was begun with"
        )
    search_state = SearchState(
        problem, host_budget, data["method"], json_fields.whole(data["seed"], "seed"),
        recompute_limit=valid.seconds(data["recompute_limit"]),
    )  # fmt: skip
    search_state.evaluations = valid.whole(data["evaluations"], 0, 1 << 60)
    search_state.seconds = valid.number(data["seconds"])
    search_state.least_host = valid.whole(data["least_host"], 0, 1 << 62)
    search_state.baselines = {
        name: None if time is None else valid.number(time) for name, time in data["baselines"].items()
    }
    search_state.history = [
        Point(
            valid.number(begun),
            valid.whole(count, 0, 1 << 60),
            valid.number(step),
            json_fields.text(name, "name"),
        )
        for begun, count, step, name in data["history"]
    ]
    report(0.6, "validating the best plans")
    plans = [_plan(one, path, problem, host_budget) for one in data["plans"]]
    search_state.best = _at(plans, data["best"])
    if not search_state.baselines.keys() <= BASELINES.keys():
        raise ValueError("there is no such baseline")
    for family, saved in zip(search_state.families, data["families"], strict=True):
        _restore_family(family, saved, plans)
    ranks = [rank_of(plan, graph) for plan in plans]
    if ranks and (search_state.best is None or rank_of(search_state.best, graph) != min(ranks)):
        raise ValueError("the best plan is not the best of the families")
    return search_state


def _plans(search_state: SearchState) -> list[SwapPlan]:
    """The best plans of all families, each once."""
    distinct = {id(family.best): family.best for family in search_state.families if family.best is not None}
    return list(distinct.values())


def _place(plans: list[SwapPlan], plan: SwapPlan | None) -> int | None:
    """Where a plan stands among them; None for None."""
    return None if plan is None else next(place for place, one in enumerate(plans) if one is plan)


def _at(plans: list[SwapPlan], place: Any) -> SwapPlan | None:
    """The plan at a place.

    Raises:
        ValueError: there is no such place.
    """
    return None if place is None else plans[valid.whole(place, 0, len(plans) - 1)]


def _family_data(family: Family, plans: list[SwapPlan]) -> dict[str, Any]:
    return {
        "best": _place(plans, family.best),
        "methods": len(family.methods),
        "stage": family.stage,
        "share": family.share,
        "turns": family.turns,
        "estimate": family.estimate if np.isfinite(family.estimate) else None,
        "method_state": None if family.method is None else family.method.state_dict(),
    }


def _restore_family(family: Family, data: dict[str, Any], plans: list[SwapPlan]) -> None:
    """Continue a family from what was saved of it.

    Raises:
        StowageError: its best plan is not of its kind.
    """
    best = _at(plans, data["best"])
    if best is not None:
        if not family.recomputes:
            require_each_op_once(family.problem.graph, best, "a search for swaps")
        if not family.improved_by(best):
            raise ValueError("the best plan of a family is not of its kind")
    family.best = best
    if data["methods"] != len(family.methods):
        family.spare_the_host()
    if data["methods"] != len(family.methods):
        raise ValueError("a family has no such methods")
    family.stage = valid.whole(data["stage"], 0, len(family.methods))
    family.share, family.turns = valid.number(data["share"], 0.0, 1.0), valid.whole(data["turns"], 0, 1 << 60)
    family.estimate = valid.seconds(data["estimate"])
    if data["method_state"] is not None:
        family.method = family.make_method()
        family.method.load_state_dict(data["method_state"])


def _plan(data: Any, path: str | Path, problem: Problem, host_budget: int | None) -> SwapPlan:
    """A plan of a saved search, with its times predicted anew."""
    plan = plan_from_json(json.dumps(data))
    if problems := validate(plan, problem.graph):
        raise StowageError(f"the plan in {path} is wrong: {problems[0]}; begin a new search")
    if (plan.budget_bytes, plan.host_budget_bytes) != (problem.budget, host_budget):
        raise StowageError(f"the plan in {path} is for another budget; begin a new search")
    return replace(plan, predicted=simulate(plan, problem.graph, problem.machine, problem.seconds))


def _times(problem: Problem) -> str:
    """A hash of the times of all ops, the link model and all sizes, those of scratch memory included."""
    copies = np.array(problem.link, np.float64)
    outside = f"{problem.graph.outside_bytes}".encode() if problem.graph.outside_bytes else b""
    parts = (problem.seconds.tobytes(), problem.sizes.tobytes(), copies.tobytes(), outside)
    return hashlib.sha256(b"".join(parts)).hexdigest()[:32]
