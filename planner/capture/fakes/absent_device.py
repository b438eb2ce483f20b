"""Calls that were recorded with fake tensors elsewhere than on the device of the step, which is not there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch

from planner.program import Backend, Event


def on_device(events: Iterable[Event], backend: Backend) -> list[Event]:
    """The calls as they are made on the device; what reads values of the step is told of them before.

    Args:
        events: as recorded.
        backend: whose device is absent.
    """
    here, there = backend.fakes_on, torch.device(backend.device, 0)

    def moved(value: Any) -> Any:
        return there if isinstance(value, torch.device) and value.type == here else value

    return [
        replace(event, kwargs={name: moved(value) for name, value in event.kwargs.items()})
        if any(isinstance(value, torch.device) for value in event.kwargs.values())
        else event
        for event in events
    ]
