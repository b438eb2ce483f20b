"""Which worker writes which boxes of the state, so that each element is written once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod

from torch import Tensor

from planner.partition import PartBox, part_boxes
from planner.run.checkpoint.part import OwnedBox
from planner.run.workers.plans.worker_plans import WorkerPlans


def state_owners(
    planned: WorkerPlans, live: Mapping[str, Tensor], held: Sequence[Collection[str]]
) -> list[list[OwnedBox]]:
    """Per worker, the boxes that it writes: of those that have the same part, the one with the least to write so far.

    Args:
        planned: what the workers compute.
        live: the whole state, by key.
        held: per worker, the keys of which it has a part; what none has is left out.
    """
    found: list[list[OwnedBox]] = [[] for _ in planned.workers]
    sizes = [0 for _ in planned.workers]
    for tensor, key in planned.graph.program.state:
        shape = tuple(live[key].shape)
        by_part: dict[tuple[PartBox, ...], list[int]] = {}
        for worker in planned.workers:
            if key in held[worker]:
                by_part.setdefault(part_boxes(planned.partition, tensor, shape, worker), []).append(worker)
        for boxes, workers in by_part.items():
            owner = min(workers, key=sizes.__getitem__)
            found[owner] += [OwnedBox(key, shape, box) for box in boxes]
            sizes[owner] += sum(prod(box.sizes) for box in boxes) * live[key].element_size()
    return found
