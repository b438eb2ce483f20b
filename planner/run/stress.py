"""Making races show: random delays in every stream, and memory poisoned before anyone may rely on it.

A read that comes too early, too late or at the wrong place then finds bytes of 0xFF, which are NaN in every
floating-point type, or whatever lies there in the meantime; either way the step's numbers change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from random import Random

from torch import Tensor

from planner.graph import Graph
from planner.plan.swap_plan import SwapPlan
from planner.run.device import Stream
from planner.run.places import Places

POISON = 0xFF
_COMPUTE_SHARE = 0.05  # of the slots are delayed; every other copy is, before and after
_LONGEST = 2e-3  # seconds: longer than most ops and copies of a step small enough to be tested


class Stress:
    """What to poison when, and delays drawn anew in every step.

    Args:
        graph: with the plan's workspaces.
        plan, places: what lies where.
        seed: of the delays; PyTorch's generator is left alone.

    Attributes:
        new: by slot, memory that the op in the slot is the first to write.
        dead: by slot, memory that the op in the slot before was the last to need and that no copy has to leave first.
    """

    def __init__(self, graph: Graph, plan: SwapPlan, places: Places, seed: int = 0) -> None:
        self.new: dict[int, list[Tensor]] = defaultdict(list)
        self.dead: dict[int, list[Tensor]] = defaultdict(list)
        self._random = Random(seed)
        n = len(plan.order)
        leaving = {(copy.storage, copy.release) for copy in plan.swap_outs}
        coming = {(copy.storage, copy.start) for copy in plan.swap_ins}
        handed = set(_handed_over(graph, plan, places))
        for stay in plan.residencies:
            made = not graph.storages[stay.storage].held and (stay.storage, stay.start) not in coming
            if made and (stay.start, stay.storage) not in handed:
                self.new[stay.start].append(places.device_bytes(stay))
            if stay.stop < n and (stay.storage, stay.stop) not in leaving and (stay.stop, stay.storage) not in handed:
                self.dead[stay.stop].append(places.device_bytes(stay))

    def slot(self, stream: Stream) -> None:
        """Delay the compute stream now and then."""
        if self._random.random() < _COMPUTE_SHARE:
            stream.delay(self._random.uniform(0.0, _LONGEST))

    def copy(self, stream: Stream) -> None:
        """Delay a copy stream every other time."""
        if self._random.random() < 0.5:
            stream.delay(self._random.uniform(0.0, _LONGEST))


def _handed_over(graph: Graph, plan: SwapPlan, places: Places) -> Iterator[tuple[int, int]]:
    """(slot, storage) of inputs that the op in a slot overwrites, and of what it makes there."""
    for slot, op in enumerate(plan.order):
        for donor in graph.ops[op].overwrites:
            old, new = graph.tensors[donor].storage, graph.tensors[graph.ops[op].outputs[0]].storage
            before, after = places.residency_until(old, slot), places.residency_from(new, slot)
            if before is not None and after is not None and before.offset == after.offset:
                yield slot, old
                yield slot, new
