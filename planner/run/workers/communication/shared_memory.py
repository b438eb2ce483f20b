"""Exchanges through memory that all workers of a machine have mapped, far faster than its network."""

from __future__ import annotations

import mmap
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor

from planner.run.workers.communication.transport import PeerLostError

#: In the folder of all workers.
EXCHANGE_FILE = "exchange"
#: A sender fills one half of a box while the receiver may still read the other.
_HALVES = 2
#: Of a half at most: it stays in a core's cache between the copy into it and the copy out of it.
_HALF_BYTES = 256 * 1024
#: Of all boxes together at most.
_ALL_BYTES = 32 * 1024 * 1024
_PAGE_BYTES = 4096


def exchange_bytes(workers: int) -> int:
    """Bytes of the file that so many workers exchange through."""
    return _boxes(workers) * _HALVES * _half_bytes(workers)


def _boxes(workers: int) -> int:
    return max(1, workers * (workers - 1))


def _half_bytes(workers: int) -> int:
    return min(_HALF_BYTES, _ALL_BYTES // (_boxes(workers) * _HALVES) // _PAGE_BYTES * _PAGE_BYTES)


class SharedMemory:
    """A file in memory, with a box of two halves for each worker and each it sends to, and a socket for each pair.

    A byte on the socket says that a half was filled. Whoever fills a half for the second time has had a byte for the
    half between from the other side, which sent it after it had emptied the first: nobody has to say so.

    Args:
        folder: with a file of `exchange_bytes`; sockets are made in it.
        worker: this worker.
        workers: how many there are.
    """

    def __init__(self, folder: Path, worker: int, workers: int) -> None:
        self._folder, self._worker, self._workers = folder, worker, workers
        self._half_bytes = _half_bytes(workers)
        self._sockets: dict[int, socket.socket] = {}
        self._rounds = dict.fromkeys(range(workers), 0)
        with (folder / EXCHANGE_FILE).open("r+b") as file:
            self._memory = torch.frombuffer(mmap.mmap(file.fileno(), exchange_bytes(workers)), dtype=torch.uint8)
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(folder / str(worker)))
        self._server.listen(workers)

    def connect(self) -> None:
        """Find the others; as `Transport.connect`."""
        for peer in range(self._worker):
            self._sockets[peer] = socket.socket(socket.AF_UNIX)
            self._sockets[peer].connect(str(self._folder / str(peer)))
            self._sockets[peer].sendall(bytes([self._worker]))
        for _ in range(self._worker + 1, self._workers):
            end = self._server.accept()[0]
            self._sockets[end.recv(1)[0]] = end
        self._server.close()
        self._boxes = {
            (peer, half): (self._box(self._worker, peer, half), self._box(peer, self._worker, half))
            for peer in self._sockets
            for half in range(_HALVES)
        }

    def exchange(self, sends: Mapping[int, Tensor], receives: Mapping[int, Tensor]) -> None:
        """Send to workers and receive from them; as `Transport.exchange`."""
        left = {peer: max(len(part), len(receives[peer])) for peer, part in sends.items()}
        begin = 0
        while left := {peer: size for peer, size in left.items() if size > begin}:
            end = begin + self._half_bytes
            for peer in left:
                part = sends[peer][begin:end]
                self._boxes[peer, self._rounds[peer] % _HALVES][0][: len(part)].copy_(part)
                self._tell(peer)
            for peer in left:
                self._await(peer)
                into = receives[peer][begin:end]
                into.copy_(self._boxes[peer, self._rounds[peer] % _HALVES][1][: len(into)])
                self._rounds[peer] += 1
            begin = end

    def close(self) -> None:
        """Leave the others, who notice it when they next exchange something with this worker."""
        for end in self._sockets.values():
            end.close()

    def _box(self, sender: int, receiver: int, half: int) -> Tensor:
        number = (sender * (self._workers - 1) + receiver - (receiver > sender)) * _HALVES + half
        return self._memory[number * self._half_bytes : (number + 1) * self._half_bytes]

    def _tell(self, peer: int) -> None:
        try:
            self._sockets[peer].send(b"\0")
        except OSError as error:
            raise PeerLostError(f"worker {peer} is gone") from error

    def _await(self, peer: int) -> None:
        with suppress(OSError):
            if self._sockets[peer].recv(1):
                return
        raise PeerLostError(f"worker {peer} is gone")
