"""Exact shares of tensors: which chunk of each factor a worker stores, and how many bytes that is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod

import torch

from planner.errors import StowageError
from planner.graph import Graph, Kind, Tensor
from planner.graph import fingerprint as graph_fingerprint
from planner.partition.plan.partition_plan import PartitionPlan
from planner.partition.strategy import Split, State, chunk, own_digit
from planner.partition.tdl import Range


def worker_chunks(plan: PartitionPlan, tensor: int, worker: int) -> dict[Split, Range]:
    """By split of a tensor, the indices of its factor that a worker stores, as first and last (exclusive).

    Levels that cut the same factor cut digits of it, or what the levels before them have left; see `own_digit`.

    Raises:
        StowageError: there is no such worker.
    """
    return _chunks(plan.tensors[tensor], plan.mesh, plan.place(worker))


def stored_bytes(plan: PartitionPlan, graph: Graph, worker: int, kinds: Iterable[Kind] | None = None) -> int:
    """Bytes that one worker stores of what exists before the step: parameters, optimizer state, buffers and inputs.

    Args:
        plan: the partition.
        graph: the step that it is for.
        worker: which worker.
        kinds: only storages of these kinds; all that exist before the step if not given.

    Raises:
        StowageError: the plan is for another graph, or there is no such worker.
    """
    if plan.fingerprint != graph_fingerprint(graph):
        raise StowageError(
            f"the partition plan is for another graph than {graph.name}: search for one with this model, batch and "
            f'optimizer, captured for device="{graph.device}"'
        )
    wanted = None if kinds is None else frozenset(kinds)
    place = plan.place(worker)
    shares: dict[int, int] = {}
    known: dict[tuple[object, ...], int] = {}
    for tensor in graph.tensors:
        storage = graph.storages[tensor.storage]
        if tensor.base >= 0 or not (storage.live_in if wanted is None else storage.kind in wanted):
            continue
        states = plan.tensors[tensor.id]
        key = tensor.shape, tensor.dtype, states
        if key not in known:
            known[key] = _share(tensor, states, plan.mesh, place)
        shares[tensor.storage] = max(shares.get(tensor.storage, 0), known[key])  # versions of one storage are alike
    return sum(shares.values())


def _share(tensor: Tensor, states: tuple[State | None, ...], mesh: tuple[int, ...], place: tuple[int, ...]) -> int:
    sizes = [(split.size, last - first) for split, (first, last) in _chunks(states, mesh, place).items()]
    elements = prod(tensor.shape) // prod(size for size, _ in sizes) * prod(own for _, own in sizes)
    return elements * int(getattr(torch, tensor.dtype).itemsize)


def _chunks(states: tuple[State | None, ...], mesh: tuple[int, ...], place: tuple[int, ...]) -> dict[Split, Range]:
    found: dict[Split, Range] = {}
    for level, (state, workers, number) in enumerate(zip(states, mesh, place, strict=True)):
        if not isinstance(state, Split):
            continue
        if step := own_digit(state.size, mesh, level):
            outer = state.outer * (state.size // (step * workers))
            found[replace(state, outer=outer, size=workers, inner=state.inner * step)] = number, number + 1
        else:
            first, last = found.get(state, (0, state.size))
            start, stop = chunk(last - first, workers, number)
            found[state] = first + start, first + stop
    return found
