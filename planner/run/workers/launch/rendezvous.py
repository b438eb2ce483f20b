"""How ranks find each other: each tells its address through the launcher's store, and connects to those before it."""

from __future__ import annotations

import secrets
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from itertools import count
from threading import Thread

from planner import torch_private as private
from planner.errors import StowageError
from planner.run.workers.launch.environment import JOIN_SECONDS, Launch, store_of, unreachable

_LOOK_SECONDS = 0.1
#: A connection says at once who it is.
_HELLO_SECONDS = 5.0
_HELLO = struct.Struct("<32sI?")  # the word of this run, the rank, and whether it is for its bytes

#: How many runs this process has joined: all ranks make the same.
_runs = count()


@dataclass
class Connections:
    """The sockets of a rank.

    Args:
        control: to rank 0, or to every other one at rank 0.
        data: to every other one, for the bytes of collectives.
    """

    control: dict[int, socket.socket] = field(default_factory=dict)
    data: dict[int, socket.socket] = field(default_factory=dict)

    def close(self) -> None:
        """Close all."""
        for each in (*self.control.values(), *self.data.values()):
            each.close()


def meet(launch: Launch, check_cancelled: Callable[[], object]) -> Connections:
    """Connect to all other ranks.

    Args:
        launch: this rank's.
        check_cancelled: called about ten times a second; may raise.

    Raises:
        StowageError: the store cannot be reached, or other ranks have not come in time.
    """
    found = Connections()
    faults: list[BaseException] = []
    until = time.monotonic() + JOIN_SECONDS

    def work() -> None:
        try:
            _meet(launch, found, until)
        except BaseException as error:
            faults.append(error)

    # in a thread, because PyTorch waits without limit for a store where another program answers
    thread = Thread(target=work, name="stowage join", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            check_cancelled()
            thread.join(_LOOK_SECONDS)
            if time.monotonic() > until + _HELLO_SECONDS:
                raise unreachable(launch.address)
        if faults:
            raise faults[0]
    except BaseException:
        found.close()
        raise
    return found


def _meet(launch: Launch, found: Connections, until: float) -> None:
    store = private.prefix_store(f"stowage/{next(_runs)}", store_of(launch))
    with _listening(launch.ranks) as server:
        try:
            if launch.rank == 0:
                store.set("word", secrets.token_hex(16))
            store.set(str(launch.rank), f"{_own_address(launch.address)} {server.getsockname()[1]}")
            word = _told(store, "word", 0, until)
        except RuntimeError as error:
            raise unreachable(launch.address) from error
        for peer in range(launch.rank):
            host, port = _told(store, str(peer), peer, until).decode().split()
            for is_data in (False, True) if peer == 0 else (True,):
                end = _connected(host, int(port), peer)
                end.sendall(_HELLO.pack(word, launch.rank, is_data))
                (found.data if is_data else found.control)[peer] = end
        _accept(server, launch, word, found, until)


def _told(store: private.Store, key: str, peer: int, until: float) -> bytes:
    while not store.check([key]):
        if time.monotonic() > until:
            raise _missing(peer)
        time.sleep(_LOOK_SECONDS / 5)
    return bytes(store.get(key))


def _missing(rank: int) -> StowageError:
    return StowageError(
        f"rank {rank} has not come within {JOIN_SECONDS} seconds: every rank must call planner.run_workers, as often "
        "as the others"
    )


def _listening(ranks: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=2 * ranks)
    return socket.create_server(("", 0), backlog=2 * ranks)


def _own_address(store: tuple[str, int] | None) -> str:
    """Where other ranks reach this host: where it is seen from the store's, whose own address is known to all."""
    if store is None:
        return socket.gethostname()
    host, port = store
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM):
        with suppress(OSError), socket.socket(family, kind, protocol) as end:
            end.connect(address)  # sends nothing
            own, there = end.getsockname()[0], end.getpeername()[0]
            return host if own == there or ip_address(own).is_loopback else str(own)
    return socket.gethostname()


def _connected(host: str, port: int, peer: int) -> socket.socket:
    try:
        end = socket.create_connection((host, port), timeout=_HELLO_SECONDS)
    except OSError as error:
        raise StowageError(
            f"rank {peer} cannot be reached at {host}:{port}: its host must be reachable from this one at any port"
        ) from error
    end.settimeout(None)
    return end


def _accept(server: socket.socket, launch: Launch, word: bytes, found: Connections, until: float) -> None:
    later = range(launch.rank + 1, launch.ranks)
    server.settimeout(_LOOK_SECONDS)
    while missing := [
        peer for peer in later if peer not in found.data or (launch.rank == 0 and peer not in found.control)
    ]:
        if time.monotonic() > until:
            raise _missing(missing[0])
        with suppress(TimeoutError):
            end = server.accept()[0]
            end.settimeout(_HELLO_SECONDS)
            said = _hello(end)
            if said is None or said[0] != word or said[1] not in later:
                end.close()  # a stranger
                continue
            end.settimeout(None)
            (found.data if said[2] else found.control)[said[1]] = end


def _hello(end: socket.socket) -> tuple[bytes, int, bool] | None:
    said = b""
    with suppress(OSError):
        while len(said) < _HELLO.size:
            part = end.recv(_HELLO.size - len(said))
            if not part:
                return None
            said += part
        word, rank, is_data = _HELLO.unpack(said)
        return word, rank, is_data
    return None
