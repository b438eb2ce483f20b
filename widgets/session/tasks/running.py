"""Run a plan and report its progress: measured and predicted memory, step times, losses, and the bitwise comparison."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter, sleep
from typing import Literal

from planner.errors import StowageError
from planner.graph import fingerprint
from planner.plan import SwapPlan
from planner.run import Run, RunResult, TooLargeError, run
from planner.step import Step
from planner.units import several
from widgets.info import measured_memory
from widgets.messages import Message, MessageKind, RunState, label_of, run_at_rest, run_message
from widgets.session.state.feature import Feature
from widgets.session.state.jobs import Job
from widgets.session.state.session_state import SessionState, sentence_of
from widgets.session.tasks.run_plan_adoption import adopt

STEPS = 3
_EVERY_SECONDS = 0.19
_LOOK_SECONDS = 0.1
#: Most steps whose times are sent.
_MOST = 1000
_BUSY = "It was planned by op times measured while this computer was busy; open the step again to plan it by new ones."


def begin(session_state: SessionState, steps: int = STEPS, check: bool | Literal["first"] = True) -> None:
    """Run the plan that is shown on this computer; cancels any earlier run first.

    Args:
        session_state: the session state.
        steps: number of steps.
        check: whether to run eager PyTorch beside every step, or the first two, and to compare all bits.

    Raises:
        StowageError: there is nothing to run, or the session is closed.
    """
    with session_state.message_bus.lock:
        session_state.check_open()
        step, plan = session_state.source.step, session_state.plan
        if step is None:
            raise StowageError("a graph alone cannot be run: open the workbench with the step it was captured from")
        if plan is None:
            raise StowageError("there is no plan to run yet: search for one, or raise the budget")
        if steps < 1:
            raise StowageError(f"{steps} steps cannot be run; ask for at least 1")
        session_state.jobs.drop("run")
        if session_state.run is not None:
            session_state.run.cancel()
        with session_state.torch_context.entered():  # the modes under which the step was captured
            handle = session_state.run = run(step, plan, steps=steps, device=session_state.device, check=check)
        note = _times_note(session_state, plan)
        # first the job: an interrupt may come as soon as the run is said to go on, and has to find it
        session_state.jobs.start("run", lambda job: _run(session_state, job, handle, plan, check, note))
        session_state.message_bus.publish(_words(session_state, handle, plan, steps, note))


def cancel(session_state: SessionState) -> None:
    """Stop the run after the current step."""
    with session_state.message_bus.lock:
        if session_state.run is not None and session_state.jobs.cancel("run"):
            session_state.run.cancel()
            sent = session_state.message_bus.latest("run")
            if sent is not None:
                session_state.message_bus.publish(Message({**sent.content, "doing": "stopping"}, sent.buffers))


def _times_note(session_state: SessionState, plan: SwapPlan) -> str:
    if _is_here(session_state, plan):
        return ""
    return f"This plan is for {_machine_of(session_state, plan)}: its times are not this computer's."


def _is_here(session_state: SessionState, plan: SwapPlan) -> bool:
    """Whether a plan is for what the step runs on."""
    return plan.machine == ("cpu" if session_state.device == "cpu" else "auto")


def _machine_of(session_state: SessionState, plan: SwapPlan) -> str:
    feasibility = session_state.feasibility
    return (
        label_of(feasibility.machine)
        if feasibility is not None and feasibility.machine.name == plan.machine
        else plan.machine
    )


def _run(
    session_state: SessionState, job: Job, handle: Run, plan: SwapPlan, check: bool | Literal["first"], note: str
) -> None:
    steps = handle.progress.steps or 0
    _watch(session_state, job, handle, plan, steps, note)
    error = handle.error
    refused = isinstance(error, StowageError) and error.__cause__ is None and not handle.step_seconds
    refused = refused and not isinstance(error, TooLargeError)  # no other plan would fit either
    sentence = ""
    if refused and _is_of(plan, session_state.source.step):
        machine = _machine_of(session_state, plan)
        try:
            again = _again(session_state, job, plan, steps, check)
        except Exception as found:  # another run of the step has started
            sentence = (
                f"The step cannot be planned anew here: {sentence_of(found)}. Why it has to be: {_reason(error)}."
            )
        else:
            if again is not None:
                why = f"within the same budget: {_reason(error)}."
                back = "" if _is_here(session_state, plan) else f" Choose {machine} again to go back to its plans."
                here = "this CPU" if session_state.device == "cpu" else "this GPU"
                note = f"Planned anew for {here}, and drawn, {why}{back}"
                _watch(session_state, job, again, plan, steps, f"Planning anew for {here} {why}", note)
                handle = again
    if handle.result is not None and handle.result.measured_busy:
        note = f"{note} {_BUSY}".lstrip()
    text = _words(session_state, handle, plan, steps, note)
    session_state.report(job, Message({**text.content, "sentence": sentence or text.content["sentence"]}, text.buffers))
    session_state.on_idle(session_state)


def _reason(error: BaseException | None) -> str:
    """Why a plan cannot be run here, without the advice, which is already being followed."""
    assert error is not None
    return sentence_of(error).partition(";")[0]


def _again(
    session_state: SessionState, job: Job, plan: SwapPlan, steps: int, check: bool | Literal["first"]
) -> Run | None:
    """Start a run that makes its own plan; None if the job was stopped or replaced."""
    with session_state.message_bus.lock:
        if job.stop.requested or not job.current:
            return None
        assert session_state.source.step is not None
        with session_state.torch_context.entered():
            session_state.run = run(
                session_state.source.step, budget=plan.budget_bytes, steps=steps, device=session_state.device,
                check=check,
            )  # fmt: skip
        return session_state.run


def _is_of(plan: SwapPlan, step: Step | None) -> bool:
    """Whether a plan is for the current graph of the step; if not, no other plan may be run in its place."""
    return step is not None and step.graph is not None and fingerprint(step.graph) == plan.graph


def _watch(
    session_state: SessionState, job: Job, handle: Run, plan: SwapPlan, steps: int, note: str, adopted: str = ""
) -> None:
    """Report the progress of a run until it ends.

    Args:
        session_state, job: the session state, and the job that reports.
        handle: the run.
        plan: the requested plan.
        steps, note: number of steps, and the note shown with the run.
        adopted: the note shown once the run's own plan is adopted; `""` if the run uses the requested plan.
    """
    reported = 0.0
    while True:
        running = handle.progress.state == "running"
        if adopted and handle.plan is not None:
            adopt(session_state, job, handle.plan)
            note, adopted = adopted, ""
        if not running:
            return
        if job.stop.requested:
            handle.cancel()
        if perf_counter() - reported >= _EVERY_SECONDS:
            reported = perf_counter()
            session_state.report(job, _words(session_state, handle, plan, steps, note))
        sleep(_LOOK_SECONDS)


def _words(session_state: SessionState, handle: Run, asked: SwapPlan, steps: int, note: str) -> Message:
    progress, result = handle.progress, handle.result
    plan = handle.plan or asked
    made = result.step_seconds if result is not None else ()
    state: str = progress.state
    if state == "running" and handle.plan is None:
        state = "planning"
    if state == "failed" and isinstance(handle.error, TooLargeError):
        state = "refused"
    compared, mismatches = (0, ()) if result is None else (result.compared, result.mismatches)
    peak = result.peak_bytes if result is not None and made else None
    return run_message(
        RunState(
            state, progress.doing, progress.share, len(made), steps, handle.losses[-_MOST:], made[-_MOST:],
            plan.predicted.seconds, () if result is None else result.eager_step_seconds[-_MOST:], plan.budget_bytes,
            peak, plan.peak_bytes, compared, len(mismatches), "" if result is None else result.checked,
            _sentence(handle, state, len(made), compared, mismatches),
            [] if result is None else _differences(plan.peak_bytes, peak, result), note,
            not _is_here(session_state, plan),
        ),
        plan.predicted,
        measured_memory(handle.step_timelines, handle.snapshots, made),
    )  # fmt: skip


def _sentence(handle: Run, state: str, made: int, compared: int, mismatches: Sequence[str]) -> str:
    kept = f"The model holds the {several(made, 'finished step')}." if made else "The model is as it was."
    if state == "refused" and handle.error is not None:
        words = sentence_of(handle.error).rstrip(".")
        return f"{words[:1].upper()}{words[1:]}. {kept}"
    if state == "failed" and handle.error is not None:
        return f"{sentence_of(handle.error).rstrip('.')}. {kept}"
    if state == "cancelled":
        return f"Cancelled after {several(made, 'step')}. {kept}"
    if state == "done" and mismatches:
        return f"{len(mismatches)} of {several(compared, 'tensor')} differ from eager PyTorch, first {mismatches[0]}."
    if state == "done" and compared:
        return f"{several(compared, 'tensor')} compared with eager PyTorch, 0 bits differ."
    return ""


def _differences(planned: int, measured: int | None, result: RunResult) -> list[tuple[str, int]]:
    if measured is None or measured == planned:
        return []
    more = measured - planned
    if result.device != "cpu" and more > 0:  # beside the arena, and within the budget
        parts = ("temporary memory", more - result.library_bytes), ("kept by libraries", result.library_bytes)
        return [part for part in parts if part[1]]
    return [("temporary memory beyond the plan", more)] if more > 0 else [("planned and not used", more)]


def _close(session_state: SessionState) -> None:
    with session_state.message_bus.lock:
        handle, session_state.run = session_state.run, None
    if handle is not None:
        handle.cancel()


FEATURE = Feature[None](
    "run",
    kinds=(MessageKind("run", at_rest=run_at_rest),),
    requests={
        "run": lambda session_state, wanted: begin(
            session_state, int(wanted.get("steps", STEPS)), bool(wanted.get("check", True))
        ),
        "cancel_run": lambda session_state, _: cancel(session_state),
    },
    jobs=("run",),
    first=lambda _: (run_message(RunState()),),
    cancel=cancel,
    close=_close,
)
