"""Show what one worker of the partition does: its graph, planned as a step of its own, in place of the whole step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from planner.cancel import Cancelled
from planner.errors import StowageError
from planner.graph import Graph, Kind, fingerprint
from planner.machine import Machine
from planner.plan import SwapPlan
from planner.progress import Progress
from widgets.messages import Message, MessageKind, changed, kind_of_worker, of_worker, worker_at_rest, worker_message
from widgets.session.partition import partitioning
from widgets.session.partition.worker_state import TOLD, WorkerView, WorkerViews, leave, rest
from widgets.session.state.feature import Feature, carry_out, close_features
from widgets.session.state.jobs import Job
from widgets.session.state.message_bus import MessageBus
from widgets.session.state.session_state import SessionState, sentence_of
from widgets.session.state.source import Source
from widgets.session.tasks import capturing, comparing, exporting, planning, searching, sweeping

if TYPE_CHECKING:
    from planner.partition import PartitionPlan

_KINDS = {
    kind.name: kind
    for feature in (capturing, sweeping, planning, searching, comparing)
    for kind in feature.FEATURE.kinds
}
_PASSED_ON = frozenset(kind.name for kind in exporting.FEATURE.kinds)
_LOOK_SECONDS = 0.1
#: Workers that are kept so that going back to one is free; each keeps its graph and plans.
_MOST_KEPT = 8
#: The share of the work after which the graph of a worker is there, and only a plan is missing.
_PLANNING = 0.8


def show(session_state: SessionState, worker: int | None) -> None:
    """Show what one worker of the partition does, or the whole step again.

    Args:
        session_state: the session state.
        worker: which worker of the partition that is shown; None for the whole step.

    Raises:
        StowageError: there is no partition, or no such worker, or the session is closed.
    """
    with session_state.message_bus.lock:
        session_state.check_open()
        if worker is None:
            leave(session_state, _views(session_state))
            return
        partition = partitioning.shown(session_state)
        if partition is None:
            raise StowageError("there is no partition whose workers could be shown; search for one first")
        if not 0 <= worker < partition.workers:
            raise StowageError(f"there is no worker {worker}: workers are numbered 0 to {partition.workers - 1}")
        session_state.jobs.drop("worker")
        view = _views(session_state).find(partition, worker)
        if view is not None:
            _show(session_state, view)
            return
        session_state.message_bus.publish(worker_message("making", worker, partition.workers, doing="starting"))
        session_state.jobs.start("worker", lambda job: _make_and_show(session_state, job, partition, worker))


def cancel(session_state: SessionState) -> None:
    """Stop planning a worker, and the work on the one that is shown."""
    with session_state.message_bus.lock:
        views = _views(session_state)
        if session_state.jobs.running("worker"):
            leave(session_state, views, "cancelled", "Cancelled; this is the whole step.")
            session_state.jobs.drop("worker")
        elif views.shown is not None:
            rest(views.shown.session_state)


def _make_and_show(session_state: SessionState, job: Job, partition: PartitionPlan, worker: int) -> None:
    view = None
    try:
        view = _made(session_state, job, partition, worker)
        _wait_for_plan(session_state, job, view)
        with session_state.message_bus.lock:
            if job.current and not job.stop.requested:
                _keep(session_state, view)
                _show(session_state, view)
                view = None
    except Cancelled:
        pass
    except Exception as error:
        with session_state.message_bus.lock:
            if job.current and not job.stop.requested:
                leave(session_state, _views(session_state), "failed", sentence_of(error))
    if view is not None:
        view.close()
    session_state.on_idle(session_state)


def _made(session_state: SessionState, job: Job, partition: PartitionPlan, worker: int) -> WorkerView:
    """A worker whose first plan is being made; one that does the same as another shares what was planned for that."""
    from planner.partition import worker_graph

    feasibility = session_state.feasibility
    assert feasibility is not None

    def told(share: float, doing: str) -> None:
        job.stop.check()
        _tell_making(session_state, job, partition, worker, _PLANNING * share, doing)

    graph = worker_graph(partition, feasibility.graph, worker, progress=Progress(told))
    machine, budget = feasibility.machine, session_state.budget_bytes
    phrase = f"worker {worker} (of 0 to {partition.workers - 1})"
    source = Source(None, graph, _known_plan(session_state, graph, machine, budget), (phrase,))
    bus = MessageBus(session_state.message_bus.lock)
    own = SessionState(
        source, session_state.seed, machine, budget, sweeping.begin, close_features, session_state.device, bus
    )
    view = WorkerView(partition, worker, own, _parts(feasibility.graph, graph), (machine, budget))
    capturing.begin(own)
    return view


def _known_plan(session_state: SessionState, graph: Graph, machine: Machine, budget: int) -> SwapPlan | None:
    """The plan of a worker that does the same as another one."""
    with session_state.message_bus.lock:
        for view in _views(session_state).kept:
            other = view.session_state
            same = other.graph is not None and fingerprint(other.graph) == fingerprint(graph)
            if same and other.machine == machine and other.plan is not None and other.budget == budget:
                return other.plan
    return None


def _wait_for_plan(session_state: SessionState, job: Job, view: WorkerView) -> None:
    _tell_making(session_state, job, view.partition, view.worker, _PLANNING, "planning it")
    while not view.session_state.planned.wait(_LOOK_SECONDS):
        job.stop.check()
    if view.session_state.refusal is not None:
        raise view.session_state.refusal


def _tell_making(
    session_state: SessionState, job: Job, partition: PartitionPlan, worker: int, share: float, doing: str
) -> None:
    message = worker_message("making", worker, partition.workers, doing=doing, share=share)
    session_state.report(job, message)


def _parts(whole: Graph, graph: Graph) -> tuple[int, ...]:
    """By storage of the whole step, the worker's part of it: of what exists before the step, and of gradients.

    Other storages of the two graphs may have the same name and hold other values, for a worker also has those that it
    exchanges.
    """
    lasting = {each.name: each.id for each in graph.storages if each.persistent or each.kind is Kind.GRADIENT}
    return tuple(
        lasting.get(each.name, -1) if each.persistent or each.kind is Kind.GRADIENT else -1 for each in whole.storages
    )


def _keep(session_state: SessionState, view: WorkerView) -> None:
    views = _views(session_state)
    views.kept.append(view)
    for other in views.kept[:-_MOST_KEPT]:
        if other is not views.shown:
            views.kept.remove(other)
            other.close()


def _show(session_state: SessionState, view: WorkerView) -> None:
    """Pass on what is told about a worker, from now on."""
    views, own = _views(session_state), view.session_state
    assert session_state.feasibility is not None
    views.leave()
    before, view.planned_for = view.planned_for, (session_state.feasibility.machine, session_state.budget_bytes)
    if before[0] != view.planned_for[0]:
        capturing.change_machine(own, view.planned_for[0])
    if before != view.planned_for:
        planning.set_budget(own, view.planned_for[1])
    views.kept.remove(view)
    views.kept.append(view)
    bus = session_state.message_bus

    def pass_on(message: Message) -> None:
        if message.kind == "graph":  # a worker has a part of the samples, or all, and does not work on them alone
            bus.publish(of_worker(changed(message, samples=0)))
        elif message.kind in TOLD:
            bus.publish(of_worker(message))
        elif message.kind in _PASSED_ON:
            bus.publish(message)

    views.shown, views.stop = view, own.message_bus.listen(pass_on, replay=True)
    bus.publish(worker_message("shown", view.worker, view.partition.workers, storages=view.storages))
    own.has_viewers = session_state.has_viewers
    sweeping.begin(own)


def _in_worker(session_state: SessionState, wanted: Mapping[str, Any]) -> None:
    """Carry out a request about the worker that is shown."""
    shown = _views(session_state).shown
    if shown is None:
        raise StowageError("no worker is shown any more; choose one again")
    request = dict(wanted["request"])
    if "view" in wanted:
        request["view"] = wanted["view"]
    carry_out(shown.session_state, request)


def _views(session_state: SessionState) -> WorkerViews:
    return partitioning.FEATURE.of(session_state).views


def _close(session_state: SessionState) -> None:
    with session_state.message_bus.lock:
        views = _views(session_state)
        if views.stop is not None:
            views.stop()
        kept, views.kept, views.shown, views.stop = views.kept, [], None, None
    for view in kept:
        view.close()


FEATURE = Feature[None](
    "worker",
    kinds=(*(kind_of_worker(_KINDS[name]) for name in TOLD), MessageKind("worker", at_rest=worker_at_rest)),
    requests={
        "show_worker": lambda session_state, wanted: show(
            session_state, None if wanted["worker"] is None else int(wanted["worker"])
        ),
        "cancel_worker": lambda session_state, _: cancel(session_state),
        "in_worker": _in_worker,
    },
    jobs=("worker",),
    cancel=cancel,
    close=_close,
)
