"""From the slots of a plan to who waits for which event: the rules of `planner.memory.plan`, and nothing else.

Each queue is worked through in order, so "every swap-out with `release <= i`" is the last of them in the queue, and
an event that a stream has waited for once need not be waited for again.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.errors import StowageError
from planner.plan.swap_plan import SwapPlan


@dataclass(frozen=True, slots=True)
class CopyStep:
    """One entry of a copy queue.

    Args:
        index: its place in the queue.
        after_op: the slot whose op it waits for, -1 for none.
        after_out: the swap-out it waits for, -1 for none.
    """

    index: int
    after_op: int
    after_out: int


@dataclass(frozen=True, slots=True)
class SlotStep:
    """What happens before the op of a slot; the last one, at slot `n`, is the end of the step.

    Args:
        outs, ins: copies to give to their streams, all of whose conditions have been given before.
        await_out, await_in: the swap-out and the swap-in that the op waits for, -1 for none.
        recorded: whether a copy waits for the op in this slot.
    """

    outs: tuple[CopyStep, ...]
    ins: tuple[CopyStep, ...]
    await_out: int
    await_in: int
    recorded: bool


def schedule(plan: SwapPlan) -> tuple[SlotStep, ...]:
    """Steps for the slots `0..n` of a plan.

    Raises:
        StowageError: the queues wait for each other.
    """
    n = len(plan.order)
    last_out = _last_by_slot([copy.release for copy in plan.swap_outs], n)
    last_in = _last_by_slot([copy.use for copy in plan.swap_ins], n)
    outs: list[list[CopyStep]] = [[] for _ in range(n + 1)]
    ins: list[list[CopyStep]] = [[] for _ in range(n + 1)]
    recorded = [False] * (n + 1)
    out_given: list[int] = []
    seen_op = -1
    for index, out in enumerate(plan.swap_outs):
        after = out.ready if out.ready > seen_op else -1
        seen_op = max(seen_op, out.ready)
        out_given.append(max(out.ready + 1, out_given[-1] if out_given else 0))
        outs[out_given[-1]].append(CopyStep(index, after, -1))
        recorded[max(after, 0)] |= after >= 0
    given, seen_op, seen_out = 0, -1, -1
    for index, copy in enumerate(plan.swap_ins):
        after, after_out = copy.start - 1, last_out[copy.start]
        given = max(given, copy.start, out_given[after_out] if after_out >= 0 else 0)
        step = CopyStep(index, after if after > seen_op else -1, after_out if after_out > seen_out else -1)
        seen_op, seen_out = max(seen_op, after), max(seen_out, after_out)
        ins[given].append(step)
        recorded[max(step.after_op, 0)] |= step.after_op >= 0
        if given > copy.use:
            raise StowageError("the plan's queues wait for each other; plan again")
    for index, out in enumerate(plan.swap_outs):
        if out_given[index] > out.release:
            raise StowageError("the plan's queues wait for each other; plan again")
    before = (-1, *last_out), (-1, *last_in)
    return tuple(
        SlotStep(
            tuple(outs[slot]),
            tuple(ins[slot]),
            last_out[slot] if last_out[slot] > before[0][slot] else -1,
            last_in[slot] if last_in[slot] > before[1][slot] else -1,
            recorded[slot],
        )
        for slot in range(n + 1)
    )


def _last_by_slot(slots: list[int], n: int) -> list[int]:
    """Per slot `i` of `0..n`, the last entry of a queue whose own slot is at most `i`, or -1."""
    last = [-1] * (n + 1)
    for index, slot in enumerate(slots):
        last[slot] = index
    for slot in range(1, n + 1):
        last[slot] = max(last[slot], last[slot - 1])
    return last
