"""The thread behind a run on the ranks of a launch, of which this process is one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, replace
from importlib.metadata import version

import torch
from torch import Tensor

from planner.cancel import Cancelled, CancelToken
from planner.errors import StowageError, first_line
from planner.graph import Graph
from planner.memory import lifetimes
from planner.partition import partition_to_json
from planner.progress import Listener, Progress
from planner.run.checks.eager_difference import Difference
from planner.run.prepare.footprint import Footprint, footprint
from planner.run.workers.batch_feed import BatchFeed
from planner.run.workers.launch.agreement import Fact, digest_of_text, refuse_differences
from planner.run.workers.launch.membership import Membership
from planner.run.workers.launch.rank_folder import RankFolder
from planner.run.workers.launch.rank_plans import plan_ranks
from planner.run.workers.plans.worker_plans import WorkerPlans
from planner.run.workers.processes.process_settings import ProcessSettings
from planner.run.workers.rank_team import RankTeam
from planner.run.workers.team import Team
from planner.run.workers.workers_thread import WorkersRequest, WorkersThread

_SAME_ARGUMENTS = "call planner.run_workers with the same on all ranks"
_SAME_PACKAGES = "install the same on every host"


class RankThread(WorkersThread):
    """Serves a request as one rank of those that a launcher started, all of which ask for the same.

    Args:
        request: the request.
        listener: called with the share done and a status text; None for nothing.

    Raises:
        StowageError: the launcher's environment is incomplete.
    """

    def __init__(self, request: WorkersRequest, listener: Listener | None) -> None:
        self._membership = membership = Membership()
        self._everywhere = request

        def new_team(_workers: int, stop: CancelToken, check: Callable[[], object]) -> Team:
            membership.join(check)
            if isinstance(request.checkpoint, RankFolder):
                request.checkpoint.open(membership.ranks)  # with those of now: the ones before may have been left
            return RankTeam(membership.ranks, membership.tcp, stop)

        super().__init__(replace(request, check=request.check and self.is_first), listener, new_team)

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, which speaks for all."""
        return self._membership.launch.rank == 0

    def loop(self, batches: Iterable[object]) -> Iterator[float]:
        """Make a step with each batch, in the calling thread; yields the losses."""
        try:
            yield from super().loop(batches)
        except (Exception, KeyboardInterrupt) as error:
            self._give_up(error)
            raise

    def _begin(self) -> None:
        self._report_progress(0.0, "waiting for the other ranks")
        self._membership.join(self.stop.check)
        self._compare_requests()

    def _give_up(self, error: BaseException) -> None:
        """Tell the other ranks that this one fails, so that they do not wait for it."""
        self._membership.fail(_why(error))

    def _plans(self, graph: Graph, progress: Progress) -> WorkerPlans:
        self._membership.join(self.stop.check)
        ranks, local_ranks = self._membership.ranks, self._membership.launch.local_ranks
        asked = self.asked
        return plan_ranks(
            ranks, local_ranks, graph, asked.partition, asked.budget, asked.steps or None, progress, self.stop
        )

    def _footprint(self, planned: WorkerPlans) -> Footprint:
        """What the ranks of this host take: each has its worker, and all parts while it brings the state back."""
        graph, asked, launch = planned.graph, self.asked, self._membership.launch
        own, plan = planned.graphs[launch.rank], planned.plans[launch.rank]
        state, sent = (sum(storage.bytes for storage in each.storages if storage.persistent) for each in (graph, own))
        device = (0 if self.keeper.has_team else plan.peak_bytes) + 2 * sent + 2 * state
        return Footprint(
            launch.local_ranks * footprint(graph, None, self._step, checked=False).model,
            launch.local_ranks * device,
            launch.local_ranks * plan.host_bytes,
            2 * lifetimes(graph).peak_bytes if asked.check else 0,
        )

    def _made(
        self, team: Team, live: dict[str, Tensor], feed: BatchFeed, outputs: list[Tensor]
    ) -> BaseException | None:
        assert isinstance(team, RankTeam)
        team.ended_by = super()._made(team, live, feed, outputs)
        return team.ended_by

    def _check_between_steps(self, team: Team) -> None:
        """Stop where all ranks do: this one alone may while no step would be lost."""
        assert isinstance(team, RankTeam)
        if team.is_stopping:
            raise Cancelled
        if not self.keeper.unsaved:
            self.stop.check()

    def _known_to_all(self, difference: Difference | None) -> Difference | None:
        first = self._membership.ranks.share(None if difference is None else astuple(difference))[0]
        return None if first is None else Difference(*first)

    def _compare_requests(self) -> None:
        asked, ranks = self._everywhere, self._membership.ranks
        refuse_differences(ranks, [*_surroundings(), *_arguments(asked)])
        if isinstance(asked.checkpoint, RankFolder):
            asked.checkpoint.open(ranks)
        workers = asked.partition.workers
        if workers != ranks.ranks:
            raise StowageError(
                f"the launcher's world size is {ranks.ranks}, and the partition is for {workers} workers: start "
                f"{workers} ranks, take a partition for as many workers as there are ranks, or unset RANK and "
                "WORLD_SIZE to run all workers from one process"
            )


def refuse_of_one_host(*, transport: str | None) -> None:
    """Refuse what is for workers that one process starts.

    Args:
        transport: as for `run_workers`.

    Raises:
        StowageError: it is given.
    """
    if transport is not None:
        raise StowageError(
            "transport is for workers that one process starts, and ranks of a launcher exchange over TCP: leave it out"
        )


def _surroundings() -> list[Fact]:
    """What kernels compute with, beside their arguments."""
    return [
        Fact("version of Stowage", version("stowage"), _SAME_PACKAGES, is_shown=True),
        Fact("version of PyTorch", torch.__version__, _SAME_PACKAGES, is_shown=True),
        Fact(
            "settings of PyTorch", str(ProcessSettings.current()), "make the same settings on all ranks", is_shown=True
        ),
        Fact(
            "number of threads", str(torch.get_num_threads()), "set OMP_NUM_THREADS alike on all ranks", is_shown=True
        ),
        Fact(
            "CPU capability", torch.backends.cpu.get_cpu_capability(),
            "set ATEN_CPU_CAPABILITY on all ranks to what every host has", is_shown=True,
        ),
    ]  # fmt: skip


def _arguments(asked: WorkersRequest) -> list[Fact]:
    text = partition_to_json(asked.partition)
    return [
        Fact("partition", digest_of_text(text), "save it to a file, copy that to every host and load it there"),
        Fact("number of steps", str(asked.steps), _SAME_ARGUMENTS, is_shown=True),
        Fact("check", str(asked.check), _SAME_ARGUMENTS, is_shown=True),
        Fact("checkpoint", _folder_of(asked), _SAME_ARGUMENTS, is_shown=True),
        Fact("checkpoint_every", str(asked.checkpoint_every), _SAME_ARGUMENTS, is_shown=True),
        Fact("batches", "None" if asked.batches is None else "given", _SAME_ARGUMENTS, is_shown=True),
    ]


def _folder_of(asked: WorkersRequest) -> str:
    return "None" if asked.checkpoint is None else str(asked.checkpoint.path)


def _why(error: BaseException) -> str:
    if isinstance(error, Cancelled | KeyboardInterrupt):
        return "was stopped"
    return f"failed: {type(error).__name__}: {first_line(error)}" if isinstance(error, Exception) else "was ended"
