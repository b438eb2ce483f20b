"""How long collectives take: latency times steps, and bytes over the bandwidth of the link."""

from __future__ import annotations

from enum import StrEnum
from math import ceil, log2
from typing import Literal

from planner.errors import StowageError
from planner.machine.machine_types import Link

#: How the workers of a collective pass data on; `fastest` takes whichever is faster for the size, as NCCL and MPI do.
CollectiveAlgorithm = Literal["ring", "tree", "fastest"]


class Collective(StrEnum):
    """A communication of all workers of a part."""

    ALL_REDUCE = "all-reduce"
    ALL_GATHER = "all-gather"
    REDUCE_SCATTER = "reduce-scatter"
    ALL_TO_ALL = "all-to-all"
    HALO_EXCHANGE = "halo exchange"


def collective_seconds(
    collective: Collective, received: float, workers: int, link: Link, algorithm: CollectiveAlgorithm = "fastest"
) -> float:
    """Duration of a collective, by the model of Hockney: every step takes the link's latency and its bytes' time.

    With k workers, latency a, bandwidth b and r bytes received by each worker, where r is (k - 1) / k of the tensor
    for an all-gather and a reduce-scatter, of a worker's own chunk for an all-to-all, and twice that of the tensor for
    an all-reduce:

    - ring: all-gather and reduce-scatter (k - 1) a + r / b; all-reduce, which is both, 2 (k - 1) a + r / b; all-to-all
      by pairwise exchange (k - 1) a + r / b. The bytes are the least possible (Thakur, Rabenseifner and Gropp,
      Optimization of Collective Communication Operations in MPICH, 2005; Patarasuk and Yuan, 2009).
    - tree, with s = ceil(log2 k): all-gather and reduce-scatter by recursive doubling and halving, or Bruck's
      algorithm, s a + r / b; all-reduce by two pipelined binary trees 2 s a + r / b k / (k - 1), as in NCCL (Sanders,
      Speck and Traeff, Two-tree algorithms, 2009); all-to-all by Bruck's algorithm s a + r / b s k / (2 (k - 1)).
    - halo exchange: 2 a + r / b, with either neighbour once.

    Arithmetic of the reductions and copies within a device are not counted.

    Args:
        collective: which.
        received: bytes that each worker receives, by the ring.
        workers: how many there are.
        link: of a worker, in one direction.
        algorithm: `ring`, `tree`, or `fastest`.

    Returns:
        Seconds; 0 for one worker, or for no bytes.

    Raises:
        StowageError: there is no such algorithm.
    """
    if algorithm not in ("ring", "tree", "fastest"):
        raise StowageError(f"unknown algorithm {algorithm!r}; choose ring, tree or fastest")
    if workers < 2 or received <= 0:
        return 0.0
    if algorithm == "fastest":
        return min(collective_seconds(collective, received, workers, link, known) for known in ("ring", "tree"))
    if collective is Collective.HALO_EXCHANGE:
        return 2 * link.latency + received / link.bandwidth
    rounds = 2 if collective is Collective.ALL_REDUCE else 1
    if algorithm == "ring":
        return rounds * (workers - 1) * link.latency + received / link.bandwidth
    steps = ceil(log2(workers))
    more = {
        Collective.ALL_REDUCE: workers / (workers - 1),
        Collective.ALL_TO_ALL: steps * workers / (2 * (workers - 1)),
    }.get(collective, 1.0)
    return rounds * steps * link.latency + more * received / link.bandwidth
