"""Processes of the workers: started together, watched, and ended together."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

from planner.errors import StowageError
from planner.run.workers.communication.shared_memory import EXCHANGE_FILE
from planner.run.workers.communication.transports import shared_folder
from planner.run.workers.processes.messages import receive, send

#: On one machine.
MOST_WORKERS = 64
#: A worker that gives no sign of life for so long is given up.
_SILENCE_SECONDS = 6.0
_SILENT = f"has not answered for {_SILENCE_SECONDS:.0f} seconds"
#: A part of a message takes at most so long; the first such wait may end with some bytes, the second then with none.
_PART_SECONDS = 3
_START_SECONDS = 120.0
_LOOK_SECONDS = 0.1
#: How long the worker whose loss another one reports has to show what happened to it.
_CAUSE_SECONDS = 2.0


class WorkerFailedError(StowageError):
    """A worker raised an error, ended or stopped answering, and all workers were ended.

    Args:
        worker: its number.
        why: what happened to it.
        rest: what else there is to say.
    """

    def __init__(self, worker: int, why: str, rest: str = "") -> None:
        super().__init__(f"worker {worker} {why}; all workers were ended{rest}")
        self.worker, self.why = worker, why


class ForkServer:
    """The process that forks workers; one for as long as this process lives."""

    _shared: ForkServer | None = None

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "planner.run.workers.processes.fork_server"], stdin=subprocess.PIPE, text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )  # fmt: skip

    @classmethod
    def shared(cls) -> ForkServer:
        """The one of this process, started now if there is none."""
        if cls._shared is None or not cls._shared.alive:
            cls._shared = cls()
        return cls._shared

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def fork(self, address: str, worker: int) -> None:
        """Start a worker, which connects to an address."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{address}\t{worker}\n")
            self._process.stdin.flush()
        except OSError as error:
            raise StowageError("the process that starts workers has ended; run again") from error


class WorkerPool:
    """Workers that know each other; `close` ends them, whatever they are doing.

    Args:
        workers: how many.
        transport: of `TRANSPORTS`, or None, as for `shared_folder`.
        check_cancelled: called about ten times a second while waiting; may raise.

    Attributes:
        transport: the name of theirs.

    Raises:
        StowageError: they cannot be started.
    """

    def __init__(
        self, workers: int, transport: str | None = None, check_cancelled: Callable[[], object] = lambda: None
    ) -> None:
        self._check_cancelled = check_cancelled
        self._folder, self.transport = shared_folder(workers, transport)
        self._connections: list[Connection] = []
        self._processes: list[int] = []
        self._heard: list[float] = []
        try:
            self._start(workers)
            self.ask("join", [(self.transport, self._folder, workers)] * workers)
            self.ask("connect", [()] * workers)
            (self._folder / EXCHANGE_FILE).unlink(missing_ok=True)  # its memory is given back with the last worker
        except BaseException:
            self.close()
            raise

    def ask(self, request: str, args: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Ask all workers for something at once; returns what each replies.

        Args:
            request: what.
            args: per worker, its arguments; made one after another.

        Raises:
            WorkerFailedError: a worker failed, and the pool is closed.
        """
        for worker, (connection, own) in enumerate(zip(self._connections, args, strict=True)):
            with self._watched(worker):
                send(connection, (request, *own))
        self._heard = [time.monotonic()] * len(self._connections)
        replies: dict[int, Any] = {}
        lost: dict[int, tuple[float, str]] = {}  # when a worker reported that it has lost another one, and its words
        try:
            while len(replies) < len(self._connections):
                self._check_cancelled()
                there = {worker: each for worker, each in enumerate(self._connections) if worker not in lost}
                ready = wait(there.values(), _LOOK_SECONDS)
                for worker, connection in there.items():
                    if connection in ready:
                        self._hear(worker, replies, lost)
                self._give_up_first(lost)
        except BaseException:
            self.close()
            raise
        return [replies[worker] for worker in range(len(self._connections))]

    @property
    def closed(self) -> bool:
        """Whether all workers were ended."""
        return not self._connections

    def close(self) -> None:
        """End all workers; closing again does nothing."""
        for process in self._processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        for connection in self._connections:
            connection.close()
        self._processes, self._connections = [], []
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self, workers: int) -> None:
        address = str(self._folder / "workers")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(address)
            server.listen(workers)
            server.settimeout(_LOOK_SECONDS)
            forks = ForkServer.shared()
            for worker in range(workers):
                forks.fork(address, worker)
            found: dict[int, tuple[Connection, int]] = {}
            until = time.monotonic() + _START_SECONDS
            while len(found) < workers:
                self._check_cancelled()
                if time.monotonic() > until or not forks.alive:
                    raise StowageError(f"only {len(found)} of {workers} workers have started; run again")
                with suppress(TimeoutError):
                    end = server.accept()[0]
                    end.setblocking(True)
                    for direction in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
                        end.setsockopt(socket.SOL_SOCKET, direction, struct.pack("ll", _PART_SECONDS, 0))
                    connection = Connection(end.detach())
                    _, worker, process = receive(connection)
                    found[worker] = connection, process
        for worker in range(workers):
            self._connections.append(found[worker][0])
            self._processes.append(found[worker][1])

    def _hear(self, worker: int, replies: dict[int, Any], lost: dict[int, tuple[float, str]]) -> None:
        with self._watched(worker):
            kind, *values = receive(self._connections[worker])
        self._heard[worker] = time.monotonic()
        if kind == "failed":
            self._give_up(worker, f"failed: {values[0]}")
        if kind == "lost":
            lost[worker] = self._heard[worker], f"failed: {values[0]}"
        if kind == "done":
            replies[worker] = values[0]

    def _give_up_first(self, lost: dict[int, tuple[float, str]]) -> None:
        """Give up a worker that is silent, or the first that lost another one, if none shows itself as the cause."""
        now = time.monotonic()
        silent = min(
            (each for each in range(len(self._heard)) if each not in lost), key=self._heard.__getitem__, default=None
        )
        if silent is not None and now - self._heard[silent] > _SILENCE_SECONDS:
            self._give_up(silent, _SILENT)
        if lost:
            worker, (since, why) = next(iter(lost.items()))
            if silent is None or now - since > _CAUSE_SECONDS:
                self._give_up(worker, why)

    @contextmanager
    def _watched(self, worker: int) -> Iterator[None]:
        """Give a worker up that has ended, or that stopped in the middle of a message."""
        try:
            yield
        except BlockingIOError:
            self._give_up(worker, _SILENT)
        except (EOFError, OSError):
            self._give_up(worker, "has ended unexpectedly")

    def _give_up(self, worker: int, why: str) -> NoReturn:
        self.close()
        raise WorkerFailedError(worker, why)
