"""What PyTorch's launcher says in a process that it has started: which rank this is, and where the others are found."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import torch.distributed as dist

from planner import torch_private as private
from planner.errors import StowageError

#: How long a rank looks for the launcher's store, and for the other ranks in it.
JOIN_SECONDS = 120
_MOST_RANKS = 4096
_MOST_PORT = 2**16 - 1

#: Kept for as long as the process lives: the first rank may serve one to the others.
_stores: dict[tuple[str, int], private.Store] = {}


@dataclass(frozen=True)
class Launch:
    """A rank of a launch.

    Args:
        rank: this one.
        ranks: how many there are.
        local_ranks: how many of them are on this host, as far as the launcher says.
        address: of the store, a host's name and a port; None if that is not known.
    """

    rank: int
    ranks: int
    local_ranks: int
    address: tuple[str, int] | None


def is_launched(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a launcher has started this process, such as `torchrun`, or it has joined a process group by itself."""
    return "RANK" in environment or "WORLD_SIZE" in environment or _initialised()


def launched(environment: Mapping[str, str] = os.environ) -> Launch:
    """The rank that this process is.

    Args:
        environment: the process's own.

    Raises:
        StowageError: the environment is incomplete, or not that of a launch.
    """
    local = _number(environment, "LOCAL_WORLD_SIZE", 1, _MOST_RANKS) if "LOCAL_WORLD_SIZE" in environment else 1
    if _initialised():
        known = "MASTER_ADDR" in environment and "MASTER_PORT" in environment
        address = (environment["MASTER_ADDR"], _number(environment, "MASTER_PORT", 0, _MOST_PORT)) if known else None
        return Launch(dist.get_rank(), dist.get_world_size(), local, address)
    ranks = _number(environment, "WORLD_SIZE", 1, _MOST_RANKS)
    rank = _number(environment, "RANK", 0, ranks - 1)
    port = _number(environment, "MASTER_PORT", 1, _MOST_PORT)
    return Launch(rank, ranks, local, (_text(environment, "MASTER_ADDR"), port))


def store_of(launch: Launch, environment: Mapping[str, str] = os.environ) -> private.Store:
    """The store of all ranks; may block for longer than `JOIN_SECONDS` where something else answers at its address.

    Raises:
        StowageError: its port is in use, or it cannot be reached.
    """
    if _initialised():
        return private.default_store()
    assert launch.address is not None, "it is known where no process group is"
    if launch.address not in _stores:
        serves = launch.rank == 0 and environment.get("TORCHELASTIC_USE_AGENT_STORE") != str(True)
        _stores[launch.address] = _store(*launch.address, launch.ranks, serves=serves)
    return _stores[launch.address]


def unreachable(address: tuple[str, int] | None) -> StowageError:
    """Says that the store cannot be reached."""
    there = "" if address is None else f" at {address[0]}:{address[1]}"
    return StowageError(
        f"the launcher's store cannot be reached{there}: MASTER_ADDR and MASTER_PORT must be those of rank 0, which "
        "must run and be reachable from here"
    )


def _initialised() -> bool:
    return dist.is_available() and dist.is_initialized()


def _store(host: str, port: int, ranks: int, *, serves: bool) -> private.Store:
    try:
        return private.tcp_store(host, port, ranks, serves=serves, seconds=JOIN_SECONDS)
    except RuntimeError as error:
        if serves and "EADDRINUSE" in str(error):
            raise StowageError(
                f"port {port} is in use on this host, where rank 0 serves the others: give all ranks another "
                "MASTER_PORT"
            ) from error
        raise unreachable((host, port)) from error


def _text(environment: Mapping[str, str], name: str) -> str:
    if not environment.get(name):
        raise StowageError(
            f"{name} is not set, which each rank of a launch has beside RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT: "
            "start the ranks by torchrun, or unset RANK and WORLD_SIZE to run all workers from this process"
        )
    return environment[name]


def _number(environment: Mapping[str, str], name: str, least: int, most: int) -> int:
    text = _text(environment, name)
    if not (text.isascii() and text.isdecimal()) or not least <= int(text) <= most:
        raise StowageError(f"{name} must be a whole number from {least} to {most:,}, got {text!r}")
    return int(text)
