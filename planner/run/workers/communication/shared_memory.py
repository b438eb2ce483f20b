"""Exchanges through memory that all workers of a machine have mapped, far faster than its network."""

from __future__ import annotations

import mmap
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
from torch import Tensor

from planner.run.workers.communication.exchange_kernel import DONE, HEADER_BYTES, WAKE, exchange_parts
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
#: How often a worker looks for what it waits for, one millisecond long, before it sleeps; to be woken takes 50 us.
_SPINS = 2000


def exchange_bytes(workers: int) -> int:
    """Bytes of the file that so many workers exchange through."""
    return _boxes(workers) * _box_bytes(workers)


def load_exchange() -> None:
    """Load or compile the exchange: takes a third of a second, which whoever forks the workers spends for all."""
    none = np.zeros(0, np.int64)
    exchange_parts(none, none, none, none, none, none, none, none, 1, 0, np.zeros(3, np.int64), none)


def _boxes(workers: int) -> int:
    return max(1, workers * (workers - 1))


def _box_bytes(workers: int) -> int:
    return HEADER_BYTES + _HALVES * _half_bytes(workers)


def _half_bytes(workers: int) -> int:
    return min(_HALF_BYTES, _ALL_BYTES // (_boxes(workers) * _HALVES) // _PAGE_BYTES * _PAGE_BYTES)


class SharedMemory:
    """A file in memory, with a box for each worker and each it sends to, and a socket for each pair.

    A worker that has waited for long sleeps until a byte comes on the socket. Whoever fills a half of a box for the
    second time has taken the part between from the other side, which filled it in after it had emptied the first:
    nobody has to say so.

    Args:
        folder: with a file of `exchange_bytes`; sockets are made in it.
        worker: this worker.
        workers: how many there are.
    """

    def __init__(self, folder: Path, worker: int, workers: int) -> None:
        self._folder, self._worker, self._workers = folder, worker, workers
        self._half_bytes = _half_bytes(workers)
        self._sockets: dict[int, socket.socket] = {}
        self._rounds = np.zeros(workers, np.int64)
        with (folder / EXCHANGE_FILE).open("r+b") as file:
            self._memory = np.frombuffer(mmap.mmap(file.fileno(), exchange_bytes(workers)), np.uint8)
        others = [peer for peer in range(workers) if peer != worker]
        self._own_boxes, self._their_boxes = np.zeros((2, workers), np.int64)
        self._own_boxes[others] = [self._box(worker, peer) for peer in others]
        self._their_boxes[others] = [self._box(peer, worker) for peer in others]
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

    def exchange(self, sends: Mapping[int, Tensor], receives: Mapping[int, Tensor]) -> None:
        """Send to workers and receive from them; as `Transport.exchange`."""
        peers, parts = list(sends), [*sends.values()]
        into = [receives[peer] for peer in peers]
        arrays = (
            peers, [part.data_ptr() for part in parts], [part.nbytes for part in parts],
            [part.data_ptr() for part in into], [part.nbytes for part in into],
        )  # fmt: skip
        numbers, sent, sent_sizes, received, received_sizes = np.array(arrays, np.int64)
        progress, asleep = np.zeros(3, np.int64), np.zeros(len(peers), np.int64)
        while True:
            at = exchange_parts(
                numbers, sent, sent_sizes, received, received_sizes, self._own_boxes, self._their_boxes, self._rounds,
                self._half_bytes, _SPINS, progress, asleep,
            )  # fmt: skip
            if at == DONE:
                return
            if at == WAKE:
                for place in np.flatnonzero(asleep):
                    self._wake(peers[place])
            else:
                self._sleep(peers[at])

    def close(self) -> None:
        """Leave the others, who notice it when they next wait for this worker."""
        for end in self._sockets.values():
            end.close()

    def _box(self, sender: int, receiver: int) -> int:
        number = sender * (self._workers - 1) + receiver - (receiver > sender)
        return int(self._memory.ctypes.data) + number * _box_bytes(self._workers)

    def _wake(self, peer: int) -> None:
        try:
            self._sockets[peer].send(b"\0", socket.MSG_DONTWAIT)
        except BlockingIOError:
            return  # bytes that wake it are there already
        except OSError as error:
            raise PeerLostError(f"worker {peer} is gone") from error

    def _sleep(self, peer: int) -> None:
        """Wait for a byte, which may be of an earlier wait: one that was over before the byte was sent."""
        with suppress(OSError):
            if self._sockets[peer].recv(_PAGE_BYTES):
                return
        raise PeerLostError(f"worker {peer} is gone")
