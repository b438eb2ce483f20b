"""Exchanges over TCP that a watching thread can end: a receive of gloo's cannot be given up once it waits."""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import Tensor

from planner.run.workers.communication.transport import PeerLostError

#: In front of each part: the number of the part between the two ranks, and its bytes. A rank that is at another
#: collective than its peer is found out by it, where bytes of the same number would be taken for others.
_HEADER = struct.Struct("<QQ")
#: Between two looks at whether the exchange is to be given up.
_LOOK_MILLISECONDS = 100
#: Of one call to the system: with more, the receiver would wait for the first bytes until the last are copied.
_CALL_BYTES = 1024 * 1024


@dataclass
class _Transfer:
    """What is still to be sent, or to be filled, of a header and the bytes behind it."""

    header: memoryview
    content: memoryview
    done: int = field(default=0)

    @property
    def left(self) -> list[memoryview]:
        """The bytes of the next call to the system."""
        begin = max(0, self.done - _HEADER.size)
        here = self.content[begin : begin + _CALL_BYTES]
        return [self.header[self.done :], here] if self.done < _HEADER.size else [here]

    @property
    def complete(self) -> bool:
        """Whether nothing is left."""
        return self.done == _HEADER.size + len(self.content)


class Tcp:
    """A socket to each other rank.

    Args:
        sockets: by rank, connected.
        check: called ten times a second while nothing comes; may raise to give the exchange up.
    """

    def __init__(self, sockets: Mapping[int, socket.socket], check: Callable[[], object] = lambda: None) -> None:
        self._sockets, self._check = dict(sockets), check
        self._sent = dict.fromkeys(sockets, 0)
        self._received = dict.fromkeys(sockets, 0)
        for each in self._sockets.values():
            each.setblocking(False)
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._peers = {each.fileno(): peer for peer, each in self._sockets.items()}

    def connect(self) -> None:
        """Nothing is left to do; as `Transport.connect`."""

    def exchange(self, sends: Mapping[int, Tensor], receives: Mapping[int, Tensor]) -> None:
        """Send to workers and receive from them; as `Transport.exchange`."""
        outgoing = {peer: self._outgoing(peer, part) for peer, part in sends.items() if len(part)}
        incoming = {
            peer: _Transfer(memoryview(bytearray(_HEADER.size)), _memory(into))
            for peer, into in receives.items()
            if len(into)
        }
        for peer in list(outgoing):
            self._send(peer, outgoing)  # what fits goes at once
        poll, asked = select.poll(), dict.fromkeys(outgoing | incoming, 0)
        while outgoing or incoming:
            for peer in asked:
                events = select.POLLOUT * (peer in outgoing) | select.POLLIN * (peer in incoming)
                if events and events != asked[peer]:
                    poll.register(self._sockets[peer], events)
                elif asked[peer] and not events:
                    poll.unregister(self._sockets[peer])
                asked[peer] = events
            ready = poll.poll(_LOOK_MILLISECONDS)
            if not ready:
                self._check()
            for number, events in ready:
                peer = self._peers[number]
                if peer in incoming and events & ~select.POLLOUT:
                    self._receive(peer, incoming)
                if peer in outgoing and events & ~select.POLLIN:
                    self._send(peer, outgoing)

    def close(self) -> None:
        """Leave the others, who notice it when they next exchange something with this one."""
        for each in self._sockets.values():
            each.close()

    def _outgoing(self, peer: int, part: Tensor) -> _Transfer:
        header = memoryview(_HEADER.pack(self._sent[peer], len(part)))
        self._sent[peer] += 1
        return _Transfer(header, _memory(part))

    def _send(self, peer: int, outgoing: dict[int, _Transfer]) -> None:
        part = outgoing[peer]
        try:
            part.done += self._sockets[peer].sendmsg(part.left)
        except BlockingIOError:
            return
        except OSError as error:
            raise PeerLostError(f"rank {peer} is gone") from error
        if part.complete:
            del outgoing[peer]

    def _receive(self, peer: int, incoming: dict[int, _Transfer]) -> None:
        part = incoming[peer]
        headless = part.done < _HEADER.size
        try:
            count = self._sockets[peer].recvmsg_into(part.left)[0]
        except BlockingIOError:
            return
        except OSError as error:
            raise PeerLostError(f"rank {peer} is gone") from error
        if not count:
            raise PeerLostError(f"rank {peer} is gone")
        part.done += count
        if headless and part.done >= _HEADER.size:
            self._refuse_other(peer, part)
        if part.complete:
            del incoming[peer]

    def _refuse_other(self, peer: int, part: _Transfer) -> None:
        expected = self._received[peer], len(part.content)
        sent = _HEADER.unpack(part.header)
        if sent != expected:
            raise PeerLostError(
                f"rank {peer} is at another collective: it sends {sent[1]:,} bytes as part {sent[0]:,}, "
                f"and {expected[1]:,} as part {expected[0]:,} are expected"
            )
        self._received[peer] += 1


def _memory(part: Tensor) -> memoryview:
    return part.numpy().data
