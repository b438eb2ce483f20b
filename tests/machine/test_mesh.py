"""Levels of workers: the outermost get the slowest links."""

from __future__ import annotations

from math import prod

import pytest

from planner.errors import StowageError
from planner.machine import mesh_levels
from planner.profile import machine


@pytest.mark.parametrize("hosts", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("name", ["k80x8", "a100x8", "h100x8", "h200x8"])
def test_hosts_come_before_the_devices_of_a_host(name: str, hosts: int) -> None:
    several = machine(f"{name}:hosts={hosts}")
    levels = mesh_levels(several, 8 * hosts)
    assert prod(level.workers for level in levels) == 8 * hosts
    assert prod(level.workers for level in levels if level.between_hosts) == hosts
    assert [level.between_hosts for level in levels] == sorted((x.between_hosts for x in levels), reverse=True)
    assert [level.link.bandwidth for level in levels] == sorted(level.link.bandwidth for level in levels)
    assert [level.link for level in levels if not level.between_hosts] == [several.peer_link] * 3


def test_the_devices_of_a_host_share_its_network() -> None:
    two = machine("h100x8:hosts=2")
    assert two.network_link is not None
    assert mesh_levels(two, 16)[0].link.bandwidth == two.network_link.bandwidth / 8
    assert mesh_levels(two, 10)[0].link.bandwidth == two.network_link.bandwidth / 5


@pytest.mark.parametrize(
    ("name", "workers", "factors", "between"),
    [
        ("k80x8", 1, [], 0),
        ("k80x8", 6, [3, 2], 0),
        ("k80x8", 7, [7], 0),
        ("h100x8:hosts=2", 8, [2, 2, 2], 0),  # fit into one host
        ("h100x8:hosts=2", 10, [2, 5], 1),
        ("h100x8:hosts=3", 9, [3, 3], 1),
        ("h100x8:hosts=4", 12, [2, 3, 2], 1),
    ],
)
def test_workers_are_spread_over_few_hosts(name: str, workers: int, factors: list[int], between: int) -> None:
    levels = mesh_levels(machine(name), workers)
    assert [level.workers for level in levels] == factors
    assert sum(level.between_hosts for level in levels) == between


def test_a_level_that_reaches_into_another_host_uses_the_network() -> None:
    levels = mesh_levels(machine("h100x8:hosts=2"), [4, 4])
    assert [level.between_hosts for level in levels] == [True, False]
    assert [level.between_hosts for level in mesh_levels(machine("h100x8:hosts=2"), [16])] == [True]


@pytest.mark.parametrize(
    ("name", "workers", "says"),
    [
        ("k80x8", 9, "k80x8 has 8 devices, too few for 9 workers; choose a larger machine, such as h100x8:hosts=2"),
        ("v100-16gb", 2, "has 1 device, too few for 2 workers; .* such as h100x8$"),
        ("h100x8:hosts=2", 11, "11 workers cannot be spread evenly over at most 2 hosts of 8 devices; choose 10 or 12"),
        ("k80x8", 0, "at least 1"),
        ("k80x8", [8, 1], "factors of at least 2"),
    ],
)
def test_what_a_machine_cannot_run_is_refused(name: str, workers: int | list[int], says: str) -> None:
    with pytest.raises(StowageError, match=says):
        mesh_levels(machine(name), workers)
