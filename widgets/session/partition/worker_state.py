"""Which worker of a partition is shown in place of the whole step, and those that were shown before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from planner.machine import Machine
from widgets.messages import worker_message
from widgets.session.state.feature import cancel_features
from widgets.session.state.session_state import SessionState

if TYPE_CHECKING:
    from planner.partition import PartitionPlan

#: The messages about a whole step of which there is one about a worker, too.
TOLD = ("graph", "machine", "samples", "front", "budget", "plan", "search", "compare")


@dataclass(eq=False)
class WorkerView:
    """One worker, planned.

    Args:
        partition, worker: which worker of which partition.
        session_state: of its graph, as if that was a step of its own.
        storages: by storage of the whole step, the worker's part of it, or -1 where that is not known.
        planned_for: the machine and the budget that were chosen for the whole step when it was last shown.
    """

    partition: PartitionPlan
    worker: int
    session_state: SessionState
    storages: tuple[int, ...]
    planned_for: tuple[Machine, int]

    def close(self) -> None:
        """End all work on it."""
        self.session_state.close()


@dataclass(eq=False)
class WorkerViews:
    """The workers of a session; hold the message bus's lock to read or change it.

    Attributes:
        kept: those that were planned, the one shown last at the end.
        shown: the one that is shown, None for the whole step.
        stop: ends passing on what is told about it.
    """

    kept: list[WorkerView] = field(default_factory=list)
    shown: WorkerView | None = None
    stop: Callable[[], None] | None = None

    def find(self, partition: PartitionPlan, worker: int) -> WorkerView | None:
        """A worker that was planned."""
        return next((view for view in self.kept if view.partition is partition and view.worker == worker), None)

    def leave(self) -> None:
        """Show none; the one that was shown rests."""
        if self.stop is not None:
            self.stop()
        if self.shown is not None:
            rest(self.shown.session_state)
        self.shown = self.stop = None


def leave(session_state: SessionState, views: WorkerViews, state: str = "none", sentence: str = "") -> None:
    """Show the whole step again; what was planned for workers is kept.

    Args:
        session_state: the session state.
        views: its workers.
        state, sentence: why, as in the worker message.
    """
    with session_state.message_bus.lock:
        under_way = session_state.jobs.running("worker")
        if state == "none":
            session_state.jobs.drop("worker")
        if views.shown is None and not under_way:
            return
        views.leave()
        session_state.message_bus.forget(f"worker_{name}" for name in TOLD)
        session_state.message_bus.publish(worker_message(state, sentence=sentence))


def rest(session_state: SessionState) -> None:
    """Stop the work on a worker; it goes on when the worker is shown again."""
    session_state.has_viewers = False
    session_state.jobs.drop("sweep")
    cancel_features(session_state)
