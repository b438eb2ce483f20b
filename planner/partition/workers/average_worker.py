"""About the graph of one worker, without making any call of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, prod

from planner.graph import Graph
from planner.partition.search import Partitioning
from planner.partition.strategy import Split, State, Unread


def average_worker(found: Partitioning) -> Graph:
    """The graph of a worker that has an equal share of everything that is split: the ops of the whole step, unchanged.

    Each storage has the worker's share of its bytes, and each op the bytes that it fetches as scratch memory. It is an
    estimate that takes no time, for planning and not for running; `worker_graph` is exact.

    Args:
        found: how the step is split.
    """
    graph, mesh = found.coarse.graph, [level.workers for level in found.levels]
    local = [storage.bytes for storage in graph.storages]
    for tensor in graph.tensors:
        if tensor.base < 0:
            whole = graph.storages[tensor.storage].bytes
            local[tensor.storage] = ceil(whole * _share(mesh, found.tensor_states(tensor.id)))
    needed = {}
    for op in graph.ops:
        chosen, extra = found.op_variants(op.id), 0.0
        for place, number in enumerate((*op.inputs, *op.outputs)):
            used = tuple(variant.states[place] for variant in chosen)
            if any(isinstance(state, Unread) for state in used):
                continue
            more = _share(mesh, used) - _share(mesh, found.tensor_states(number))
            extra += max(0.0, more) * _bytes(graph, number)
        needed[op.id] = graph.workspace_bytes(op.id) // prod(mesh) + int(extra)
    storages = tuple(replace(storage, bytes=local[storage.id]) for storage in graph.storages)
    return replace(graph, storages=storages, program=None).with_workspaces(needed)


def _share(mesh: Sequence[int], states: Sequence[State | None]) -> float:
    parts = [workers for workers, state in zip(mesh, states, strict=True) if isinstance(state, Split)]
    return 1 / prod(parts)


def _bytes(graph: Graph, tensor: int) -> int:
    """Bytes of a tensor, a view or not."""
    here = graph.tensors[tensor]
    root = here
    while root.base >= 0:
        root = graph.tensors[root.base]
    itemsize = graph.storages[root.storage].bytes // max(1, prod(root.shape))
    return max(1, itemsize) * prod(here.shape)
