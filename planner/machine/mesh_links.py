"""Which links the workers of a partition use: one level after another, the slowest links first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from planner.errors import StowageError
from planner.machine.machine_types import Link, Machine


@dataclass(frozen=True, slots=True)
class MeshLevel:
    """One level of a mesh of workers.

    Args:
        workers: into how many parts this level cuts each part of the level before.
        link: between the workers of a part, as one of them sees it while all workers communicate.
        between_hosts: whether the link is the network.
    """

    workers: int
    link: Link
    between_hosts: bool = False


def mesh_levels(machine: Machine, workers: int | Sequence[int]) -> tuple[MeshLevel, ...]:
    """The levels over which a step is split, outermost first, and the link of each.

    Outer levels carry the least traffic, so they get the slow links: first hosts, then the devices of a host. Hosts
    have equally many workers, and there are as few hosts as possible. All devices of a host use its network link at
    once and share it.

    Args:
        machine: its devices run one worker each.
        workers: how many there are, which are split by prime factors, or the factor of every level.

    Raises:
        StowageError: the machine has fewer devices, or cannot spread the workers evenly over hosts, or the link between
            its devices is not known.
    """
    factors = None if isinstance(workers, int) else tuple(workers)
    count = workers if isinstance(workers, int) else prod(workers)
    if count < 1 or (factors is not None and min(factors, default=2) < 2):
        raise StowageError(f"workers must be a whole number, at least 1, or factors of at least 2, got {workers!r}")
    local = _workers_per_host(machine, count)
    if factors is None:
        factors = (*prime_factors(count // local), *prime_factors(local))
    levels = []
    inside = count
    for factor in factors:
        link = machine.network_link if inside > local else machine.peer_link
        if link is None:
            between = "the hosts" if inside > local else "the devices"
            raise StowageError(f"the link between {between} of {machine.name} is not known")
        levels.append(MeshLevel(factor, _shared(link, local) if inside > local else link, inside > local))
        inside //= factor
    return tuple(levels)


def _workers_per_host(machine: Machine, workers: int) -> int:
    devices = len(machine.devices)
    most = devices * machine.hosts
    if workers > most:
        raise StowageError(
            f"{machine.name} has {most} device{'s' * (most > 1)}, too few for {workers} workers; "
            f"choose a larger machine, such as h100x8{f':hosts={-(-workers // 8)}' if workers > 8 else ''}"
        )
    for hosts in range(-(-workers // devices), machine.hosts + 1):
        if workers % hosts == 0:
            return workers // hosts
    possible = [
        count
        for count in range(1, most + 1)
        if any(count % hosts == 0 for hosts in range(-(-count // devices), machine.hosts + 1))
    ]
    near = [*[count for count in possible if count < workers][-1:], *[c for c in possible if c > workers][:1]]
    raise StowageError(
        f"{workers} workers cannot be spread evenly over at most {machine.hosts} hosts of {devices} devices; "
        f"choose {' or '.join(map(str, near))}"
    )  # fmt: skip


def _shared(link: Link, devices: int) -> Link:
    return Link(link.bandwidth / devices, link.duplex_bandwidth / devices, link.latency)


def prime_factors(workers: int) -> tuple[int, ...]:
    """The prime factors of a number of workers, the largest first.

    Raises:
        StowageError: there are none.
    """
    if not isinstance(workers, int) or workers < 1:
        raise StowageError(f"workers must be a whole number, at least 1, got {workers!r}")
    found, factor = [], 2
    while workers > 1:
        if factor * factor > workers:
            factor = workers  # what is left is prime
        while workers % factor == 0:
            found.append(factor)
            workers //= factor
        factor += 1
    return tuple(reversed(found))
