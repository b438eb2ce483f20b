"""The self test of an accelerator's file: the same stages, on streams that do as little and as late as CUDA allows."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count

import pytest

from tests.run.lazy_driver import LazyAccelerator
from tests.run.test_accelerator import FAULTS
from tests.run.test_launch_graphs import FAULTS as GRAPH_FAULTS
from tests.selftest.test_selftest import Few


class Lazy:
    """Makes devices whose streams take turns in ever another order, and keeps them."""

    def __init__(self, fault: Callable[[LazyAccelerator], None] = lambda _: None) -> None:
        self.devices: list[LazyAccelerator] = []
        self._fault, self._seeds = fault, count()

    def __call__(self, arena_bytes: int, host_bytes: int) -> LazyAccelerator:
        self.devices.append(LazyAccelerator(arena_bytes, host_bytes, next(self._seeds)))
        self._fault(self.devices[-1])
        return self.devices[-1]


def test_it_passes() -> None:
    lazy = Lazy()
    found = Few(lazy, "convolutions").only("kernels", "calls", "memory", "copies", "steps", "graphs", "peak")
    assert [result.outcome for result in found] == ["passed"] * 7
    assert re.fullmatch(r"steps have eager's bits with [1-9]\d* of \d+ calls in \d+ graphs?.*", found[-2].summary)
    assert [device.driver.memory.released for device in lazy.devices] == [True] * len(lazy.devices)


# those that change bits whatever the plan; the others are races, which `tests/run/test_accelerator.py` finds
@pytest.mark.parametrize(
    ("fault", "stage"),
    [
        ("compute forgotten", "calls"),
        ("kernels in the caller's stream", "steps"),
        ("swap-outs in the caller's stream", "steps"),
    ],
)
def test_a_fault_of_its_file_fails_a_stage(fault: str, stage: str) -> None:
    *_, last = Few(Lazy(FAULTS[fault]), "convolutions").only("kernels", "calls", "steps")
    assert (last.name, last.outcome) == (stage, "failed"), str(last)


# the others let kernels of these steps read indices that were never written
@pytest.mark.parametrize("fault", ["numbers that change are recorded", "a kernel is lost", "a graph is launched twice"])
def test_a_fault_in_its_graphs_fails_their_stage(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lazy = Lazy(lambda device: GRAPH_FAULTS[fault](device, monkeypatch))
    *_, last = Few(lazy, "attention").only("kernels", "calls", "steps", "graphs")
    assert (last.name, last.outcome) == ("graphs", "failed"), str(last)


def test_graphs_that_cannot_be_recorded_fail_their_stage() -> None:
    def refuses(device: LazyAccelerator) -> None:
        def graph(stream: object, issue: Callable[[], None]) -> Callable[[], None]:
            raise RuntimeError("CUDA error: operation not supported")

        device.driver.graph = graph  # type: ignore[method-assign]

    *_, last = Few(Lazy(refuses), "convolutions").only("kernels", "calls", "steps", "graphs")
    assert (last.name, last.outcome) == ("graphs", "failed"), str(last)
    assert "cannot be recorded (CUDA error: operation not supported)" in last.summary
