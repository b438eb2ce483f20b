"""Which gradients are reduced together."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from planner.graph import Phase
from planner.machine import Collective
from planner.partition.search import Partitioning
from planner.partition.step_time.local_work import share
from planner.partition.step_time.transfers import OpTransfers, root_tensors

#: Gradients of so many bytes are reduced together, as PyTorch's `DistributedDataParallel` does by default.
BUCKET_BYTES = 25 * 2**20
#: The outputs, as pairs of op and tensor, that are reduced in one call.
Bucket = list[tuple[int, int]]
_REDUCTIONS = frozenset({Collective.ALL_REDUCE, Collective.REDUCE_SCATTER})


def gradient_buckets(found: Partitioning, moved: Sequence[OpTransfers], most: int) -> list[Bucket]:
    """Join the reductions of gradients that only the optimizer reads, in captured order.

    A bucket holds gradients that are reduced alike at the same levels, and is closed when it is full or when an op
    reads what is in it.

    Args:
        found: a partition.
        moved: what is communicated for every op.
        most: bytes of a worker's gradients after which a bucket is full.
    """
    graph = found.coarse.graph
    mesh = [level.workers for level in found.levels]
    roots = root_tensors(graph)
    last = {roots[tensor] for op in graph.ops if op.phase is Phase.OPTIMIZER for tensor in op.inputs}
    earlier = {roots[tensor] for op in graph.ops if op.phase is not Phase.OPTIMIZER for tensor in op.inputs}
    sizes = _output_bytes(found)
    closed: list[Bucket] = []
    open_buckets: dict[object, tuple[Bucket, float]] = {}
    for op in graph.ops:
        read = {roots[tensor] for tensor in op.inputs}
        for kind in [kind for kind, (bucket, _) in open_buckets.items() if any(made in read for _, made in bucket)]:
            closed.append(open_buckets.pop(kind)[0])
        for tensor, parts in moved[op.id].stores:
            if tensor not in last - earlier or any(part.collective not in _REDUCTIONS for part in parts):
                continue
            kind = tuple((part.level, part.collective) for part in parts)
            bucket, size = open_buckets.pop(kind, ([], 0.0))
            bucket.append((op.id, tensor))
            place = len(op.inputs) + op.outputs.index(tensor)
            size += sizes[tensor] * share([variant.states[place] for variant in found.op_variants(op.id)], mesh)
            if size >= most:
                closed.append(bucket)
            else:
                open_buckets[kind] = bucket, size
    return closed + [bucket for bucket, _ in open_buckets.values()]


def _output_bytes(found: Partitioning) -> dict[int, int]:
    """Bytes of what every op makes, by tensor."""
    sizes = {}
    for merged in found.coarse.merged:
        for op in merged.ops:
            for tensor, slot in zip(found.coarse.graph.ops[op].outputs, merged.outputs, strict=True):
                sizes[tensor] = prod(slot.shape) * slot.itemsize
    return sizes
