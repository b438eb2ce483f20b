"""The workers of a run, kept between its steps, and ended with its handle."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Lock

from torch import Tensor

from planner.cancel import CancelToken
from planner.run.loop.background_run import PATIENCE
from planner.run.workers.plans.worker_plans import WorkerPlans
from planner.run.workers.team import Team, WorkerTeam

#: Starts so many workers for a run with a token, which call a function periodically that ends them if it raises.
NewTeam = Callable[[int, CancelToken, Callable[[], object]], Team]


def forked_team(transport: str | None) -> NewTeam:
    """What starts a process for each worker.

    Args:
        transport: between workers, as for `run_workers`.
    """
    return lambda workers, _stop, check: WorkerTeam(workers, transport, check)


class TeamKeeper:
    """Holds no reference to the run, whose errors may refer to the handle that is to be dropped.

    Args:
        stop: of the run.
        ended: set when the run's thread has ended.
        new_team: starts workers.

    Attributes:
        unsaved: how many steps the workers have made that the live model does not include.
        used: the name of the transport of the last workers; empty before there are some.
    """

    def __init__(self, stop: CancelToken, ended: Event, new_team: NewTeam) -> None:
        self._stop, self._ended, self._new_team = stop, ended, new_team
        self._patience = stop.within_step()
        self._team: Team | None = None
        self._lock = Lock()
        self.unsaved = 0
        self.used = ""

    @property
    def has_team(self) -> bool:
        """Whether there are workers."""
        return self._team is not None and not self._team.closed

    def ready(self, planned: WorkerPlans, live: dict[str, Tensor]) -> Team:
        """Workers with that to compute and with this state, which are started if there are none.

        Args:
            planned: what they compute.
            live: the state by key, whole.
        """
        with self._lock:
            team = self._team
            if team is None or team.closed:
                team = self._team = self._new_team(len(planned.workers), self._stop, self._check)
        self.used = team.transport
        if team.planned is planned:
            team.load(live)
        else:
            team.prepare(planned, live)
        return team

    def release(self) -> None:
        """Stop the run, and end its workers if it makes no steps; returns immediately."""
        self._stop.cancel(PATIENCE)
        if self._ended.is_set():
            self.close()

    def close(self) -> None:
        """End the workers; they must not be making a step."""
        with self._lock:
            team, self._team = self._team, None
        if team is not None:
            team.close()

    def _check(self) -> None:
        """Let a step end if others would be lost with it."""
        if not self.unsaved:
            self._patience.check()
