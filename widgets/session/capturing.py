"""From a step to its graph, and from a graph to what it needs on a machine."""

from __future__ import annotations

from threading import Event, Thread

import numpy as np

from planner.capture import capture
from planner.errors import StowageError
from planner.graph import Graph, fingerprint
from planner.kernels import doing
from planner.machine.types import Machine
from planner.memory import parse_budget
from planner.plan import SwapPlan
from planner.swap.problem.problem import Seconds
from widgets.canvas.graph_message import graph_message
from widgets.canvas.machine_message import machine_message
from widgets.canvas.run_message import RunState, run_message
from widgets.canvas.state_messages import (
    compare_message,
    front_message,
    loading_message,
    notice_message,
    refused_message,
    samples_message,
)  # fmt: skip
from widgets.session import machines, planning
from widgets.session.core import Core, problems_of, sentence_of
from widgets.session.ground import Ground, lay_ground
from widgets.session.jobs import Job
from widgets.session.shelf import Shelf

_EVERY_SECONDS = 0.25


class _GivenUp(BaseException):
    """The capture was cancelled; nothing of the model's may take it for an error."""


class _Loading:
    """What the capture is at, told several times a second by a thread of its own while the job is busy."""

    def __init__(self, core: Core, job: Job) -> None:
        self._core, self._job, self._over = core, job, Event()
        self.doing, self.share, self.ops = (
            "starting",
            0.0,
            None if core.source.graph is None else len(core.source.graph.ops),
        )
        Thread(target=self._tell, name="stowage loading", daemon=True).start()

    def note(self, share: float, doing: str) -> None:
        """Heed a cancel, and note the progress.

        Raises:
            _GivenUp: it was cancelled.
        """
        if self._job.stopped():
            raise _GivenUp
        self.share, self.doing = share, doing

    def _tell(self) -> None:
        while True:
            with self._core.outbox.turn:  # no word of loading comes after the graph
                if not self._over.is_set() and not self._job.stopped():
                    said = self._core.source.name, doing(self.doing), self.share, self.ops, self._job.seconds
                    self._core.report(self._job, loading_message(*said))
            if self._over.wait(_EVERY_SECONDS) or self._job.stopped():
                return

    def end(self) -> None:
        """Say nothing more."""
        self._over.set()


def begin(core: Core) -> None:
    """Capture the step and lay everything out, in a thread."""
    core.jobs.start("capture", lambda job: _begin(core, job))


def cancel(core: Core) -> None:
    """Give the capture up."""
    with core.outbox.turn:
        if core.jobs.cancel("capture"):
            _refuse(
                core, "Capture cancelled", StowageError("there is no graph; run the cell again to capture the step")
            )


def change_machine(core: Core, name: str | Machine) -> None:
    """Plan for another machine: within the budget that was asked for, or else within what that machine has.

    What was found for a machine is still there when it comes back.

    Raises:
        StowageError: there is no such machine, or all was closed.
    """
    machines.check(name)
    with core.outbox.turn:
        core.check_open()
        if core.ground is None:
            core.machine = name
            return
        core.jobs.drop("plan", "search", "sweep", "machine")
        planning.drop_search(core)
        core.planned.clear()
        label = machines.name_of(name)
        core.outbox.tell(core.budget_words("planning", f"looking at {label}", machine=label))
        if core.jobs.start("machine", lambda job: _change(core, job, name)) is None:
            core.planned.set()  # all is closed


def _begin(core: Core, job: Job) -> None:
    loading, title = _Loading(core, job), "This step cannot be captured"
    try:
        graph = core.source.graph
        if graph is None:
            assert core.source.step is not None
            with core.surroundings.entered():
                graph = capture(core.source.step, progress=loading.note)
        loading.ops = len(graph.ops)
        title = "This step cannot be planned"
        loading.note(0.9, "working out what the step needs")
        plan = core.source.plan
        if plan is not None:
            graph = _of_plan(graph, plan)
        while not _lay_out(core, job, loading, graph, plan):
            pass
    except _GivenUp:
        pass
    except StowageError as error:
        _fail(core, job, title, error)
    except BaseException as error:  # a model may also call sys.exit()
        _fail(core, job, "The capture failed", StowageError(sentence_of(error)))
    finally:
        loading.end()


def _lay_out(core: Core, job: Job, loading: _Loading, graph: Graph, plan: SwapPlan | None) -> bool:
    """Lay out what was captured, and begin to plan; False if another machine was asked for meanwhile."""
    asked = core.machine
    machine = machines.find(asked or (plan.machine if plan is not None else None))
    ground = lay_ground(graph, machine, None if plan is None else seconds_of(plan))
    message = graph_message(graph, ground.peak_bytes, core.source.phrases, core.source.step is not None)
    _first_budget(core, ground, plan)  # raises before anything is told
    loading.note(1.0, "done")
    with core.outbox.turn:
        if not job.current or job.stopped():
            return True
        if core.machine is not asked:
            return False
        loading.end()
        core.graph = graph
        core.budget = _first_budget(core, ground, plan)
        core.outbox.tell(message)
        settle(core, Shelf(ground))
        core.outbox.tell(run_message(RunState()))
        core.settled.set()
        planning.begin(core, plan)
    return True


def _change(core: Core, job: Job, name: str | Machine) -> None:
    try:
        shelf = _shelf(core, machines.find(name))
    except Exception as error:
        core.report(job, notice_message(sentence_of(error)))
        with core.outbox.turn:
            if job.current and not core.jobs.running("plan", "search"):
                planning.begin(core)
        return
    with core.outbox.turn:
        if job.current:
            core.jobs.drop("plan", "search", "sweep")  # begun meanwhile, for the machine before
            planning.drop_search(core)
            if core.follows_device:
                core.budget = _of_device(shelf.ground)
            settle(core, shelf)
            planning.begin(core)


def _shelf(core: Core, machine: Machine) -> Shelf:
    """What is known of the step on a machine, or that it has not been looked at."""
    assert core.graph is not None
    known = core.shelves.get(machine.name)
    if known is not None and known.ground.machine == machine:
        return known
    return Shelf(lay_ground(core.graph, machine))


def settle(core: Core, shelf: Shelf) -> None:
    """Make a step on a machine what all is about from now on."""
    ground = shelf.ground
    core.ground, core.shelf, core.machine = ground, shelf, ground.machine
    core.shelves[ground.machine.name] = shelf
    core.outbox.tell(
        machine_message(ground, machines.choice(ground.machine), core.budget_bytes),
        samples_message(core.shelf.samples()), front_message(core.shelf.rows(), "", None), compare_message("", None),
    )  # fmt: skip


def _first_budget(core: Core, ground: Ground, plan: SwapPlan | None) -> int:
    """The budget as a number.

    Raises:
        StowageError: it is a share of the step that leaves no byte.
    """
    if core.budget is not None:
        return parse_budget(core.budget, ground.peak_bytes)
    if plan is not None:
        return plan.budget_bytes
    return _of_device(ground)


def _of_device(ground: Ground) -> int:
    """All that the step can use of the device's memory."""
    return min(ground.machine.device.memory_bytes, ground.peak_bytes)


def _of_plan(graph: Graph, plan: SwapPlan) -> Graph:
    """The graph with the temporary memory that the plan provides for.

    Raises:
        StowageError: the plan is for another graph, or not valid.
    """
    if plan.graph != fingerprint(graph):
        raise StowageError(f"this plan is not for {graph.name}: give the graph that it was made for, or plan again")
    problems = problems_of(plan, graph)
    if problems:
        raise StowageError(f"this plan is not valid: {problems[0].rstrip('.')}; plan again")
    return graph.with_workspaces(dict(plan.workspaces))


def seconds_of(plan: SwapPlan) -> Seconds:
    """`[ops]`, how long each op runs as the plan foresees."""
    seconds = np.zeros(len(plan.order))
    seconds[list(plan.order)] = plan.predicted.compute[:, 1] - plan.predicted.compute[:, 0]
    return np.maximum(seconds, 0.0)


def _fail(core: Core, job: Job, title: str, error: StowageError) -> None:
    with core.outbox.turn:
        if job.current and not job.stopped():
            _refuse(core, title, error)


def _refuse(core: Core, title: str, error: StowageError) -> None:
    core.refusal = error
    core.outbox.tell(refused_message(title, str(error)))
    core.settled.set()
    core.planned.set()
