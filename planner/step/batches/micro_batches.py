"""Micro-batches: a batch cut into equal parts along its first dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.errors import StowageError
from planner.step.batches.rebuilding import replaced
from planner.step.batches.tree import Node, Tree


def cut(batch: Any, count: int) -> list[Any]:
    """Cut a batch into equal parts: its tensors, and lists, tuples and arrays of plain values with an entry per row.

    Tensors without dimensions, and plain values of another length, are repeated whole in each part.

    Raises:
        StowageError: the tensors differ in their first dimension, or it is not divisible.
    """
    if count == 1:
        return [batch]
    tree = Tree(batch)
    rows = _rows(tree, count)
    if rows is None:
        return [batch] * count
    size = rows // count
    sliced = [*(node for node in tree.tensors.values() if node.value.dim()), *_entries(tree, rows)]
    return [
        replaced(tree, {node: node.value[start : start + size] for node in sliced}) for start in range(0, rows, size)
    ]


def _rows(tree: Tree, count: int) -> int | None:
    lengths = {name: int(node.value.shape[0]) for name, node in tree.tensors.items() if node.value.dim()}
    if not lengths:
        return None
    first, rows = next(iter(lengths.items()))
    for name, length in lengths.items():
        if length != rows:
            raise StowageError(
                f"{first} has {rows} rows and {name} has {length}, so the batch cannot be cut into {count} "
                "micro-batches: give both as many rows, or let the model or the loss hold what is no part of the data"
            )
    if rows % count or not rows:
        raise StowageError(f"a batch of {rows} cannot be cut into {count} micro-batches: let micro_batches divide it")
    return rows


def _entries(tree: Tree, rows: int) -> list[Node]:
    """The outermost plain values with an entry per row."""
    found = []
    with_tensors = tree.touched(tree.tensors.values())
    waiting, seen = [tree.root], {tree.root}
    while waiting:
        node = waiting.pop()
        if node not in with_tensors and _length(node) == rows:
            found.append(node)
            continue
        for _, child in node.children:
            if child not in seen:
                seen.add(child)
                waiting.append(child)
    return found


def _length(node: Node) -> int | None:
    if type(node.value) in (list, tuple):
        return len(node.value)
    if issubclass(type(node.value), np.ndarray) and node.value.ndim:
        return int(node.value.shape[0])
    return None
