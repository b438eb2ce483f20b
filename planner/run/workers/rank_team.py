"""This rank's worker, which makes steps together with those of the other ranks, each in a process of its own."""

from __future__ import annotations

import json
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from planner.cancel import CancelToken
from planner.errors import StowageError
from planner.program import Readings, communicate_by
from planner.run.checkpoint.part import WrittenPart, write_part
from planner.run.devices.cpu import CpuDevice
from planner.run.executor.executor import Executor
from planner.run.workers.communication.peers import Peers
from planner.run.workers.communication.tcp import Tcp
from planner.run.workers.communication.transport import PeerLostError
from planner.run.workers.launch.agreement import Fact, digest_of, refuse_differences
from planner.run.workers.launch.gather import gather_parts
from planner.run.workers.launch.ranks import RankFailedError, Ranks
from planner.run.workers.launch.shared_work import at_each
from planner.run.workers.plans.state_owners import state_owners
from planner.run.workers.plans.worker_plans import WorkerPlans
from planner.run.workers.processes.messages import StepNumbers
from planner.run.workers.team import Team, TeamStep
from planner.run.workers.workers_log import WorkersStep

_SEED = "seed the ranks alike (torch.manual_seed) or load the same checkpoint on all of them"
_SAME_BATCHES = (
    "each rank takes the whole batch and cuts out its own part, so give all the same batches: a loader that is seeded "
    "alike, without a DistributedSampler"
)
_SAME_SCHEDULE = "give all ranks the same optimizer and schedule"
_SAME_SEED = "seed the ranks alike (torch.manual_seed), and let all of them draw the same numbers"
_SAME_CALLS = "all ranks must make the same steps, so give them as many batches"


class RankTeam(Team):
    """The worker of this rank, as one of a team.

    Args:
        ranks: all of them, this one included.
        tcp: to the others.
        stop: whether this rank's run was asked to stop.

    Attributes:
        is_stopping: whether a rank was asked to stop before the last step had ended; all know it then.
        ended_by: why this rank makes no more steps, if it is not that all are made.
    """

    def __init__(self, ranks: Ranks, tcp: Tcp, stop: CancelToken) -> None:
        super().__init__()
        self._ranks, self._tcp, self._stop = ranks, tcp, stop
        self.is_stopping = False
        self.ended_by: BaseException | None = None
        self._broken = False
        self._device: CpuDevice | None = None
        self._numbers: StepNumbers
        self._peers: Peers
        self._generator: torch.Generator
        self._executor: Executor

    @property
    def transport(self) -> str:
        """The name of theirs."""
        return "TCP"

    @property
    def closed(self) -> bool:
        """Whether no more steps can be made: after a failed one, the ranks are not at the same step."""
        return self._broken or self._ranks.left

    def prepare(self, planned: WorkerPlans, live: Mapping[str, Tensor]) -> None:
        """Take over what the workers compute, and the state.

        Args:
            planned: of all ranks.
            live: the state by key, whole.

        Raises:
            StowageError: a rank has other values than this one.
        """
        self._close_device()
        graph, plan = planned.graphs[self._ranks.rank], planned.plans[self._ranks.rank]
        self._numbers = StepNumbers(graph.program.scalars(0))
        graph = replace(
            graph,
            program=replace(graph.program, scalars=self._numbers, effects=None, readings=Readings(), unused={}),
        )
        self._peers = Peers(planned.partition.mesh, self._ranks.rank, self._tcp)
        self._device = CpuDevice(plan.peak_bytes, plan.host_bytes, check_cancelled=self._ranks.check)
        self._generator = self._device.generator()
        self._executor = Executor(
            graph, plan, self._device, generator=self._generator, check_cancelled=self._ranks.check
        )  # fmt: skip
        self.planned = planned
        constants = [(planned.graph.tensors[tensor].name, value) for tensor, value in planned.graph.program.constants]
        self._agree("take over the graph", [Fact(name, digest_of([value]), _SEED) for name, value in constants])
        self.owned = state_owners(planned, live, self._ranks.share(list(self._executor.state())))
        self.load(live)

    def load(self, live: Mapping[str, Tensor]) -> None:
        """Take over the state.

        Args:
            live: by key, whole.

        Raises:
            StowageError: a rank has other values than this one.
        """
        planned = self.planned_now
        keys = [key for _, key in planned.graph.program.state]
        self._agree("load the state", [Fact(key, digest_of([live[key]]), _SEED) for key in keys])
        self._executor.load(planned.state_parts(live, self._ranks.rank))
        self.number = self.skipped = 0

    def step(self, drawn: Tensor, leaves: Sequence[Tensor]) -> TeamStep:
        """Make a step.

        Args:
            drawn: the state of the generator before it.
            leaves: the tensors of the batch, whole.

        Raises:
            StowageError: a rank has another batch, learning rate or generator than this one.
        """
        self._broken = True
        made = self._step(drawn, leaves)
        self._broken = False
        return made

    def _step(self, drawn: Tensor, leaves: Sequence[Tensor]) -> TeamStep:
        planned, step = self.planned_now, f"step {self.number + 1}"
        numbers = dict(planned.graph.program.scalars(self.number, self.skipped))
        facts = [
            Fact(f"batch of {step}", digest_of(leaves), _SAME_BATCHES),
            Fact(f"learning rate or another number of {step}", _text_of(numbers), _SAME_SCHEDULE),
        ]
        if any(op.random for op in planned.graph.ops):
            facts.append(Fact(f"random generator before {step}", digest_of([drawn]), _SAME_SEED))
        self._agree(f"make {step}", facts)
        self._numbers.values = numbers
        self._generator.set_state(drawn)
        part = planned.batch_parts(leaves, self._ranks.rank)
        before, start = self._peers.received_bytes, time.perf_counter()
        with self._communicating():
            record = self._executor.step(part)
        seconds = time.perf_counter() - start
        received = self._peers.received_bytes - before
        measured = self._ranks.share([seconds, received, self._executor.peak_bytes, self._stop.requested])
        self.number += 1
        self.skipped += record.skipped
        columns: list[tuple[float, ...]] = list(zip(*measured, strict=True))
        self.is_stopping = any(columns[3])
        log = WorkersStep(columns[0], tuple(map(int, columns[1])), tuple(map(int, columns[2])))
        return TeamStep(log, record.outputs, self._generator.get_state(), record.skipped)

    def state(self, live: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Bring the state together at every rank; a copy, by key, of what any worker has.

        Args:
            live: the state that was loaded last, by key.
        """
        planned, error = self.planned_now, self.ended_by
        try:
            self._agree(
                "bring the state back" + ("" if error is None else f" after {type(error).__name__}: {error}"), []
            )
        except StowageError as disagreement:
            raise error or disagreement from disagreement
        own = {key: value.clone() for key, value in self._executor.state().items()}
        dtypes = {key: live[key].dtype for _, key in planned.graph.program.state}
        with self._patiently():
            parts = gather_parts(self._ranks, self._tcp, own, dtypes)
        return planned.whole_state(live, parts)

    def bring(self, into: Mapping[str, Tensor]) -> set[str]:
        """Bring the state together at every rank; returns the keys of what any worker has.

        Args:
            into: whole tensors by key, which are written.
        """
        state = self.state(into)
        for key, value in state.items():
            into[key].copy_(value)
        return set(state)

    def save(self, folder: Path, names: Mapping[str, str]) -> WrittenPart:
        """Let each rank write its part of a checkpoint; as `Team.save`.

        Raises:
            OSError: a rank cannot.
        """
        rank = self._ranks.rank

        def write() -> str:
            part = write_part(folder, rank, self.owned[rank], self._executor.state(), names)
            return b64encode(part.to_bytes()).decode()

        return sum((WrittenPart.from_bytes(b64decode(each)) for each in at_each(self._ranks, write)), WrittenPart())

    def close(self) -> None:
        """Leave the other ranks."""
        self._ranks.leave()
        self._tcp.close()
        self._close_device()

    def _agree(self, doing: str, facts: Sequence[Fact]) -> None:
        refuse_differences(self._ranks, [Fact("next task", f"to {doing}", _SAME_CALLS, is_shown=True), *facts])

    @contextmanager
    def _communicating(self) -> Iterator[None]:
        before = communicate_by(self._peers)
        try:
            with self._patiently():
                yield
        finally:
            communicate_by(before)

    @contextmanager
    def _patiently(self) -> Iterator[None]:
        """Say what has happened to a rank that is gone, in place of what the op that has met it did."""
        try:
            yield
        except Exception as error:
            cause: BaseException | None = error
            while not isinstance(cause, PeerLostError | RankFailedError):
                if cause is None:
                    raise
                cause = cause.__cause__
            if isinstance(cause, PeerLostError):
                raise self._ranks.cause(cause) from error
            raise cause from None

    def _close_device(self) -> None:
        if self._device is not None:
            self._device.close()
            self._device = None


def _text_of(numbers: Mapping[str, float]) -> str:
    return json.dumps([[name, float(value).hex()] for name, value in sorted(numbers.items())])
