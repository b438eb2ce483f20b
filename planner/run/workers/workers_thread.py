"""The thread behind a run on several workers; further steps may be made in any thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from planner.cancel import Cancelled, uninterrupted
from planner.capture import capture
from planner.errors import StowageError
from planner.global_state_lock import global_state_lock
from planner.graph import Graph, fingerprint
from planner.memory import lifetimes
from planner.partition import PartitionPlan
from planner.progress import Listener, Progress
from planner.run.checkpoint.folder import CheckpointFolder
from planner.run.checks.eager_difference import Difference, EagerSteps
from planner.run.checks.state_writeback import StateWriteback
from planner.run.loop.background_run import BackgroundRun
from planner.run.loop.batch_count import batch_count
from planner.run.prepare.footprint import Footprint, footprint, refuse_footprint
from planner.run.workers.batch_feed import BatchFeed
from planner.run.workers.checkpoints import Checkpoints
from planner.run.workers.communication.transports import exchange_link
from planner.run.workers.followed_state import FollowedState
from planner.run.workers.launch.rank_folder import RankFolder
from planner.run.workers.plans.worker_plans import WorkerPlans, plan_workers
from planner.run.workers.processes.pool import ForkServer, WorkerFailedError
from planner.run.workers.team import Team
from planner.run.workers.team_keeper import NewTeam, TeamKeeper, forked_team
from planner.run.workers.workers_log import WorkersLog
from planner.run.workers.workers_result import WorkersResult
from planner.step import Step

#: Getting ready takes about as long as so many steps of small models, and is as large a share of the work.
_READY_STEPS = 10
_CAPTURED, _PLANNED = 0.1, 0.8  # shares of getting ready


@dataclass(frozen=True, eq=False)
class WorkersRequest:
    """What is asked for; the arguments of `run_workers`."""

    step: Step
    partition: PartitionPlan
    budget: str | int | None
    batches: Iterable[Any] | None
    steps: int | None
    check: bool
    transport: str | None
    checkpoint: CheckpointFolder | RankFolder | None
    checkpoint_every: int | None


class WorkersThread(BackgroundRun):
    """Serves a request in a background thread.

    Args:
        request: the request.
        listener: called with the share done and a status text; None for nothing.
        new_team: starts the workers; None to start a process for each.

    Attributes:
        done: the steps made.
        planned: what the workers compute, once that is known.
        keeper: of the workers.
    """

    def __init__(self, request: WorkersRequest, listener: Listener | None, new_team: NewTeam | None = None) -> None:
        self.done = WorkersLog()
        known = None if request.batches is None else batch_count(request.batches)
        steps = min((count for count in (request.steps, known) if count is not None), default=None)
        self._ready = _READY_STEPS / (_READY_STEPS + (steps or _READY_STEPS))
        super().__init__(request.step, steps, self.done, None, torch.Generator(), listener)
        self.asked = request
        self.planned: WorkerPlans | None = None
        folder = request.checkpoint
        self._checkpoints = None if folder is None else Checkpoints(folder, request.checkpoint_every, request.step)
        self.keeper = TeamKeeper(self.stop, self._ended, new_team or forked_team(request.transport))

    @property
    def result(self) -> WorkersResult | None:
        """The result of the steps so far; None before there are plans."""
        planned = self.planned
        return None if planned is None else self.done.result(planned, self.asked.budget, self.keeper.used)

    def _run(self) -> None:
        super()._run()
        if self.stop.requested:
            self.keeper.close()

    def _work(self) -> None:
        try:
            self._begin()
            progress = Progress(self._report_progress, self.stop)
            ready = progress if self.asked.steps == 0 else progress.part(0.0, self._ready)
            self._prepare(ready.part(0.0, 1.0 if self.asked.steps == 0 else _PLANNED))
            self._build(self._footprint(self._planned()).model)
            if self._checkpoints is not None:
                self._checkpoints.refuse_extra_state()
            if self.asked.steps == 0:
                with self._following():
                    return
            ready(_PLANNED, "starting the workers")
            with self._naming_checkpoint():
                self._make_steps()
        except BaseException as error:
            self._give_up(error)
            raise
        finally:
            if self.asked.steps != 0:
                self.keeper.close()

    def _begin(self) -> None:
        """Get what will make the workers ready, while they are planned."""
        ForkServer.shared()

    def _give_up(self, error: BaseException) -> None:
        """Note what has ended the run's own work."""

    def _plans(self, graph: Graph, progress: Progress) -> WorkerPlans:
        link = exchange_link(self.asked.transport)
        asked = self.asked
        return plan_workers(graph, asked.partition, asked.budget, asked.steps or None, link, progress, self.stop)

    def _known_to_all(self, difference: Difference | None) -> Difference | None:
        return difference

    def _prepare(self, progress: Progress) -> None:
        """Capture the step as it is now, and plan it if that gives another graph."""
        with global_state_lock(self.stop.check):
            graph = capture(self._step, progress=progress.part(0.0, _CAPTURED, "capturing the step"))
        if graph.program.extras is not None:
            raise StowageError(
                f"the loss of {graph.name} returns extras beside its value, and workers return the loss alone: give "
                "run_workers a step whose loss returns one number"
            )
        if self.planned is None or self.planned.graph is not graph:
            self.planned = self._plans(graph, progress.part(_CAPTURED, 1.0))
        refuse_footprint(self._footprint(self.planned), graph.name, "the workers' device memory")

    def _planned_again(self) -> WorkerPlans:
        self._prepare(Progress(stop=self.stop))
        return self._planned()

    def _footprint(self, planned: WorkerPlans) -> Footprint:
        """What the run takes here: each worker's parts of the state are sent to it, and copied into its arena."""
        graph, asked = planned.graph, self.asked
        sent = sum(storage.bytes for each in planned.graphs for storage in each.storages if storage.persistent)
        followed = asked.batches is not None or asked.steps == 0
        copied = sum(storage.bytes for storage in graph.storages if storage.persistent) if followed else 0
        device = sum(plan.peak_bytes for plan in planned.plans)
        return Footprint(
            footprint(graph, None, self._step, checked=False).model,
            (0 if self.keeper.has_team else device) + 2 * sent + copied,
            sum(plan.host_bytes for plan in planned.plans),
            2 * lifetimes(graph).peak_bytes if asked.check else 0,  # as it is, and with its state moved
        )

    @contextmanager
    def _following(self) -> Iterator[FollowedState]:
        followed = FollowedState(
            self._step, self._generator, self._planned_again, self.keeper.ready, self.done, self._checkpoints
        )
        try:
            with self._naming_checkpoint():
                followed.prepare()
                yield followed
        finally:
            followed.end()

    def _make_steps(self) -> None:
        """Make the run's own steps, and bring their state back at the end."""
        asked, planned = self.asked, self._planned()
        feed = BatchFeed(self._step, planned.graph, asked.batches, asked.steps, self.stop, keeps=asked.check)
        with nullcontext() if feed.draws else self._drawing_for_all():
            with global_state_lock(self.stop.check):
                writeback = StateWriteback(
                    self._step, self._generator, planned.graph.program.effects, shared=feed.draws
                )
            live = writeback.live()
            self._refuse_other_steps(planned, writeback, live)
            eager = EagerSteps(self._step, planned.graph) if asked.check else None
            team = self.keeper.ready(planned, live)
            outputs: list[Tensor] = []
            failure = self._made(team, live, feed, outputs)
            if not self.keeper.unsaved:
                raise failure or StowageError("there are no batches: give at least one")
            self.progress.doing = "bringing the state back"
            state = team.state(live)
            if self._checkpoints is not None:
                try:
                    self._checkpoints.write(team, live, self.keeper.unsaved, self._generator.get_state())
                except StowageError as error:  # the state is here already
                    failure = failure or error
            with uninterrupted():
                writeback.keep(state, steps=self.keeper.unsaved, skipped=team.skipped == self.keeper.unsaved)
                self.keeper.unsaved = 0
            writeback.settle()
        if failure is not None:
            raise failure
        with nullcontext() if eager is None else global_state_lock(self.stop.check):
            found = None if eager is None else eager.difference(feed.given, outputs, state)
        self.done.difference = self._known_to_all(found)

    def _made(
        self, team: Team, live: dict[str, Tensor], feed: BatchFeed, outputs: list[Tensor]
    ) -> BaseException | None:
        """Make steps as long as there are batches; returns what has ended them early, if it leaves finished ones."""
        of, drawn = "" if feed.count is None else f" of {feed.count}", self._generator.get_state()
        try:
            for number, leaves in enumerate(feed):
                share = number / feed.count if feed.count else 0.0
                self._report_progress(self._ready + (1 - self._ready) * share, f"step {number + 1}{of}")
                self._check_between_steps(team)
                if feed.draws:
                    drawn = torch.get_rng_state()
                made = team.step(drawn, leaves)
                self.keeper.unsaved += 1
                drawn = made.drawn
                self._generator.set_state(drawn)
                outputs += [made.outputs[0]] if self.asked.check else []
                self.done.add(made.record, made.outputs, skipped=made.skipped)
                if feed.draws:
                    with global_state_lock():
                        torch.set_rng_state(drawn)
                if self._checkpoints is not None:
                    self._checkpoints.after_step(team, live, self.keeper.unsaved, drawn)
        except (Exception, Cancelled) as error:
            if team.closed:
                raise
            return error
        if feed.draws:
            self._generator.set_state(torch.get_rng_state())
        return feed.error

    def _check_between_steps(self, _team: Team) -> None:
        """Stop if that was asked for."""
        self.stop.check()

    def _refuse_other_steps(self, planned: WorkerPlans, writeback: StateWriteback, live: dict[str, Tensor]) -> None:
        """Refuse steps that are not all like the first, which writes to Python variables."""
        graph = planned.graph
        effects = graph.program.effects
        if effects is None or self.steps == 1:
            return
        writeback.note_variables()
        try:
            effects.apply(live, {}, ())
            with global_state_lock(self.stop.check):
                second = capture(self._step, progress=False)
        finally:
            writeback.take_back_variables()
        if second.program.effects is not None or fingerprint(second) != fingerprint(graph):
            raise StowageError(
                f"{graph.name} changes Python variables in every step, and workers run steps that are alike; make one "
                "step at a time (steps=1), or leave the variables alone"
            )

    @contextmanager
    def _naming_checkpoint(self) -> Iterator[None]:
        """Say what is on the disk where a worker fails."""
        try:
            yield
        except WorkerFailedError as error:
            if self._checkpoints is None:
                raise
            raise type(error)(error.worker, error.why, f"; {self._checkpoints.sentence}") from error

    def _planned(self) -> WorkerPlans:
        assert self.planned is not None
        return self.planned
