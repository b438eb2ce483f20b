"""A model that is trained on a machine of several GPUs, and what a way of training it reaches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from planner.capture import capture
from planner.errors import StowageError
from planner.graph import Graph
from planner.machine import Link, Machine
from planner.memory import step_peak
from planner.partition import CoarseGraph, coarsen
from planner.swap import plan_with_baselines
from planner.zoo import load


@dataclass(frozen=True)
class Outcome:
    """What a way of training reaches.

    Args:
        samples: per second; 0 if it does not fit.
        batch: of all devices together.
        note: what is worth knowing.
    """

    samples: float
    batch: int
    note: str = ""


@dataclass(frozen=True, eq=False)
class Case:
    """A model that is trained on a machine.

    Args:
        text: the zoo's, without its batch.
        batch: of all devices together.
        machine: with several devices.
        host_bandwidth: between the host and all devices together, in bytes per second.
        seconds: of each search for swaps.
    """

    text: str
    batch: int
    machine: Machine
    host_bandwidth: float
    seconds: float

    @property
    def workers(self) -> int:
        """How many devices there are."""
        return len(self.machine.devices)

    @property
    def memory(self) -> int:
        """Bytes of each device."""
        return self.machine.device.memory_bytes

    @property
    def alone(self) -> Machine:
        """One device with its share of the link to the host."""
        own = self.host_bandwidth / self.workers
        link = Link(own, own, self.machine.host_link.latency)
        return replace(self.machine, devices=self.machine.devices[:1], host_link=link)

    def graph(self, batch: int) -> Graph:
        """The step with a batch."""
        return graph_of(f"{self.text},batch={batch}")


@lru_cache(maxsize=6)
def graph_of(text: str) -> Graph:
    """A captured step."""
    return capture(load(text), progress=False)


@lru_cache(maxsize=4)
def coarse_of(graph: Graph) -> CoarseGraph:
    """A step's coarse graph."""
    return coarsen(graph)


_peaks: dict[int, tuple[Graph, int]] = {}


def peak(case: Case, graph: Graph) -> int:
    """Bytes that a step takes when nothing is swapped."""
    if id(graph) not in _peaks:
        _peaks[id(graph)] = graph, step_peak(graph, case.machine.device.alignment)
    return _peaks[id(graph)][1]


def swapped_seconds(case: Case, graph: Graph, seconds: np.ndarray) -> float | None:
    """The step time of the best swap plan found within a device's memory; None if there is none."""
    try:
        found = plan_with_baselines(
            graph, case.alone, case.memory, seconds=seconds, method="swap", time_limit=case.seconds, progress=False
        )  # fmt: skip
    except StowageError:
        return None
    return found.plan.predicted.seconds
