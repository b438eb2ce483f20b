"""The list of plans as a file: versioned JSON with a checksum, in which each plan is as `planner.plan` saves it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from planner import json_fields
from planner.errors import StowageError
from planner.graph import Graph, fingerprint
from planner.json_fields import DamageError, Envelope
from planner.plan import SwapPlan, plan_from_json, plan_to_json
from planner.swap import METHODS
from widgets.session.state.plan_list import ListedPlan
from widgets.session.state.saved_plan import SavedPlan
from widgets.session.state.session_state import problems_of

_ENVELOPE = Envelope("list of plans", "stowage-plans", 2, "save the list again", frozenset({"graph", "plans"}))


def plans_to_json(graph: Graph, plans: Sequence[ListedPlan]) -> str:
    """The list as JSON text.

    Raises:
        StowageError: the name of a machine or method is too long to be saved.
    """
    rows = [
        {"name": one.name, "note": one.note, "searched": one.searched, "plan": json.loads(plan_to_json(one.plan))}
        for one in plans
    ]
    return _ENVELOPE.seal({"graph": fingerprint(graph), "plans": rows})


def plans_from_json(text: str, graph: Graph) -> list[SavedPlan]:
    """Read a list of plans of a step.

    Args:
        text: the JSON text.
        graph: the step.

    Raises:
        StowageError: the text is not such a list or was changed, it is of another step, or a plan is not valid.
    """
    data = _ENVELOPE.open(text)
    try:
        of = json_fields.text(data["graph"], "graph")
        rows = json_fields.objects(data["plans"], "plans")
        for row in rows:
            json_fields.same_names(row, {"name", "note", "searched", "plan"}, "plans")
        words = [
            (json_fields.text(row["name"], "name"), json_fields.text(row["note"], "note"), _method(row["searched"]))
            for row in rows
        ]
    except DamageError as error:
        raise StowageError(f"this list of plans is damaged: {error}; save the list again") from error
    if of != fingerprint(graph):
        raise StowageError(f"these plans are not of {graph.name}: open the step or graph that they were made for")
    return [SavedPlan(_read(row["plan"], graph), *named) for row, named in zip(rows, words, strict=True)]


def _method(value: Any) -> str | None:
    method = None if value is None else json_fields.text(value, "searched")
    if method is not None and method not in METHODS:
        raise DamageError(f"searched holds {method[:40]!r}, which is not a search method")
    return method


def _read(fields: Any, graph: Graph) -> SwapPlan:
    plan = plan_from_json(json.dumps(fields))
    if plan.graph != fingerprint(graph):
        raise StowageError(f"a plan of this list is not of {graph.name}: save the list again")
    if problems := problems_of(plan, graph):
        raise StowageError(f"a plan of this list is not valid: {problems[0].rstrip('.')}; save the list again")
    return plan
