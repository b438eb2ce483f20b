"""The list of plans as a file: versioned JSON with a checksum, in which each plan is as `planner.plan` saves it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from planner import json_fields
from planner.errors import StowageError
from planner.graph import Graph, fingerprint
from planner.json_fields import DamageError, Envelope
from planner.plan import SwapPlan, plan_from_json, plan_to_json
from widgets.session.state.plan_list import ListedPlan
from widgets.session.state.session_state import problems_of

_ENVELOPE = Envelope("list of plans", "stowage-plans", 1, "save the list again", frozenset({"graph", "plans"}))


@dataclass(frozen=True, eq=False)
class SavedPlan:
    """A plan of a file.

    Args:
        plan: a valid plan of the step.
        name, note: the user's words, `""` for none.
    """

    plan: SwapPlan
    name: str
    note: str


def plans_to_json(graph: Graph, plans: Sequence[ListedPlan]) -> str:
    """The list as JSON text.

    Raises:
        StowageError: the name of a machine or method is too long to be saved.
    """
    rows = [{"name": one.name, "note": one.note, "plan": json.loads(plan_to_json(one.plan))} for one in plans]
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
            json_fields.same_names(row, {"name", "note", "plan"}, "plans")
        words = [(json_fields.text(row["name"], "name"), json_fields.text(row["note"], "note")) for row in rows]
    except DamageError as error:
        raise StowageError(f"this list of plans is damaged: {error}; save the list again") from error
    if of != fingerprint(graph):
        raise StowageError(f"these plans are not of {graph.name}: open the step or graph that they were made for")
    return [SavedPlan(_read(row["plan"], graph), *named) for row, named in zip(rows, words, strict=True)]


def _read(fields: Any, graph: Graph) -> SwapPlan:
    plan = plan_from_json(json.dumps(fields))
    if plan.graph != fingerprint(graph):
        raise StowageError(f"a plan of this list is not of {graph.name}: save the list again")
    if problems := problems_of(plan, graph):
        raise StowageError(f"a plan of this list is not valid: {problems[0].rstrip('.')}; save the list again")
    return plan
