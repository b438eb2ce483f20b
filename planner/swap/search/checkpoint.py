"""Searches as files."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from planner.errors import StowageError
from planner.files import read_text, write_text
from planner.graph import Graph, fingerprint
from planner.machine.types import Machine
from planner.plan import plan_from_json, plan_to_json, strict, validate
from planner.swap.baselines.resident import BASELINES
from planner.swap.methods import recalled
from planner.swap.problem.problem import Problem, Seconds
from planner.swap.search.driver import METHODS, Course, Point
from planner.swap.search.inputs import problem_of
from planner.swap.simulate.streams import simulate

VERSION = 2
_FORMAT = "stowage-search"


def write_course(course: Course, path: str | Path) -> None:
    """Write down where a search is.

    Raises:
        StowageError: the file cannot be written; an earlier one stays as it was.
    """
    problem = course.problem
    body = {
        "format": _FORMAT,
        "version": VERSION,
        "graph": fingerprint(problem.graph),
        "machine": problem.machine.name,
        "times": _times(problem),
        "budget": problem.budget,
        "host_budget": course.host_budget,
        "method": course.method,
        "seed": course.seed,
        "stage": course.stage,
        "evaluations": course.evaluations,
        "seconds": course.seconds,
        "least_host": course.least_host,
        "baselines": course.baselines,
        "history": [[point.seconds, point.evaluations, point.step_seconds, point.method] for point in course.history],
        "best": None if course.best is None else json.loads(plan_to_json(course.best)),
        "memory": None if course.at_work is None else course.at_work.memory(),
    }
    write_text(path, json.dumps({"checksum": _checksum(body), **body}, separators=(",", ":")))


def read_course(path: str | Path, graph: Graph, machine: Machine, seconds: Seconds | None) -> Course:
    """Read where a search was.

    Args:
        path: the file.
        graph, machine, seconds: as when the search was begun.

    Raises:
        StowageError: the file is damaged, or from a search for another graph, machine or other op times.
    """
    data = _body(path)
    try:
        return _course(data, path, graph, machine, seconds)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise StowageError(f"{path} is damaged: it holds what no search has written; begin a new search") from error


def _course(data: dict[str, Any], path: str | Path, graph: Graph, machine: Machine, seconds: Seconds | None) -> Course:
    """The search that was written down; any error of Python's means that none was."""
    if data["graph"] != fingerprint(graph):
        raise StowageError(f"{path} is a search for another graph; load it with that graph or begin a new search")
    if data["machine"] != machine.name:
        raise StowageError(f'{path} is a search for the machine "{data["machine"]}"; load it with that machine')
    budget, host_budget = strict.whole(data["budget"], "budget"), strict.whole_or_none(data["host_budget"], "budget")
    problem, _ = problem_of(graph, machine, budget, None, seconds)
    if data["times"] != _times(problem):
        raise StowageError(
            f"{path} is a search with other op times or workspaces; load it with those it was begun with"
        )
    course = Course(problem, host_budget, data["method"], strict.whole(data["seed"], "seed"))
    course.stage = strict.whole(data["stage"], "stage")
    course.evaluations = recalled.whole(data["evaluations"], 0, 1 << 60)
    course.seconds = recalled.number(data["seconds"])
    course.least_host = recalled.whole(data["least_host"], 0, 1 << 62)
    course.baselines = {
        name: None if time is None else recalled.number(time) for name, time in data["baselines"].items()
    }
    course.history = [
        Point(
            recalled.number(begun), recalled.whole(count, 0, 1 << 60), recalled.number(step), strict.text(name, "name")
        )
        for begun, count, step, name in data["history"]
    ]
    if data["best"] is not None:
        course.best = plan_from_json(json.dumps(data["best"]))
        if problems := validate(course.best, graph):
            raise StowageError(f"the plan in {path} is wrong: {problems[0]}; begin a new search")
        if (course.best.budget_bytes, course.best.host_budget_bytes) != (budget, host_budget):
            raise StowageError(f"the plan in {path} is for another budget; begin a new search")
        course.best = replace(course.best, predicted=simulate(course.best, graph, machine, problem.seconds))
    if course.stage:
        course.spare_the_host()
    if not (0 <= course.stage <= len(course.methods) and course.baselines.keys() <= BASELINES.keys()):
        raise ValueError("there is no such stage of a search, or no such baseline")
    if data["memory"] is not None and course.stage < len(course.methods):
        course.at_work = course.methods[course.stage](course.setting())
        course.at_work.recall(data["memory"])
    return course


def _body(path: str | Path) -> dict[str, Any]:
    try:
        data = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise StowageError(f"{path} is not a search: the JSON breaks off or is malformed; begin a new one") from error
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise StowageError(f'{path} is not a search: the JSON lacks "format": "{_FORMAT}"; give the file of a search')
    if data.get("version") != VERSION:
        raise StowageError(
            f"{path} has version {str(data.get('version'))[:40]!r} and this program reads version {VERSION}; "
            f"begin a new search"
        )
    if data.pop("checksum", None) != _checksum(data) or data.get("method") not in [*METHODS]:
        raise StowageError(f"{path} is damaged: it was changed after it was saved; begin a new search")
    return data


def _checksum(body: dict[str, Any]) -> str:
    text = json.dumps(body, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _times(problem: Problem) -> str:
    """A short name for how long all ops run, what the link does and how large all storages are, workspaces included."""
    sizes = np.array([storage.bytes for storage in problem.graph.storages], np.int64)
    copies = np.array(problem.copies, np.float64)
    return hashlib.sha256(problem.seconds.tobytes() + sizes.tobytes() + copies.tobytes()).hexdigest()[:32]
