"""The ranks of a launch during a run: what they tell each other through rank 0, and when one of them is lost."""

from __future__ import annotations

import json
import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from threading import Condition, Lock, Thread
from typing import Any

from planner.errors import StowageError
from planner.run.workers.processes.pool import WorkerFailedError

#: Between two signs of life.
_BEAT_SECONDS = 0.5
#: A rank that gives no sign of life for so long is given up.
_SILENCE_SECONDS = 6.0
#: A message is sent and received in at most so long, once it has begun.
_MESSAGE_SECONDS = 3
_LOOK_SECONDS = 0.1
#: How long a rank that has found another one gone waits to hear what happened to it.
_CAUSE_SECONDS = 2.0
_VALUE, _BEAT, _FAILED, _BYE = b"v", b"b", b"f", b"q"


class RankFailedError(WorkerFailedError):
    """A rank raised an error, ended or stopped answering, and the run is over on all of them.

    Args:
        rank: which.
        why: what happened to it.
        rest: what else there is to say.
    """

    def __init__(self, rank: int, why: str, rest: str = "") -> None:
        super().__init__(rank, why)
        self.args = (f"rank {rank} {why}; the run is over on all ranks{rest}",)


class Ranks:
    """The connection of this rank to the others, watched by a thread until it is left.

    Args:
        rank: this one.
        ranks: how many there are.
        sockets: to rank 0; at rank 0, to each other one.
        check_cancelled: called about ten times a second while waiting; may raise.
    """

    def __init__(
        self, rank: int, ranks: int, sockets: dict[int, socket.socket],
        check_cancelled: Callable[[], object] = lambda: None,
    ) -> None:  # fmt: skip
        self.rank, self.ranks, self.check_cancelled = rank, ranks, check_cancelled
        self._ends = {peer: _connection(each) for peer, each in sockets.items()}
        self._locks = {peer: Lock() for peer in self._ends}
        self._changed = Condition()
        self._values: dict[int, deque[bytes]] = {peer: deque() for peer in self._ends}
        self._gone: set[int] = set()
        self._failure: RankFailedError | None = None
        self._leaving = False
        self._heard = dict.fromkeys(self._ends, time.monotonic())
        self._watcher = Thread(target=self._watch, name="stowage ranks", daemon=True)
        self._watcher.start()

    def share(self, value: Any) -> list[Any]:
        """Tell all ranks a value that JSON has, and return those of all; every rank calls this as often as the others.

        Raises:
            RankFailedError: a rank has failed.
        """
        own = json.dumps(value)
        if self.rank:
            self._send(0, _VALUE, own.encode())
            return list(json.loads(self._next(0)))
        values = [own, *(self._next(peer).decode() for peer in sorted(self._ends))]
        everything = f"[{','.join(values)}]"
        for peer in self._ends:
            self._send(peer, _VALUE, everything.encode())
        return list(json.loads(everything))

    def check(self) -> None:
        """Raise if another rank has failed, or this one's work was cancelled.

        Raises:
            RankFailedError: it has.
        """
        self.check_cancelled()
        if self._failure is not None:
            raise self._failure

    @property
    def left(self) -> bool:
        """Whether this rank has left the others."""
        return self._leaving

    def cause(self, lost: Exception) -> StowageError:
        """Why an exchange with another rank could not be completed, as far as that is known within two seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._failure is not None, _CAUSE_SECONDS)
        return self._failure or StowageError(f"{lost}; the run is over on all ranks")

    def fail(self, why: str) -> None:
        """Tell all other ranks that this one has failed, and leave them."""
        if self._failure is None:
            for peer in self._ends:
                self._send(peer, _FAILED, json.dumps([self.rank, why]).encode())
        self.leave()

    def leave(self) -> None:
        """End the connection, once the others have read everything."""
        if self._leaving:
            return
        self._leaving = True
        for peer in self._ends:
            self._send(peer, _BYE)
        with self._changed:
            self._changed.wait_for(lambda: self._gone >= self._ends.keys(), _CAUSE_SECONDS)
        self._gone |= self._ends.keys()
        self._watcher.join()
        for each in self._ends.values():
            each.close()

    def _send(self, peer: int, kind: bytes, content: bytes = b"") -> None:
        try:
            with self._locks[peer]:
                self._ends[peer].send_bytes(kind + content)
        except BlockingIOError:
            self._silent(peer)
        except (OSError, ValueError):  # closed by the other, or by this one
            self._lost(peer)

    def _next(self, peer: int) -> bytes:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._values[peer] or self._failure or peer in self._gone, _LOOK_SECONDS)
                if self._values[peer]:
                    return self._values[peer].popleft()
                if self._failure is not None:
                    raise self._failure
                if peer in self._gone:
                    raise RankFailedError(peer, "has left the run")
            self.check_cancelled()

    def _watch(self) -> None:
        beat = time.monotonic()
        while there := {peer: each for peer, each in self._ends.items() if peer not in self._gone}:
            ready = wait(there.values(), _LOOK_SECONDS)
            for peer, each in there.items():
                if each in ready:
                    self._hear(peer)
            now = time.monotonic()
            if now > beat and not self._leaving:
                beat = now + _BEAT_SECONDS
                for peer in there:
                    self._send(peer, _BEAT)
            for peer in there:
                if now - self._heard[peer] > _SILENCE_SECONDS:
                    self._silent(peer)

    def _hear(self, peer: int) -> None:
        try:
            said = self._ends[peer].recv_bytes()
        except BlockingIOError:
            return self._silent(peer)
        except (EOFError, OSError):
            return self._lost(peer)
        self._heard[peer] = time.monotonic()
        kind, content = said[:1], said[1:]
        with self._changed:
            if kind == _VALUE:
                self._values[peer].append(content)
            if kind == _BYE:
                self._gone.add(peer)
            self._changed.notify_all()
        if kind == _FAILED:
            self._note(*json.loads(content))
        return None

    def _silent(self, peer: int) -> None:
        self._gone.add(peer)
        self._note(peer, f"has not answered for {_SILENCE_SECONDS:.0f} seconds")

    def _lost(self, peer: int) -> None:
        """Note that a connection is closed, by a rank that has said that it leaves or by one that has ended."""
        if peer not in self._gone:
            self._gone.add(peer)
            self._note(peer, "has ended unexpectedly")

    def _note(self, rank: int, why: str) -> None:
        """Note the first failure, and tell the others of it at rank 0, through which they know each other."""
        with self._changed:
            first = self._failure is None and not self._leaving
            if first:
                self._failure = RankFailedError(rank, why)
            self._changed.notify_all()
        if first and self.rank == 0:
            for peer in self._ends:
                if peer != rank and peer not in self._gone:
                    self._send(peer, _FAILED, json.dumps([rank, why]).encode())


def _connection(end: socket.socket) -> Connection:
    end.setblocking(True)
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for direction in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
        end.setsockopt(socket.SOL_SOCKET, direction, struct.pack("ll", _MESSAGE_SECONDS, 0))
    with suppress(OSError):
        return Connection(end.detach())
    raise StowageError("the connection to another rank is closed; start all ranks again")
