"""Dependencies between the streams: when each copy and collective is issued, and what ops, copies and these wait for.

Copies are issued by the slots of the plan, as `planner.plan.schema` says. Waits are fewer than its rules: an op or a
copy waits for another stream only where both access the same bytes of the arena or the host slab, at least one of them
to write, and no other wait implies it. The rules order all such accesses (the validator proves that), so their order is
the plan's, and no byte ever holds two storages. But an op may run while a copy that the rules have it wait for is still
under way, in memory that this op does not use; a step is never later for that, and may be earlier, than predicted.
Collectives are issued in their slots, and waited for by the same rule; to each other they are ordered as all of them
write the same bytes, which stand for the peers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from planner.errors import StowageError
from planner.plan import PlanIndex
from planner.run.executor.arena.memory_accesses import Access, PlanAccesses

_COMPUTE, _OUT, _IN, _BESIDE = range(4)


@dataclass(frozen=True, slots=True)
class CopyStep:
    """One entry of a copy queue.

    Args:
        index: its position in the queue.
        after_op: the slot whose op it waits for, -1 for none.
        after_copy: the entry of the other copy queue it waits for, -1 for none.
        after_collective: the entry of the communication queue it waits for, -1 for none.
    """

    index: int
    after_op: int
    after_copy: int
    after_collective: int = -1


@dataclass(frozen=True, slots=True)
class CollectiveStep:
    """One entry of the communication queue.

    Args:
        index: its position in the queue.
        after_op: the slot whose op it waits for, -1 for none.
        after_out, after_in: the swap-out and the swap-in that it waits for, -1 for none.
    """

    index: int
    after_op: int
    after_out: int
    after_in: int


@dataclass(frozen=True, slots=True)
class SlotStep:
    """The stream work before the op of a slot; the last one, at slot `n`, is the end of the step.

    Args:
        outs, ins: copies to issue to their streams; everything that they wait for has been issued before.
        await_out, await_in: the swap-out and the swap-in that the op waits for, -1 for none.
        await_collective: the collective that it waits for, -1 for none.
        collective: what to issue in place of the op, if it is one of the communication queue.
    """

    outs: tuple[CopyStep, ...]
    ins: tuple[CopyStep, ...]
    await_out: int
    await_in: int
    await_collective: int = -1
    collective: CollectiveStep | None = None


def schedule(index: PlanIndex, accesses: PlanAccesses) -> tuple[SlotStep, ...]:
    """Steps for the slots `0..n` of a plan.

    Args:
        index: of the plan.
        accesses: of the plan's ops and copies; none need be given if all runs on the compute stream.

    Raises:
        StowageError: the queues wait for each other.
    """
    outs, ins = _issued(index)
    beside = {each.start: number for number, each in enumerate(index.plan.communications)}
    order = _StreamOrder(accesses, beside)
    steps = []
    for slot in range(index.slots + 1):
        issued_outs, issued_ins = [], []
        for number in outs[slot]:
            op, _, copy, collective = order.append(_OUT, accesses.outs[number])
            issued_outs.append(CopyStep(number, op, copy, collective))
        for number in ins[slot]:
            op, copy, _, collective = order.append(_IN, accesses.ins[number])
            issued_ins.append(CopyStep(number, op, copy, collective))
        issued = tuple(issued_outs), tuple(issued_ins)
        if slot == index.slots:  # where the device is synchronized
            steps.append(SlotStep(*issued, -1, -1))
        elif slot in beside:
            op, out, into, _ = order.append(_BESIDE, accesses.ops[slot])
            order.append(_COMPUTE, ())  # it does nothing in this slot
            steps.append(SlotStep(*issued, -1, -1, collective=CollectiveStep(beside[slot], op, out, into)))
        else:
            _, out, into, collective = order.append(_COMPUTE, accesses.ops[slot])
            steps.append(SlotStep(*issued, out, into, collective))
    return tuple(steps)


class _StreamOrder:
    """The accesses so far, and how far each stream is known to be when another one goes on.

    A clock is the last op, swap-out, swap-in and collective that are done, -1 for none.

    Args:
        accesses: of all ops and copies.
        beside: the slots whose ops run on the communication stream.
    """

    def __init__(self, accesses: PlanAccesses, beside: Iterable[int]) -> None:
        elsewhere = [*accesses.outs, *accesses.ins, *(accesses.ops[slot] for slot in beside)]
        others = [access for entry in elsewhere for access in entry]
        every = [*others, *chain.from_iterable(accesses.ops)] if others else []
        self._edges = np.unique([edge for access in every for edge in access[:2]])
        self._place = {edge: place for place, edge in enumerate(self._edges.tolist())}
        bytes_between = len(self._edges)
        # by stream and bytes between two edges, the last entry that read and the last that wrote them
        self._read = np.full((4, bytes_between), -1, np.int64)
        self._written = np.full((4, bytes_between), -1, np.int64)
        touched = np.zeros(bytes_between, np.bool_)
        for access in others:
            touched[self._span(access)] = True
        self._touched = np.concatenate([[0], np.cumsum(touched)])
        self._clocks = [np.full(4, -1, np.int64) for _ in range(4)]
        self._after: list[list[np.ndarray]] = [[], [], [], []]  # what each entry is after, itself included

    def append(self, stream: int, accesses: Sequence[Access]) -> tuple[int, int, int, int]:
        """Add the next entry of a stream; by stream, the entry that it has to wait for, -1 for none."""
        shared = [(self._span(access), access.writes) for access in accesses if self._shared(access)]
        latest = np.full(4, -1, np.int64)
        for span, writes in shared:
            np.maximum(latest, self._written[:, span].max(axis=1), out=latest)
            if writes:
                np.maximum(latest, self._read[:, span].max(axis=1), out=latest)
        clock = self._clocks[stream].copy()
        needed = [other for other in range(4) if other != stream and latest[other] > clock[other]]
        if len(needed) > 1:  # an entry that another one is after need not be waited for itself
            needed = [
                one for one in needed
                if not any(two != one and self._after[two][latest[two]][one] >= latest[one] for two in needed)
            ]  # fmt: skip
        for other in needed:
            np.maximum(clock, self._after[other][latest[other]], out=clock)
        number = clock[stream] = len(self._after[stream])
        self._clocks[stream] = clock
        self._after[stream].append(clock)
        for span, writes in shared:
            (self._written if writes else self._read)[stream, span] = number
        compute, out, into, beside = (int(latest[other]) if other in needed else -1 for other in range(4))
        return compute, out, into, beside

    def _span(self, access: Access) -> slice:
        return slice(self._place[access.begin], self._place[access.end])

    def _shared(self, access: Access) -> bool:
        """Whether another stream than compute ever accesses some of these bytes."""
        if not self._place:
            return False
        span = self._span(access)
        return bool(self._touched[span.stop] > self._touched[span.start])


def _issued(index: PlanIndex) -> tuple[list[list[int]], list[list[int]]]:
    """By slot, the entries of both copy queues that are issued to their streams before its op.

    An entry is issued once everything that it waits for by the plan's rules has been issued.
    """
    plan, n = index.plan, index.slots
    outs: list[list[int]] = [[] for _ in range(n + 1)]
    ins: list[list[int]] = [[] for _ in range(n + 1)]
    out_issued: list[int] = []
    for number, out in enumerate(plan.swap_outs):
        out_issued.append(max(out.ready + 1, out_issued[-1] if out_issued else 0))
        if out_issued[-1] > out.release:
            raise StowageError("the plan's queues wait for each other; plan again")
        outs[out_issued[-1]].append(number)
    issued = 0
    for number, copy in enumerate(plan.swap_ins):
        last_out = index.outs_due[copy.start] - 1
        issued = max(issued, copy.start, out_issued[last_out] if last_out >= 0 else 0)
        if issued > copy.use:
            raise StowageError("the plan's queues wait for each other; plan again")
        ins[issued].append(number)
    return outs, ins
