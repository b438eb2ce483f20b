"""Capture a step, and work out what its graph needs on a machine."""

from __future__ import annotations

from planner.cancel import Cancelled
from planner.capture import capture
from planner.errors import StowageError
from planner.graph import Graph, fingerprint
from planner.machine import Machine, usable_bytes
from planner.plan import SwapPlan, predicted_op_seconds
from widgets.info import Feasibility, assess_feasibility
from widgets.messages import (  # fmt: skip
    MessageKind,
    compare_message,
    front_message,
    graph_message,
    loading_at_rest,
    machine_message,
    notice_message,
    refused_message,
    samples_message,
)
from widgets.session.state import machines
from widgets.session.state.feature import Feature, features
from widgets.session.state.jobs import Job
from widgets.session.state.plan_cache import PlanCache
from widgets.session.state.session_state import SessionState, problems_of, sentence_of
from widgets.session.tasks import planning
from widgets.session.tasks.capture_progress import Loading


def begin(session_state: SessionState) -> None:
    """Capture the step and set up planning, in a thread."""
    session_state.jobs.start("capture", lambda job: _begin(session_state, job))


def cancel(session_state: SessionState) -> None:
    """Cancel the capture."""
    with session_state.message_bus.lock:
        if session_state.jobs.cancel("capture"):
            _refuse(
                session_state,
                "Capture cancelled",
                StowageError("there is no graph; run the cell again to capture the step"),
            )


def change_machine(session_state: SessionState, name: str | Machine) -> None:
    """Plan for another machine, within the requested budget or, without one, within that machine's memory.

    The plans found for a machine are kept for when it is selected again.

    Raises:
        StowageError: there is no such machine, or the session is closed.
    """
    machines.check(name)
    with session_state.message_bus.lock:
        session_state.check_open()
        if session_state.feasibility is None:
            session_state.machine = name
            return
        session_state.jobs.drop("plan", "search", "sweep", "machine")
        planning.drop_search(session_state)
        session_state.planned.clear()
        label = machines.name_of(name)
        session_state.message_bus.publish(session_state.budget_words("planning", f"looking at {label}", machine=label))
        if session_state.jobs.start("machine", lambda job: _change(session_state, job, name)) is None:
            session_state.planned.set()  # the session is closed


def wait_for_machine(session_state: SessionState) -> None:
    """Wait until the machine that was last asked for is the one that is planned for, or was refused."""
    while (job := session_state.jobs.running_job("machine")) is not None:
        job.under_way.wait()


def _begin(session_state: SessionState, job: Job) -> None:
    loading, title = Loading(session_state, job), "This step cannot be captured"
    try:
        graph = session_state.source.graph
        if graph is None:
            assert session_state.source.step is not None
            with session_state.torch_context.entered():
                graph = capture(session_state.source.step, device=session_state.device, progress=loading.progress)
        loading.ops = len(graph.ops)
        title = "This step cannot be planned"
        loading.progress(0.9, "working out what the step needs")
        plan = session_state.source.plan
        if plan is not None:
            graph = graph_of_plan(graph, plan)
        while not _lay_out(session_state, job, loading, graph, plan):
            pass
    except Cancelled:
        pass
    except StowageError as error:
        _fail(session_state, job, title, error)
    except BaseException as error:  # a model may also call sys.exit()
        _fail(session_state, job, "The capture failed", StowageError(sentence_of(error)))
    finally:
        loading.end()


def _lay_out(session_state: SessionState, job: Job, loading: Loading, graph: Graph, plan: SwapPlan | None) -> bool:
    """Publish what was captured, and start planning; returns False if another machine was requested meanwhile."""
    asked = session_state.machine
    machine = machines.find(asked or (plan.machine if plan is not None else None))
    feasibility = assess_feasibility(graph, machine, None if plan is None else predicted_op_seconds(plan))
    message = graph_message(
        graph, feasibility.peak_bytes, session_state.source.phrases, session_state.source.step is not None
    )
    _first_budget(session_state, feasibility, plan)  # raises before any message is sent
    loading.progress(1.0, "done")
    with session_state.message_bus.lock:
        if not job.current or job.stop.requested:
            return True
        if session_state.machine is not asked:
            return False
        loading.end()
        session_state.graph = graph
        session_state.budget = _first_budget(session_state, feasibility, plan)
        session_state.message_bus.publish(message)
        settle(session_state, PlanCache(feasibility))
        for feature in features():
            session_state.message_bus.publish(*feature.first(session_state))
        session_state.settled.set()
        planning.begin(session_state, plan)
    return True


def _change(session_state: SessionState, job: Job, name: str | Machine) -> None:
    try:
        plan_cache = _plan_cache(session_state, machines.find(name))
        of_device = _of_device(plan_cache.feasibility) if session_state.follows_device else None
    except Exception as error:
        session_state.report(job, notice_message(sentence_of(error)))
        with session_state.message_bus.lock:
            if job.current and not session_state.jobs.running("plan", "search"):
                planning.begin(session_state)
        return
    with session_state.message_bus.lock:
        if job.current:
            session_state.jobs.drop("plan", "search", "sweep")  # started meanwhile, for the previous machine
            planning.drop_search(session_state)
            if of_device is not None and session_state.follows_device:
                session_state.budget = of_device
            settle(session_state, plan_cache)
            planning.begin(session_state)


def _plan_cache(session_state: SessionState, machine: Machine) -> PlanCache:
    """The plan cache of the step on a machine, new if the machine was not used before."""
    assert session_state.graph is not None
    known = session_state.plan_caches.get(machine.name)
    if known is not None and known.feasibility.machine == machine:
        return known
    return PlanCache(assess_feasibility(session_state.graph, machine))


def settle(session_state: SessionState, plan_cache: PlanCache) -> None:
    """Make a plan cache, and with it its graph and machine, the current one."""
    feasibility = plan_cache.feasibility
    session_state.feasibility, session_state.plan_cache, session_state.machine = (
        feasibility,
        plan_cache,
        feasibility.machine,
    )
    session_state.plan_caches[feasibility.machine.name] = plan_cache
    session_state.message_bus.publish(
        machine_message(feasibility, machines.choice(feasibility.machine), session_state.budget_bytes),
        samples_message(session_state.plan_cache.samples()), front_message(session_state.plan_cache.rows(), "", None),
        compare_message("", None),
    )  # fmt: skip


def _first_budget(session_state: SessionState, feasibility: Feasibility, plan: SwapPlan | None) -> int:
    """The budget in bytes.

    Raises:
        StowageError: it is a share of the step that rounds to zero bytes, or the device has no memory for a plan.
    """
    if session_state.budget is not None:
        return feasibility.parse(session_state.budget)
    if plan is not None:
        return plan.budget_bytes
    return _of_device(feasibility)


def _of_device(feasibility: Feasibility) -> int:
    """The device memory that the step can use.

    Raises:
        StowageError: the CUDA context and libraries take all of it.
    """
    return min(usable_bytes(feasibility.machine), feasibility.peak_bytes)


def graph_of_plan(graph: Graph, plan: SwapPlan) -> Graph:
    """The graph with the scratch memory that the plan provides for.

    Raises:
        StowageError: the plan is for another graph, or is not valid.
    """
    if plan.graph != fingerprint(graph):
        raise StowageError(f"this plan is not for {graph.name}: give the graph that it was made for, or plan again")
    problems = problems_of(plan, graph)
    if problems:
        raise StowageError(f"this plan is not valid: {problems[0].rstrip('.')}; plan again")
    return graph.with_workspaces(dict(plan.workspaces))


def _fail(session_state: SessionState, job: Job, title: str, error: StowageError) -> None:
    with session_state.message_bus.lock:
        if job.current and not job.stop.requested:
            _refuse(session_state, title, error)


def _refuse(session_state: SessionState, title: str, error: StowageError) -> None:
    session_state.refusal = error
    session_state.message_bus.publish(refused_message(title, str(error)))
    session_state.settled.set()
    session_state.planned.set()


FEATURE = Feature[None](
    "capture",
    kinds=(
        MessageKind("refused", supersedes=("loading",)),
        MessageKind("loading", at_rest=loading_at_rest),
        MessageKind("graph", supersedes=("loading", "refused")),
        MessageKind("machine"),
    ),
    requests={
        "machine": lambda session_state, wanted: change_machine(session_state, str(wanted["name"])),
        "cancel_loading": lambda session_state, _: cancel(session_state),
    },
    jobs=("capture", "machine"),
)
