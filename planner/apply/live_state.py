"""The parameters and buffers of the live model, by storage of the graph."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import attrgetter

import torch

from planner.graph import Graph, Kind
from planner.step import Step

_PREFIX = "model/"


def live_state(graph: Graph, step: Step) -> dict[int, Callable[[], torch.Tensor]]:
    """By storage, what returns the tensor that is now in the live model; without those that lie elsewhere in theirs.

    Args:
        graph: with its program.
        step: the step; its model is made if it is not there yet.
    """
    model = step.materialize().model
    found: dict[int, Callable[[], torch.Tensor]] = {}
    for tensor, key in graph.program.state:
        known = graph.tensors[tensor]
        kind = graph.storages[known.storage].kind
        if not key.startswith(_PREFIX) or kind not in (Kind.PARAMETER, Kind.BUFFER):
            continue
        get = partial(attrgetter(key.removeprefix(_PREFIX)), model)
        try:
            live = get()
        except AttributeError:  # such as one that is in a list
            continue
        size = live.untyped_storage().nbytes() if isinstance(live, torch.Tensor) else -1
        if size == graph.storages[known.storage].bytes and live.storage_offset() == known.offset:
            found[known.storage] = get
    return found
