"""Dependencies between the streams, derived from the slots of a plan by the rules of `planner.plan.swap_plan` alone.

Each queue is processed in order, so "every swap-out with `release <= i`" is the last of them in the queue. A wait
that other waits imply is left out: a stream that waited for an event also comes after all that this event came after.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.errors import StowageError
from planner.plan import PlanIndex


@dataclass(frozen=True, slots=True)
class CopyStep:
    """One entry of a copy queue.

    Args:
        index: its position in the queue.
        after_op: the slot whose op it waits for, -1 for none.
        after_out: the swap-out it waits for, -1 for none.
    """

    index: int
    after_op: int
    after_out: int


@dataclass(frozen=True, slots=True)
class SlotStep:
    """The stream work before the op of a slot; the last one, at slot `n`, is the end of the step.

    Args:
        outs, ins: copies to issue to their streams; everything that they wait for has been issued before.
        await_out, await_in: the swap-out and the swap-in that the op waits for, -1 for none.
        recorded: whether a copy waits for the op in this slot.
    """

    outs: tuple[CopyStep, ...]
    ins: tuple[CopyStep, ...]
    await_out: int
    await_in: int
    recorded: bool


#: How far a stream is known to be: the last op, swap-out and swap-in that are done, -1 for none.
_Clock = tuple[int, int, int]
_START: _Clock = (-1, -1, -1)


def schedule(index: PlanIndex) -> tuple[SlotStep, ...]:
    """Steps for the slots `0..n` of a plan.

    Raises:
        StowageError: the queues wait for each other.
    """
    outs, ins = _given(index)
    swap_outs, swap_ins, n = index.plan.swap_outs, index.plan.swap_ins, index.slots
    compute, out_stream, in_stream = _START, _START, _START
    after_op: list[_Clock] = []  # what each op, swap-out and swap-in is after, itself included
    after_out: list[_Clock] = []
    after_in: list[_Clock] = []
    awaited: set[int] = set()
    steps = []
    for slot in range(n + 1):
        given_outs, given_ins = [], []
        for number in outs[slot]:
            op = swap_outs[number].ready
            if op <= out_stream[0]:
                op = -1
            out_stream = _later(out_stream, after_op[op] if op >= 0 else _START)
            given_outs.append(CopyStep(number, op, -1))
            out_stream = (out_stream[0], number, out_stream[2])
            after_out.append(out_stream)
            awaited.add(op)
        for number in ins[slot]:
            start = swap_ins[number].start
            op, out = _needed(in_stream, (start - 1, after_op, 0), (index.outs_due[start] - 1, after_out, 1))
            in_stream = _later(in_stream, after_op[op] if op >= 0 else _START, after_out[out] if out >= 0 else _START)
            given_ins.append(CopyStep(number, op, out))
            in_stream = (in_stream[0], in_stream[1], number)
            after_in.append(in_stream)
            awaited.add(op)
        last_out, last_in = index.outs_due[slot] - 1, index.ins_due[slot] - 1
        if slot == n:  # the device is synchronized there
            last_out, last_in = -1, -1
        out, into = _needed(compute, (last_out, after_out, 1), (last_in, after_in, 2))
        compute = _later(compute, after_out[out] if out >= 0 else _START, after_in[into] if into >= 0 else _START)
        compute = (slot, compute[1], compute[2])
        after_op.append(compute)
        steps.append((tuple(given_outs), tuple(given_ins), out, into))
    return tuple(SlotStep(*step, recorded=slot in awaited) for slot, step in enumerate(steps))


def _needed(clock: _Clock, one: tuple[int, list[_Clock], int], other: tuple[int, list[_Clock], int]) -> tuple[int, int]:
    """Of two entries to wait for, each with what its stream's entries are after and its place in a clock: -1 for one
    that is implied by the other or by what was waited for before."""
    (first, after_first, place), (second, after_second, beside) = one, other
    if first <= clock[place]:
        first = -1
    if second <= clock[beside]:
        second = -1
    if first >= 0 and second >= 0:
        if after_second[second][place] >= first:
            first = -1
        elif after_first[first][beside] >= second:
            second = -1
    return first, second


def _later(*clocks: _Clock) -> _Clock:
    ops, outs, ins = zip(*clocks, strict=True)
    return max(ops), max(outs), max(ins)


def _given(index: PlanIndex) -> tuple[list[list[int]], list[list[int]]]:
    """By slot, the entries of both copy queues that are given to their streams before its op.

    An entry is given once everything that it waits for has been given.
    """
    plan, n = index.plan, index.slots
    outs: list[list[int]] = [[] for _ in range(n + 1)]
    ins: list[list[int]] = [[] for _ in range(n + 1)]
    out_given: list[int] = []
    for number, out in enumerate(plan.swap_outs):
        out_given.append(max(out.ready + 1, out_given[-1] if out_given else 0))
        if out_given[-1] > out.release:
            raise StowageError("the plan's queues wait for each other; plan again")
        outs[out_given[-1]].append(number)
    given = 0
    for number, copy in enumerate(plan.swap_ins):
        last_out = index.outs_due[copy.start] - 1
        given = max(given, copy.start, out_given[last_out] if last_out >= 0 else 0)
        if given > copy.use:
            raise StowageError("the plan's queues wait for each other; plan again")
        ins[given].append(number)
    return outs, ins
