"""Calls whose result on fake tensors depends on values: numbers for Python code, and tensors of unknown shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Protocol

import torch

from planner import torch_private as private
from planner.capture.fakes.fake_devices import FakeDevice
from planner.capture.fakes.fakes import fake_tensor
from planner.capture.record.concrete_values import Steering
from planner.program import Event, Layout


class _Layouts(Protocol):
    """The part of a recorder that assigns layouts to tensors."""

    fake: private.FakeTensorMode

    def results(self, value: Any) -> Iterator[Layout | None]: ...


def result_by_values(recorder: _Layouts, steering: Steering, call: Event) -> Any:
    """Return the result of a call for the real values of its arguments; None if they are unknown.

    Args:
        recorder: assigns layouts to tensors.
        steering: provides the values, and records what was read.
        call: the call, without results yet.
    """
    result = steering.result(call)
    if result is None:
        return None
    if call.target in private.READS:
        steering.keep(call, _place(call), result)
        return result
    made = private.pytree.tree_map_only(
        torch.Tensor, lambda real: fake_tensor(real, FakeDevice(real.device.type, recorder.fake), ""), result
    )
    call = replace(call, results=tuple(recorder.results(made)))
    steering.keep(call, _place(call), tuple(layout.shape for layout in call.made))
    return made


def _place(call: Event) -> str:
    module = f"module {call.module}" if call.module else "the model"
    return f"in {module}{f' at {call.source}' if call.source else ''}"
