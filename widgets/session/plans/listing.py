"""The list of plans: go back to one, undo and redo what was shown, write notes, compare two, save and load the list."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from planner.errors import StowageError
from planner.files import encoded, read_parsed, write_text
from planner.graph import Graph
from planner.plan import PlanComparison, SwapPlan, compare_plans
from planner.units import several
from widgets.messages import MessageKind, difference_message, export_message, notice_message
from widgets.session.partition import worker_views
from widgets.session.plans import loading
from widgets.session.plans.plan_file import plans_from_json, plans_to_json
from widgets.session.state.feature import Feature
from widgets.session.state.jobs import Job
from widgets.session.state.plan_list import PlanView
from widgets.session.state.plan_table import PlanTable
from widgets.session.state.saved_plan import SavedPlan
from widgets.session.state.session_state import SessionState, sentence_of
from widgets.session.tasks import planning
from widgets.session.tasks.capturing import graph_of_plan, settle

_UNDO, _REDO = -1, 1


def table(session_state: SessionState) -> PlanTable:
    """The list now."""
    with session_state.message_bus.lock:
        return session_state.plan_list.table(session_state.plan)


def show(session_state: SessionState, plan: int | str) -> int:
    """Show a plan of the list, given by number or name, with its machine and its budget; returns its number.

    Raises:
        StowageError: there is no such plan, or the session is closed.
    """
    with session_state.message_bus.lock:
        session_state.check_open()
        listed = session_state.plan_list.find(plan)
        _show(session_state, PlanView(listed.number, listed.plan.budget_bytes, False, None))
        return listed.number


def show_other(session_state: SessionState, plan: SwapPlan) -> None:
    """List a plan of the step, unless it is in the list, and show it with its machine and its budget.

    Raises:
        StowageError: it is not a plan, or not a valid one of this step, its machine is not known, or the session is
            closed.
    """
    if not isinstance(plan, SwapPlan):
        raise StowageError(
            f"plan must be a SwapPlan of this step, got {type(plan).__name__}; to show a plan of the list, call "
            "show_plan with its number, and to plan anew, set budget or machine, or call start_search"
        )
    graph_of_plan(_graph(session_state), plan)
    loading.add(session_state, [SavedPlan(plan)])
    with session_state.message_bus.lock:
        listed = session_state.plan_list.find_alike(plan)
        assert listed is not None
        _show(session_state, PlanView(listed.number, plan.budget_bytes, False, None))


def step(session_state: SessionState, by: int) -> int:
    """Show what was shown before (-1) or, after that, what came next (1); returns the number of the plan.

    Raises:
        StowageError: nothing was, or the session is closed.
    """
    with session_state.message_bus.lock:
        session_state.check_open()
        listed = session_state.plan_list
        # where no plan is shown, the one before is the last that was
        view = listed.view if by < 0 and session_state.without_plan else listed.step(by)
        if view is None:
            raise StowageError("no other plan was shown before this one" if by < 0 else "nothing was undone")
        _show(session_state, view)
        return view.number


def write(session_state: SessionState, plan: int | str, name: str | None = None, note: str | None = None) -> None:
    """Set the name or the note of a plan.

    Raises:
        StowageError: there is no such plan, the text is too long, or the session is closed.
    """
    with session_state.message_bus.lock:
        session_state.check_open()
        session_state.plan_list.write(plan, name, note)
        session_state.message_bus.publish(session_state.plans_words())


def compare(session_state: SessionState, first: int | str, second: int | str) -> PlanComparison:
    """Compare two plans of the list, given by number or name.

    Raises:
        StowageError: there is no such plan, or the two provide for different scratch memory.
    """
    with session_state.message_bus.lock:
        one, other = session_state.plan_list.find(first).plan, session_state.plan_list.find(second).plan
    if one.workspaces != other.workspaces:
        raise StowageError(
            f"plans {first} and {second} provide for different scratch memory, so they are not compared; "
            "choose two of one machine"
        )
    return compare_plans(_graph(session_state).with_workspaces(dict(one.workspaces)), one, other)


def save(session_state: SessionState, path: str | Path) -> None:
    """Save the list as a file.

    Raises:
        StowageError: the file cannot be written; an existing one is left unchanged.
    """
    write_text(path, _text(session_state))


def load(session_state: SessionState, path: str | Path) -> int:
    """Add the plans of a file to the list, but those that are there already; returns how many were new.

    Raises:
        StowageError: the file cannot be read, is of another step, holds a plan that is not valid, or one for a machine
            that is not known; then the list is as it was.
    """
    graph = _graph(session_state)
    return loading.add(session_state, read_parsed(path, lambda text: plans_from_json(text, graph)))


def _show(session_state: SessionState, view: PlanView) -> None:
    listed = session_state.plan_list.find(view.number)
    plan_cache = listed.plan_cache
    worker_views.show(session_state, None)
    session_state.jobs.drop("plan", "search", "sweep", "machine")
    planning.drop_search(session_state)
    session_state.budget, session_state.follows_device = view.budget_bytes, view.follows_device
    loading.allow(plan_cache, listed.plan)
    sent = session_state.message_bus.latest("machine")
    reaches = sent is not None and view.budget_bytes <= sent.content["slider_bytes"]
    if session_state.feasibility is not plan_cache.feasibility or not reaches:
        settle(session_state, plan_cache)
    planning.begin(session_state, replace(listed.plan, budget_bytes=view.budget_bytes))
    session_state.chosen = True


def _text(session_state: SessionState) -> str:
    graph = _graph(session_state)
    with session_state.message_bus.lock:
        return plans_to_json(graph, session_state.plan_list.plans)


def _graph(session_state: SessionState) -> Graph:
    if session_state.graph is None:
        raise StowageError("there is no plan yet: wait until the step is captured")
    return session_state.graph


def _compare(session_state: SessionState, wanted: Mapping[str, Any]) -> None:
    if wanted["first"] is None:
        session_state.message_bus.publish(difference_message(0, 0, None))
        return
    first, second = int(wanted["first"]), int(wanted["second"])

    def work(job: Job) -> None:
        try:
            session_state.report(job, difference_message(first, second, compare(session_state, first, second)))
        except Exception as error:
            session_state.report(job, notice_message(sentence_of(error)))

    session_state.jobs.start("compare plans", work)


def _export(session_state: SessionState, wanted: Mapping[str, Any]) -> None:
    filename = re.sub(r"[^A-Za-z0-9_-]+", "-", _graph(session_state).name[:60]).strip("-") or "step"
    data = encoded(_text(session_state))
    session_state.message_bus.publish(
        export_message(f"{filename}.plans.json", "application/json", data, wanted.get("view")),
        notice_message(f"Saved {filename}.plans.json."),
    )


def _load(session_state: SessionState, wanted: Mapping[str, Any]) -> None:
    graph, text = _graph(session_state), str(wanted["text"])

    def work(job: Job) -> None:
        try:
            count = loading.add(session_state, plans_from_json(text, graph))
            verb = "was" if count == 1 else "were"
            session_state.report(job, notice_message(f"{several(count, 'plan')} {verb} added to the list."))
        except Exception as error:
            session_state.report(job, notice_message(sentence_of(error)))

    session_state.jobs.start("load plans", work)


def _write(session_state: SessionState, wanted: Mapping[str, Any]) -> None:
    write(session_state, int(wanted["plan"]), wanted.get("name"), wanted.get("note"))


FEATURE = Feature[None](
    "plans",
    kinds=(MessageKind("plans"), MessageKind("plan_difference")),
    requests={
        "show_plan": lambda session_state, wanted: show(session_state, int(wanted["plan"])),
        "undo": lambda session_state, _: step(session_state, _UNDO),
        "redo": lambda session_state, _: step(session_state, _REDO),
        "write_plan": _write,
        "compare_plans": _compare,
        "save_plans": _export,
        "load_plans": _load,
    },
)
