"""A step is prepared for a machine: captured, and its ops timed by measuring or by the roofline."""

import numpy as np
import pytest
import torch
from torch import nn

from planner.cancel import Cancelled, CancelToken
from planner.capture import capture
from planner.errors import StowageError
from planner.graph import fingerprint
from planner.machine import op_seconds
from planner.profile import machine, measure_ops, prepare
from planner.step import InferenceStep


def step() -> InferenceStep:
    return InferenceStep(nn.Sequential(nn.Linear(8, 8), nn.ReLU()), torch.ones(4, 8))


def test_on_a_preset_op_times_come_from_the_roofline() -> None:
    one = step()
    ready = prepare(one, "v100-16gb", progress=False)
    assert ready.graph is capture(one)
    assert ready.machine == machine("v100-16gb")
    assert ready.seconds.tolist() == op_seconds(ready.graph, ready.machine).tolist()


def test_on_this_cpu_op_times_and_scratch_memory_are_measured() -> None:
    one = step()
    ready = prepare(one, "cpu", progress=False)
    again = prepare(capture(one), machine("cpu"), progress=False, stop=CancelToken())
    measured = measure_ops(capture(one), ready.machine)
    assert ready.seconds.tolist() == again.seconds.tolist() == measured.seconds.tolist()
    needed = {int(op): int(measured.workspace_bytes[op]) for op in np.flatnonzero(measured.workspace_bytes)}
    assert fingerprint(ready.graph) == fingerprint(again.graph) == fingerprint(capture(one).with_workspaces(needed))


def test_an_unknown_machine_is_refused_before_anything_is_captured() -> None:
    one = step()
    with pytest.raises(StowageError, match="unknown machine 'v100-17gb'"):
        prepare(one, "v100-17gb")
    assert one.graph is None


@pytest.mark.parametrize("after", range(4))
def test_it_is_left_where_it_is_cancelled(after: int) -> None:
    stop, said = CancelToken(), []

    def report(share: float, doing: str) -> None:
        said.append((share, doing))
        if len(said) > after:
            stop.cancel()

    with pytest.raises(Cancelled):
        prepare(step(), "cpu", progress=report, remeasure=True, stop=stop)
    assert len(said) == after + 1
    assert prepare(step(), "cpu", progress=False).seconds.size
