"""What a worker's process does: it makes the steps that it is asked for, together with the others."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import torch

from planner.errors import first_line
from planner.program import communicate_by
from planner.run.checkpoint.part import OwnedBox, WrittenPart, write_part
from planner.run.devices.cpu import CpuDevice
from planner.run.executor.executor import Executor
from planner.run.workers.communication.peers import Peers
from planner.run.workers.communication.transport import PeerLostError, Transport
from planner.run.workers.communication.transports import TRANSPORTS
from planner.run.workers.plans.box_packing import gathered
from planner.run.workers.processes.messages import StepNumbers, receive, send, unpacked

#: Between two signs of life.
_BEAT_SECONDS = 0.5


def work(address: str, worker: int) -> None:
    """Connect and do what is asked until the connection is closed; never returns.

    Args:
        address: of the socket of whoever asks.
        worker: the number of this worker.
    """
    end = socket.socket(socket.AF_UNIX)
    end.connect(address)
    replies = _Replies(Connection(end.detach()))
    replies.send("here", worker, os.getpid())
    Thread(target=replies.beat, daemon=True).start()
    try:
        _Worker(worker).obey(replies)
    except EOFError:
        os._exit(0)
    except BaseException as error:
        replies.send(
            "lost" if isinstance(error.__cause__, PeerLostError) else "failed", f"{type(error).__name__}: {error}"
        )
        os._exit(1)


class _Replies:
    """The connection to whoever asks; two threads send by it."""

    def __init__(self, connection: Connection) -> None:
        self.connection, self._lock = connection, Lock()

    def send(self, *reply: Any) -> None:
        """Reply; ends the process if nobody is there any more."""
        try:
            with self._lock:
                send(self.connection, reply)
        except OSError:
            os._exit(0)

    def beat(self) -> None:
        """Give a sign of life from time to time, also while a step waits for another worker."""
        while True:
            time.sleep(_BEAT_SECONDS)
            self.send("alive")


class _Worker:
    """One worker: its executor, and its peers."""

    def __init__(self, worker: int) -> None:
        self._worker = worker
        self._numbers: StepNumbers
        self._transport: Transport
        self._peers: Peers
        self._generator: torch.Generator
        self._executor: Executor
        self._owned: Sequence[OwnedBox]

    def obey(self, replies: _Replies) -> None:
        """Do what is asked, one thing after another."""
        while True:
            request, *args = receive(replies.connection)
            replies.send("done", getattr(self, f"_{request}")(*args))

    def _join(self, transport: str, folder: Path, workers: int) -> None:
        self._transport = TRANSPORTS[transport](folder, self._worker, workers)

    def _connect(self) -> None:
        self._transport.connect()

    def _prepare(self, data: bytes) -> set[str]:
        job, self._numbers = unpacked(data)
        job.settings.apply()
        torch.set_num_threads(job.threads)
        self._peers = Peers(job.mesh, job.worker, self._transport)
        communicate_by(self._peers)
        device = CpuDevice(job.plan.peak_bytes, job.plan.host_bytes)
        self._generator = device.generator()
        self._executor = Executor(job.graph, job.plan, device, generator=self._generator)
        self._executor.load(job.state)
        return set(self._executor.state())

    def _load(self, state: dict[str, torch.Tensor]) -> None:
        self._executor.load(state)

    def _step(self, numbers: dict[str, float], drawn: torch.Tensor, batch: list[torch.Tensor]) -> dict[str, Any]:
        self._numbers.values = numbers
        self._generator.set_state(drawn)
        before, start = self._peers.received_bytes, time.perf_counter()
        record = self._executor.step(batch)
        return {
            "outputs": record.outputs,
            "seconds": time.perf_counter() - start,
            "drawn": self._generator.get_state(),
            "skipped": record.skipped,
            "received_bytes": self._peers.received_bytes - before,
            "peak_bytes": self._executor.peak_bytes,
        }

    def _own(self, owned: Sequence[OwnedBox]) -> None:
        self._owned = owned

    def _boxes(self) -> torch.Tensor:
        return gathered(self._owned, self._executor.state())

    def _save(self, folder: Path, names: Mapping[str, str]) -> tuple[WrittenPart, str]:
        try:
            return write_part(folder, self._worker, self._owned, self._executor.state(), names), ""
        except (OSError, RuntimeError) as error:
            return WrittenPart(), getattr(error, "strerror", None) or first_line(error)

    def _state(self) -> dict[str, torch.Tensor]:
        return {key: value.clone() for key, value in self._executor.state().items()}
