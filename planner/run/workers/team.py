"""Workers that have their graphs, plans and parts of the state, and make steps together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from planner.run.checkpoint.part import OwnedBox, WrittenPart
from planner.run.workers.plans.box_packing import scattered
from planner.run.workers.plans.cores import cores
from planner.run.workers.plans.state_owners import state_owners
from planner.run.workers.plans.worker_plans import WorkerPlans
from planner.run.workers.processes.messages import WorkerJob, packed
from planner.run.workers.processes.pool import WorkerPool
from planner.run.workers.processes.process_settings import ProcessSettings
from planner.run.workers.workers_log import WorkersStep


@dataclass(frozen=True, slots=True, eq=False)
class TeamStep:
    """One step of all workers.

    Args:
        record: what was measured.
        outputs: of the step, the loss first.
        drawn: the state of the generator after it.
        skipped: whether it has updated nothing, because a gradient was not finite.
    """

    record: WorkersStep
    outputs: tuple[Tensor, ...]
    drawn: Tensor
    skipped: bool


class Team(ABC):
    """Workers that make steps together, seen from one process.

    Attributes:
        planned: what they compute; None before `prepare`.
        owned: per worker, the boxes of the state that are brought back and written from it.
        number: of the next step, since the state was last loaded.
        skipped: how many of the steps since then have updated nothing.
    """

    def __init__(self) -> None:
        self.planned: WorkerPlans | None = None
        self.owned: list[list[OwnedBox]] = []
        self.number = self.skipped = 0

    @property
    def planned_now(self) -> WorkerPlans:
        """What they compute, after `prepare`."""
        assert self.planned is not None
        return self.planned

    @property
    @abstractmethod
    def transport(self) -> str:
        """The name of theirs."""

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Whether no more steps can be made with them."""

    @abstractmethod
    def prepare(self, planned: WorkerPlans, live: Mapping[str, Tensor]) -> None:
        """Get ready to compute that, with the state by key, whole."""

    @abstractmethod
    def load(self, live: Mapping[str, Tensor]) -> None:
        """Go on with another state, by key, whole."""

    @abstractmethod
    def step(self, drawn: Tensor, leaves: Sequence[Tensor]) -> TeamStep:
        """Make a step.

        Args:
            drawn: the state of the generator before it.
            leaves: the tensors of the batch, whole.
        """

    @abstractmethod
    def state(self, live: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Bring the state together, and refuse copies that differ; a copy, by key, of what any worker has.

        Args:
            live: the state that was loaded last, by key.
        """

    @abstractmethod
    def bring(self, into: Mapping[str, Tensor]) -> set[str]:
        """Bring the state together, each element from one worker; returns the keys of what any worker has.

        Args:
            into: whole tensors by key, which are written.
        """

    @abstractmethod
    def save(self, folder: Path, names: Mapping[str, str]) -> WrittenPart:
        """Let each worker write its part of a checkpoint; returns what all have written.

        Args:
            folder: for all parts.
            names: by key, what tensors are called in the checkpoint.

        Raises:
            OSError: a part cannot be written.
        """

    @abstractmethod
    def close(self) -> None:
        """Leave them."""


class WorkerTeam(Team):
    """A process for each worker, which goes on until it is closed, whatever is asked of it.

    Args:
        workers: how many.
        transport: between them, as for `run_workers`.
        check_cancelled: called periodically while something is asked of them; if it raises, they are ended.

    Raises:
        StowageError: they cannot be started.
    """

    def __init__(self, workers: int, transport: str | None, check_cancelled: Callable[[], object]) -> None:
        super().__init__()
        self._pool = WorkerPool(workers, transport, check_cancelled)
        self._nothing: list[tuple[()]] = [()] * workers

    @property
    def transport(self) -> str:
        """The name of theirs."""
        return self._pool.transport

    @property
    def closed(self) -> bool:
        """Whether they were ended."""
        return self._pool.closed

    def prepare(self, planned: WorkerPlans, live: Mapping[str, Tensor]) -> None:
        """Give the workers what they compute, and the state; as `Team.prepare`."""
        held = self._pool.ask("prepare", ((packed(job),) for job in _jobs(planned, live)))
        self.owned = state_owners(planned, live, held)
        self._pool.ask("own", ((owned,) for owned in self.owned))
        self.planned, self.number, self.skipped = planned, 0, 0

    def load(self, live: Mapping[str, Tensor]) -> None:
        """Give the workers the state; as `Team.load`."""
        planned = self.planned_now
        self._pool.ask("load", ((planned.state_parts(live, worker),) for worker in planned.workers))
        self.number = self.skipped = 0

    def step(self, drawn: Tensor, leaves: Sequence[Tensor]) -> TeamStep:
        """Make a step; as `Team.step`."""
        planned = self.planned_now
        numbers = dict(planned.graph.program.scalars(self.number, self.skipped))
        parts = (planned.batch_parts(leaves, worker) for worker in planned.workers)
        replies = self._pool.ask("step", ((numbers, drawn, part) for part in parts))
        self.number += 1
        self.skipped += replies[0]["skipped"]
        record = WorkersStep(
            tuple(reply["seconds"] for reply in replies),
            tuple(int(reply["received_bytes"]) for reply in replies),
            tuple(int(reply["peak_bytes"]) for reply in replies),
        )
        return TeamStep(record, replies[0]["outputs"], replies[0]["drawn"], replies[0]["skipped"])

    def state(self, live: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Bring the state together; as `Team.state`."""
        return self.planned_now.whole_state(live, self._pool.ask("state", self._nothing))

    def bring(self, into: Mapping[str, Tensor]) -> set[str]:
        """Bring the state together into tensors that are there; as `Team.bring`."""
        for found, owned in zip(self._pool.ask("boxes", self._nothing), self.owned, strict=True):
            scattered(found, owned, into)
        return {each.key for owned in self.owned for each in owned}

    def save(self, folder: Path, names: Mapping[str, str]) -> WrittenPart:
        """Let each worker write its part of a checkpoint; as `Team.save`."""
        replies = self._pool.ask("save", [(folder, names)] * len(self.owned))
        for worker, (_, error) in enumerate(replies):
            if error:
                raise OSError(f"worker {worker} cannot write its part: {error}")
        return sum((part for part, _ in replies), WrittenPart())

    def close(self) -> None:
        """End all workers."""
        self._pool.close()


def _jobs(planned: WorkerPlans, live: Mapping[str, Tensor]) -> Iterator[WorkerJob]:
    threads, settings = max(1, cores() // len(planned.workers)), ProcessSettings.current()
    for worker in planned.workers:
        yield WorkerJob(
            planned.graphs[worker], planned.plans[worker], planned.partition.mesh, worker,
            planned.state_parts(live, worker), threads, settings,
        )  # fmt: skip
