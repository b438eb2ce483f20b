"""Collectives, against a simulation of every message."""

from __future__ import annotations

from typing import get_args

import pytest

from planner.errors import StowageError
from planner.machine import Collective, CollectiveAlgorithm, Link, collective_seconds

LINK = Link(1e9, 2e9, 1e-3)
FIXED = [algorithm for algorithm in get_args(CollectiveAlgorithm) if algorithm != "fastest"]


def ring(workers: int, size: float) -> tuple[int, float]:
    """Pass chunks around until everybody has all: the rounds, and what each worker receives."""
    holds = [{worker} for worker in range(workers)]
    rounds, received = 0, 0.0
    newest = list(range(workers))
    while any(len(have) < workers for have in holds):
        newest = [newest[worker - 1] for worker in range(workers)]
        for have, chunk in zip(holds, newest, strict=True):
            have.add(chunk)
        rounds, received = rounds + 1, received + size / workers
    return rounds, received


@pytest.mark.parametrize("workers", [2, 3, 4, 7, 8, 64])
def test_a_ring_passes_every_chunk_once(workers: int) -> None:
    rounds, received = ring(workers, 6e8)
    seconds = rounds * LINK.latency + received / LINK.bandwidth
    for collective in (Collective.ALL_GATHER, Collective.REDUCE_SCATTER):
        assert collective_seconds(collective, received, workers, LINK, "ring") == pytest.approx(seconds)
    assert collective_seconds(Collective.ALL_REDUCE, 2 * received, workers, LINK, "ring") == pytest.approx(2 * seconds)


def doubling(workers: int, size: float) -> tuple[int, float]:
    """Bruck's all-gather: in every round a worker gets all that another has, as far as it lacks it."""
    holds = [{worker} for worker in range(workers)]
    rounds, chunks, distance = 0, 0, 1
    while any(len(have) < workers for have in holds):
        got = [holds[(worker + distance) % workers] - holds[worker] for worker in range(workers)]
        chunks += max(len(more) for more in got)
        holds = [have | more for have, more in zip(holds, got, strict=True)]
        rounds, distance = rounds + 1, 2 * distance
    return rounds, chunks * size / workers


@pytest.mark.parametrize("workers", [2, 3, 4, 7, 8, 64])
def test_a_tree_needs_fewer_rounds(workers: int) -> None:
    rounds, received = doubling(workers, 6e8)
    seconds = rounds * LINK.latency + received / LINK.bandwidth
    assert collective_seconds(Collective.ALL_GATHER, received, workers, LINK, "tree") == pytest.approx(seconds)
    whole = received * workers / (workers - 1)
    reduced = 2 * rounds * LINK.latency + 2 * whole / LINK.bandwidth  # up the tree, and down again
    assert collective_seconds(Collective.ALL_REDUCE, 2 * received, workers, LINK, "tree") == pytest.approx(reduced)


@pytest.mark.parametrize("workers", [2, 4, 8, 64])
def test_bruck_sends_half_of_everything_in_each_round(workers: int) -> None:
    own, rounds = 64e6, workers.bit_length() - 1
    received = own * (workers - 1) / workers
    seconds = rounds * (LINK.latency + own / 2 / LINK.bandwidth)
    assert collective_seconds(Collective.ALL_TO_ALL, received, workers, LINK, "tree") == pytest.approx(seconds)


@pytest.mark.parametrize("collective", Collective)
def test_small_messages_go_by_tree_and_large_ones_by_ring(collective: Collective) -> None:
    for size in (1, 10, 1e3, 1e6, 1e9, 1e12):
        ways = [collective_seconds(collective, size, 8, LINK, algorithm) for algorithm in FIXED]
        assert collective_seconds(collective, size, 8, LINK) == min(ways)
        assert min(ways) >= size / LINK.bandwidth
    small = {algorithm: collective_seconds(collective, 1, 8, LINK, algorithm) for algorithm in FIXED}
    assert small["tree"] < small["ring"] or collective is Collective.HALO_EXCHANGE


@pytest.mark.parametrize("collective", Collective)
def test_one_worker_and_no_bytes_take_no_time(collective: Collective) -> None:
    assert collective_seconds(collective, 1e9, 1, LINK) == collective_seconds(collective, 0, 8, LINK) == 0


def test_a_halo_comes_from_two_neighbours_however_many_workers_there_are() -> None:
    times = {collective_seconds(Collective.HALO_EXCHANGE, 1e6, workers, LINK) for workers in (2, 3, 8, 64)}
    assert times == {2e-3 + 1e-3}


def test_an_unknown_algorithm_is_refused() -> None:
    with pytest.raises(StowageError, match="choose ring, tree or fastest"):
        collective_seconds(Collective.ALL_REDUCE, 1, 2, LINK, "star")  # type: ignore[arg-type]
