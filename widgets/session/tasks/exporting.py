"""Exports of a session: files for the browser to save."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from planner.errors import StowageError
from planner.files import encoded
from planner.graph import Graph
from planner.memory import buffers_to_csv, plan_buffers
from planner.plan import SwapPlan, plan_to_json, trace_json
from widgets.fallback import page_text
from widgets.messages import MessageKind, export_message, notice_message
from widgets.session.state.feature import Feature
from widgets.session.state.jobs import Job
from widgets.session.state.session_state import SessionState, sentence_of

#: What of a step a view shows, for a page that opens with it.
Shown = Mapping[str, Any] | None

#: A trace has at most this many steps of a run, the last ones.
_STEPS = 10


@dataclass(frozen=True)
class Format:
    """A file format.

    Args:
        ending: suffix of the file name, after the model's name.
        mime: MIME type.
        make: returns the text, given what of it a view shows; may raise a StowageError that says what is missing.
    """

    ending: str
    mime: str
    make: Callable[[SessionState, Shown], str]


def begin(session_state: SessionState, name: str, view: Any = None, shown: Shown = None) -> None:
    """Make a file in a thread, and send it.

    Args:
        session_state: the session state.
        name: key of the format in `FORMATS`.
        view: id of the view that requested it.
        shown: what it shows; None for the whole.

    Raises:
        StowageError: there is no such format, no graph yet, or the session is closed.
    """
    session_state.check_open()
    if name not in FORMATS:
        raise StowageError(f"there is no export to {name}; choose one of {', '.join(FORMATS)}")
    if session_state.feasibility is None:
        raise StowageError("there is nothing to export yet: wait until the step is captured")
    kind = f"export {name} {view!r}"  # several exports may run at a time
    session_state.jobs.start(kind, lambda job: _export(session_state, job, FORMATS[name], view, shown))


def _export(session_state: SessionState, job: Job, wanted: Format, view: Any, shown: Shown) -> None:
    graph = session_state.graph
    assert graph is not None
    try:
        data = encoded(wanted.make(session_state, shown))
    except Exception as error:
        session_state.report(job, notice_message(sentence_of(error)))
        return
    which = () if session_state.source.step is not None else session_state.source.phrases  # such as a worker's number
    filename = re.sub(r"[^A-Za-z0-9_-]+", "-", " ".join([graph.name[:60], *which])).strip("-") or "step"
    session_state.report(
        job, export_message(filename + wanted.ending, wanted.mime, data, view),
        notice_message(f"Saved {filename}{wanted.ending}."),
    )  # fmt: skip


def _drawn(session_state: SessionState) -> tuple[Graph, SwapPlan]:
    if session_state.graph is None or session_state.plan is None:
        raise StowageError("there is no plan to export yet: search for one, or raise the budget")
    return session_state.graph, session_state.plan


def _plan(session_state: SessionState, _shown: Shown) -> str:
    return plan_to_json(_drawn(session_state)[1])


def _buffers(session_state: SessionState, _shown: Shown) -> str:
    return buffers_to_csv(plan_buffers(*_drawn(session_state)))


def _trace(session_state: SessionState, _shown: Shown) -> str:
    return trace_json(*_drawn(session_state))


def _run_trace(session_state: SessionState, _shown: Shown) -> str:
    run = session_state.run
    if session_state.graph is None or run is None or run.plan is None or not run.timelines:
        raise StowageError("there is no run to export yet: run a step first")
    return trace_json(session_state.graph, run.plan, run.timelines[-_STEPS:])


def _page(session_state: SessionState, shown: Shown) -> str:
    return page_text(session_state.message_bus.all(), shown=shown)


FORMATS: Mapping[str, Format] = {
    "html": Format(".html", "text/html", _page),
    "plan": Format(".plan.json", "application/json", _plan),
    "csv": Format(".buffers.csv", "text/csv", _buffers),
    "trace": Format(".trace.json", "application/json", _trace),
    "run_trace": Format(".run-trace.json", "application/json", _run_trace),
}


def _request(session_state: SessionState, wanted: Mapping[str, Any]) -> None:
    shown = wanted.get("shown")
    begin(session_state, str(wanted.get("format")), wanted.get("view"), shown if isinstance(shown, dict) else None)


FEATURE = Feature[None](
    "export",
    kinds=(MessageKind("notice", transient=True), MessageKind("exported", transient=True)),
    requests={"export": _request},
)
