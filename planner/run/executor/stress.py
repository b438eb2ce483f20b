"""Stress mode, which exposes races by random delays in every stream and by poisoning memory before it is valid.

A read that is too early, too late or at the wrong address then finds bytes of 0xFF, which are NaN in every
floating-point type, or the bytes of another tensor; either way the step's numbers change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from random import Random

from torch import Tensor

from planner.plan import PlanIndex
from planner.run.devices.device import RuntimeStream
from planner.run.executor.arena.arena_views import ArenaViews
from planner.run.executor.arena.binder import byte_span
from planner.run.executor.arena.memory_accesses import PlanAccesses

POISON = 0xFF
_COMPUTE_SHARE = 0.05  # of the slots are delayed; copies are delayed before and after, with probability one half
_LONGEST = 2e-3  # seconds: longer than most ops and copies of a step small enough to be tested


class Stress:
    """The memory to poison at each slot, and random delays that differ in every step.

    Args:
        views: views of the arena.
        accesses: of the plan.
        seed: of the delays; PyTorch's generator is not used.

    Attributes:
        new: by slot, memory that the op in the slot is the first to write.
        dead: by slot, memory last accessed by the op in the previous slot, unless it is to be swapped out first or the
            communication stream runs that op, which is not known to be done by then.
    """

    def __init__(self, views: ArenaViews, accesses: PlanAccesses, seed: int = 0) -> None:
        self.new: dict[int, list[Tensor]] = defaultdict(list)
        self.dead: dict[int, list[Tensor]] = defaultdict(list)
        self._random = Random(seed)
        index = views.index
        handed_over = set(_reused_buffers(index))
        made = ~index.from_step_start & (index.copy_in < 0)
        freed = index.ends & (index.copy_out < 0)
        users = _users(index)
        beside = {each.start for each in index.plan.communications}
        for number, residency in enumerate(index.plan.residencies):
            if made[number] and (residency.start, residency.storage) not in handed_over:
                self.new[residency.start].append(views.device_bytes(residency))
            if freed[number] and (residency.stop, residency.storage) not in handed_over:
                # the next to use these bytes waits for the last access, not for the end of the residency
                place = views.device_bytes(residency)
                begin, end = byte_span(place)
                for slot in reversed(users.get(residency.storage, [])):
                    touched = any(access.begin < end and begin < access.end for access in accesses.ops[slot])
                    if residency.start <= slot < residency.stop and touched:
                        if slot not in beside:
                            self.dead[slot + 1].append(place)
                        break

    def reseed(self, seed: int) -> None:
        """Begin the delays anew, from another seed."""
        self._random = Random(seed)

    def slot(self, stream: RuntimeStream) -> None:
        """Delay the compute stream occasionally."""
        if self._random.random() < _COMPUTE_SHARE:
            stream.delay(self._random.uniform(0.0, _LONGEST))

    def copy(self, stream: RuntimeStream) -> None:
        """Delay a copy stream with probability one half."""
        if self._random.random() < 0.5:
            stream.delay(self._random.uniform(0.0, _LONGEST))


def _users(index: PlanIndex) -> dict[int, list[int]]:
    """By storage, the slots whose ops have it among their operands, or as their scratch memory."""
    found = defaultdict[int, list[int]](list)
    for slot, op in enumerate(index.plan.order):
        for storage in {*index.reads[slot], *index.writes[slot], index.graph.ops[op].workspace}:
            found[storage].append(slot)
    return found


def _reused_buffers(index: PlanIndex) -> Iterator[tuple[int, int]]:
    """(slot, storage) of inputs that the op in a slot overwrites, and of the results that reuse their buffers."""
    graph = index.graph
    for slot, op in enumerate(index.plan.order):
        for reused_buffer in graph.ops[op].overwrites:
            old, new = graph.tensors[reused_buffer].storage, graph.tensors[graph.ops[op].outputs[0]].storage
            before, after = index.residency_until(old, slot), index.residency_from(new, slot)
            if before is not None and after is not None and before.offset == after.offset:
                yield slot, old
                yield slot, new
