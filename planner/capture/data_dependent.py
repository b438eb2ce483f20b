"""Calls whose result on fake tensors follows from values: numbers for Python code, and tensors of unknown shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import torch

from planner.capture import torch_private as private
from planner.capture.events import Event, Layout
from planner.capture.fakes import fake_tensor
from planner.capture.steering import Steering


class _Layouts(Protocol):
    """What a recorder knows of tensors."""

    fake: private.FakeTensorMode

    def results(self, value: Any) -> Iterator[Layout | None]: ...


def result_by_values(recorder: _Layouts, steering: Steering, call: Event) -> Any:
    """What a call returns, by the values that its arguments really have; None where nothing says what they are.

    Args:
        recorder: gives tensors their layouts.
        steering: knows the values, and is told of what was read.
        call: without results yet.
    """
    result = steering.result(call)
    if result is None:
        return None
    if call.target in private.READS:
        steering.keep(call, _place(call), result)
        return result
    made = private.pytree.tree_map_only(torch.Tensor, lambda real: fake_tensor(real, recorder.fake, ""), result)
    call = call._replace(results=tuple(recorder.results(made)))
    steering.keep(call, _place(call), tuple(layout.shape for layout in call.made))
    return made


def _place(call: Event) -> str:
    module = f"module {call.module}" if call.module else "the model"
    return f"in {module}{f' at {call.source}' if call.source else ''}"
