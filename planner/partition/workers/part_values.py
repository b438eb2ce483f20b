"""Workers' parts of values: cut from the whole, and put together again."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from planner.errors import StowageError
from planner.partition.plan import PartitionPlan
from planner.partition.workers.part_boxes import PartBox, part_boxes, part_places

#: Copying so many boxes one by one takes as long as indexing each element.
_MOST_BOXES = 16

#: An index of a tensor.
Index = tuple[slice | torch.Tensor, ...]


def local_value(value: torch.Tensor, plan: PartitionPlan, tensor: int, worker: int) -> torch.Tensor:
    """A worker's part of a value, as a copy; all of it if it is not split.

    Args:
        value: a parameter, an optimizer state or a tensor of the batch, whole.
        plan: how the step is split.
        tensor: the tensor of the step that has the value.
        worker: which worker.
    """
    boxes = part_boxes(plan, tensor, value.shape, worker)
    if len(boxes) == 1:
        return value[_slices(boxes[0].offsets, boxes[0].sizes)].clone(memory_format=torch.contiguous_format)
    return value[_places(value.shape, plan, tensor, worker)].clone()


def whole_value(parts: Sequence[torch.Tensor], plan: PartitionPlan, tensor: int, shape: Sequence[int]) -> torch.Tensor:
    """All of a value, from the workers' parts of it.

    Args:
        parts: per worker, as `local_value` cuts it.
        plan: how the step is split.
        tensor: the tensor of the step that has the value.
        shape: of all of it.

    Raises:
        StowageError: workers that should have the same have not.
    """
    whole = parts[0].new_empty(tuple(shape))
    everywhere = [_indices(shape, plan, tensor, worker) for worker in range(len(parts))]
    for indices, part in zip(everywhere, parts, strict=True):
        for here, there in indices:
            whole[here] = part[there]
    for worker, (indices, part) in enumerate(zip(everywhere, parts, strict=True)):
        for here, there in indices:
            if not torch.equal(_bytes(whole[here]), _bytes(part[there])):
                raise StowageError(
                    f"worker {worker} has another copy of a tensor of shape {list(shape)} than the others"
                )
    return whole


def _indices(shape: Sequence[int], plan: PartitionPlan, tensor: int, worker: int) -> list[tuple[Index, Index]]:
    """Where pieces of a worker's part are in the whole and in the part."""
    boxes = part_boxes(plan, tensor, shape, worker)
    if len(boxes) > _MOST_BOXES:
        return [(_places(shape, plan, tensor, worker), (slice(None),) * len(shape))]
    return [_pieces(box) for box in boxes]


def _bytes(value: torch.Tensor) -> torch.Tensor:
    """A copy, because a view may have any strides."""
    return value.clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8)


def _pieces(box: PartBox) -> tuple[Index, Index]:
    return _slices(box.offsets, box.sizes), _slices(box.local_offsets, box.sizes)


def _slices(offsets: Sequence[int], sizes: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(first, first + size) for first, size in zip(offsets, sizes, strict=True))


def _places(shape: Sequence[int], plan: PartitionPlan, tensor: int, worker: int) -> tuple[torch.Tensor, ...]:
    """Per dimension, the places of a worker's part in the whole, to index it with."""
    everywhere = part_places(shape, plan, tensor, worker)
    return tuple(
        places.reshape([-1 if place == dimension else 1 for place in range(len(shape))])
        for dimension, places in enumerate(everywhere)
    )
