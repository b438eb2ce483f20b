"""The swaps of a plan between the boxes of a model and the host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from planner.graph import Graph, Phase
from planner.plan import SwapPlan
from widgets.info.module_contents import ModulePart

#: By source and target box of a swap: its storages, and bytes out and in.
_Found = dict[tuple[int, int], tuple[set[int], list[int]]]


@dataclass(frozen=True, slots=True)
class Swap:
    """Tensors of one box that are swapped out, and the box that first needs them back.

    Args:
        source: position of the box they belong to, or -1 if they belong to none.
        target: position of the box of the op that waits for them, or -1 if none does: tensors evicted for good, and
            tensors that must only be back by the end of the step.
        storages: number of storages.
        out_bytes, in_bytes: bytes copied to the host and back in a step; a storage that the host already holds is
            evicted without a copy.
    """

    source: int
    target: int
    storages: int
    out_bytes: int
    in_bytes: int


def find_swaps(
    graph: Graph, plan: SwapPlan, parts: Sequence[ModulePart], opened: set[int], batch: set[int]
) -> tuple[Swap, ...]:
    """Follow every copy of a plan from the box that owns the storage to the box that needs it next.

    Args:
        graph: the step.
        plan: its plan.
        parts: the part of the model per box; the batch has the box after the last.
        opened: boxes whose parts have boxes of their own.
        batch: storages of the batch.
    """
    owner = _owners(parts, opened) | dict.fromkeys(batch, len(parts))
    box_of = _boxes_of_ops(graph, parts, opened)
    moves: dict[int, list[tuple[int, bool, int]]] = defaultdict(list)  # slot, whether it is a copy in, first use
    for out in plan.swap_outs:
        moves[out.storage].append((out.release, False, -1))
    for back in plan.swap_ins:
        use = box_of.get(plan.order[back.use], -1) if back.use < len(plan.order) else -1
        moves[back.storage].append((back.start, True, use))
    found: _Found = {}
    for storage, each in moves.items():
        size = graph.storages[storage].bytes
        left = 0  # bytes copied out since the last copy in
        for _, comes_back, target in sorted(each):
            if comes_back:
                _add(found, owner.get(storage, -1), target, storage, left, size)
                left = 0
            else:
                left += size
        if left:
            _add(found, owner.get(storage, -1), -1, storage, left, 0)
    return tuple(
        Swap(source, target, len(storages), *sums) for (source, target), (storages, sums) in sorted(found.items())
    )


def _add(
    found: dict[tuple[int, int], tuple[set[int], list[int]]],
    source: int,
    target: int,
    storage: int,
    out: int,
    into: int,
) -> None:
    storages, sums = found.setdefault((source, target), (set(), [0, 0]))
    storages.add(storage)
    sums[0] += out
    sums[1] += into


def _owners(parts: Sequence[ModulePart], opened: set[int]) -> dict[int, int]:
    """The innermost box of every storage; parts follow the box that contains them."""
    owner: dict[int, int] = {}
    for boxes in (sorted(opened), [box for box in range(len(parts)) if box not in opened]):
        for box in boxes:
            owner |= dict.fromkeys(parts[box].storages, box)
    return owner


def _boxes_of_ops(graph: Graph, parts: Sequence[ModulePart], opened: set[int]) -> dict[int, int]:
    """The closed box of every op; backward and optimizer ops belong to the box of their module."""
    closed = [box for box in range(len(parts)) if box not in opened]
    box_of = {op: box for box in closed for op in parts[box].forward}
    for box in closed:
        for module in parts[box].modules:
            for op in module.ops if parts[box].own else module.all_ops:
                if graph.ops[op].phase is not Phase.FORWARD:
                    box_of.setdefault(op, box)
    return box_of
