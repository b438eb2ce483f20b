"""Ranges of numbers of which a worker has some."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from planner.partition.tdl import Range
from planner.partition.workers.events.worker_events import WorkerEvents
from planner.partition.workers.tensors.redistribute import redistribute
from planner.partition.workers.tensors.spreads import Cut, Spread, chunks, contiguous, uncut
from planner.program import Layout

_ATEN = torch.ops.aten


def count(
    calls: WorkerEvents, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Layout, elements: int,
    spread: Spread,
) -> None:  # fmt: skip
    """The numbers that a worker has: counted from its first where they are whole and follow each other, else cut out.

    Args:
        calls: of the worker.
        target, args, kwargs: the kernel that makes all of them.
        result: where the worker is to have its own.
        elements: how many numbers there are.
        spread: how they are spread.
    """
    own: Mapping[Cut, Range] = chunks(spread, calls.mesh, calls.place)
    start, step = (args[0] if len(args) > 1 else 0), (args[2] if len(args) > 2 else 1)
    found = contiguous(elements, own)
    if found is not None and all(isinstance(value, int) for value in (start, step)):
        first, last = (start + place * step for place in found)
        calls.add(_ATEN.arange.start_step, (first, last, step), result, **{**kwargs, "dtype": result.dtype})
        return
    # fractions are rounded by where they are in the whole
    numbers = calls.new((elements,), result.dtype)
    calls.add(target, args, numbers, **kwargs)
    part = redistribute(calls, numbers.storage, result.dtype, elements, uncut(spread), spread)
    calls.add(_ATEN.clone.default, (result._replace(storage=part, offset=0),), result)
