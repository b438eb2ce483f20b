"""Tensors that do not fill their memory, such as a slice of a batch: workers have no more of it than the tensor."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import prod
from weakref import WeakKeyDictionary

import torch

from planner.graph import Graph, Tensor


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a tensor and its views are in memory that it fills.

    Args:
        layouts: by tensor, its strides and offset.
        elements: by storage, how many it then has.
        spread_out: the storages of which no such memory is known, so that they stay whole.
    """

    layouts: dict[int, tuple[tuple[int, ...], int]]
    elements: dict[int, int]
    spread_out: frozenset[int]


_KNOWN: WeakKeyDictionary[Graph, Compacted] = WeakKeyDictionary()


def compacted(graph: Graph) -> Compacted:
    """The storages of a graph of which what was made does not fill all.

    Args:
        graph: the step.
    """
    if graph not in _KNOWN:
        _KNOWN[graph] = _find(graph)
    return _KNOWN[graph]


def _find(graph: Graph) -> Compacted:
    members: dict[int, list[Tensor]] = defaultdict(list)
    for tensor in graph.tensors:
        members[tensor.storage].append(tensor)
    layouts: dict[int, tuple[tuple[int, ...], int]] = {}
    elements: dict[int, int] = {}
    spread_out = set()
    for storage, tensors in members.items():
        root = next((tensor for tensor in tensors if tensor.base < 0), tensors[0])
        size = prod(root.shape)
        steps = _dense_steps(root)
        fills = size * getattr(torch, root.dtype).itemsize == graph.storages[storage].bytes
        if fills or not size or graph.storages[storage].bytes == 0:
            continue
        found = None if steps is None else [_moved(tensor, root, steps) for tensor in tensors]
        if found is None or None in found:
            spread_out.add(storage)
            continue
        elements[storage] = size
        layouts |= {tensor.id: each for tensor, each in zip(tensors, found, strict=True) if each is not None}
    return Compacted(layouts, elements, frozenset(spread_out))


def _dense_steps(root: Tensor) -> dict[int, int] | None:
    """By stride of a tensor, the stride that it has in memory that it fills; None if its elements overlap."""
    steps: dict[int, int] = {}
    step = reach = 1
    for stride, size in sorted((s, n) for n, s in zip(root.shape, root.strides, strict=True) if n > 1):
        if stride < reach or stride < 1:
            return None
        steps[stride] = step
        step, reach = step * size, stride * size
    return steps


def _moved(tensor: Tensor, root: Tensor, steps: dict[int, int]) -> tuple[tuple[int, ...], int] | None:
    """A view's strides and offset in memory that what it views fills; None if it is no view of whole dimensions."""
    if tensor.dtype != root.dtype:
        return None
    sizes = {stride: size for size, stride in zip(root.shape, root.strides, strict=True) if size > 1}
    if all(stride == step for stride, step in steps.items()):  # the root alone is contiguous
        last = tensor.offset + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.strides, strict=True))
        inside = root.offset <= tensor.offset and last < root.offset + prod(root.shape)
        return (tensor.strides, tensor.offset - root.offset) if inside else None
    pairs = [(n, s) for n, s in zip(tensor.shape, tensor.strides, strict=True) if n > 1]
    if tensor.offset != root.offset or any(stride not in steps or sizes[stride] != size for size, stride in pairs):
        return None
    both = zip(tensor.shape, tensor.strides, strict=True)
    return tuple(steps[stride] if size > 1 else 1 for size, stride in both), 0
