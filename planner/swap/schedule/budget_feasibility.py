"""Which budgets are feasible, and the error for one that is not.

Bytes are counted in whole multiples of the alignment, the unit of allocation.
"""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

import numpy as np

from planner.errors import StowageError
from planner.graph import inverted
from planner.swap.problem.problem import Bytes, Ints, Problem
from planner.swap.schedule.base_orders import base_orders
from planner.swap.schedule.reorder_for_reuse import fits, reorder_for_reuse
from planner.units import format_apart, format_bytes

#: How many budgets are tried with ops moved, from the smallest that is not ruled out.
_MAX_TRIED = 32

_fitting: WeakKeyDictionary[Problem, Ints | None] = WeakKeyDictionary()


class BudgetTooSmallError(StowageError):
    """No plan was found within the budgets; everything else about the request is valid."""


class HostBudgetTooSmallError(BudgetTooSmallError):
    """Plans were found within the budget of the device, and all of them need more host memory than its budget."""


class CopiesNeededError(BudgetTooSmallError):
    """No plan that copies nothing was found within the budget, in which one that copies may exist.

    Args:
        budget: what no plan was found within, as text.
    """

    def __init__(self, budget: str) -> None:
        self.without_copies = f"no plan that copies nothing was found within {budget}"
        super().__init__(f'{self.without_copies}; take the method "auto", which may copy too, or allow more memory')


def working_sets(problem: Problem) -> Bytes:
    """`[ops]`, the aligned bytes that each op reads and writes, scratch memory included, without buffer reuse."""
    start, items = problem.arrays.touches.start, problem.arrays.touches.items
    sums = np.append(0, np.cumsum(problem.arrays.bytes[items]))
    return np.asarray(sums[start[1:]] - sums[start[:-1]], np.int64)


def orders(problem: Problem) -> Iterator[tuple[str, Ints]]:
    """The orders to try, each once, with its name: the base orders, and one that fits if none of them does."""
    found = list(base_orders(problem))
    yield from found
    order = fitting_order(problem)
    if order is not None and not any((order == one).all() for _, one in found):
        yield "rearranged", order


def fitting_order(problem: Problem) -> Ints | None:
    """The first base order that has a plan, with ops moved where needed; None if none is found."""
    if problem not in _fitting:
        _fitting[problem] = _first_fitting(problem)
    return _fitting[problem]


def _first_fitting(problem: Problem) -> Ints | None:
    tried: list[Ints] = []
    for _, order in base_orders(problem):  # each is made only if those before it do not fit
        if fits(problem, order):
            return order
        tried.append(order)
    set_bytes = working_sets(problem)
    moved = (reorder_for_reuse(problem, order, set_bytes) for order in tried)
    return next((order for order in moved if order is not None), None)


def least_budget(problem: Problem, step_peak_bytes: int) -> int:
    """The smallest budget that a plan was found for; if its arena is that of `ruled_out`, no smaller one has a plan."""
    set_bytes, reusing_bytes = working_sets(problem), _reusing_bytes(problem)
    _, floor = ruled_out(problem)
    extra_bytes = np.unique(np.append(reusing_bytes, 0))
    levels = np.unique(np.add.outer(np.concatenate([set_bytes, set_bytes - reusing_bytes]), extra_bytes))
    levels = levels[(levels > floor) & (levels < set_bytes.max(initial=1))]
    arenas = [max(floor, 1), *levels.tolist(), max(int(set_bytes.max(initial=1)), 1)]
    captured = next(order for _, order in base_orders(problem))
    low, high = 0, len(arenas) - 1
    while low < high:
        middle = (low + high) // 2
        if fits(_with_arena(problem, arenas[middle]), captured):
            high = middle
        else:
            low = middle + 1
    below = (
        arena for arena in arenas[: min(low, _MAX_TRIED)] if fitting_order(_with_arena(problem, arena)) is not None
    )
    return min(int(next(below, arenas[low])) + problem.graph.outside_bytes, step_peak_bytes)


def ruled_out(problem: Problem) -> tuple[int, int]:
    """The op that needs most memory, and its bytes: no plan fits in a smaller arena, whatever its order and reuse.

    An op can reuse the buffer of an input only if no other use of the input must come after the op, and only if the
    input was on the device in the slot before, next to the working set of the op there.
    """
    set_bytes, worst, most = working_sets(problem), -1, 0
    for op in np.argsort(-set_bytes, kind="stable").tolist():
        problem.stop.check()
        if set_bytes[op] <= most:
            break
        least = min([int(set_bytes[op]), *_bytes_with_reuse(problem, op, set_bytes)])
        if least > most:
            worst, most = op, least
    return worst, most


def _bytes_with_reuse(problem: Problem, op: int, set_bytes: Bytes) -> Iterator[int]:
    """The least bytes of an op and the one right before it, for each input whose buffer the op can reuse."""
    arrays = problem.arrays
    start, items = arrays.touches.start, arrays.touches.items
    before = [part.tolist() for part in np.split(problem.predecessors.items, problem.predecessors.start[1:-1])]
    later = _reached(inverted(before), [op])
    reusing_bytes = _reusing_bytes(problem)
    for reusable in arrays.overwrites.items[arrays.overwrites.start[op] : arrays.overwrites.start[op + 1]].tolist():
        users = set((np.searchsorted(start, np.flatnonzero(items == reusable), side="right") - 1).tolist())
        if users & later:
            continue
        size = int(arrays.bytes[reusable])
        first = _reached(before, [op, *users]) | users - {op}  # all ops that must come before the op
        not_last = {one for other in first for one in before[other]}
        sides = [
            int(set_bytes[other] - reusing_bytes[other]) + (0 if other in users else size)
            for other in range(problem.ops)
            if other != op and other not in later and other not in not_last
        ]
        yield max(int(set_bytes[op]) - size, min(sides, default=0))


def _reusing_bytes(problem: Problem) -> Bytes:
    """`[ops]`, the bytes of the storage that each op may create in the buffer of another one; 0 if there is none."""
    found = np.zeros(problem.ops, np.int64)
    some = problem.arrays.creates >= 0
    found[some] = problem.arrays.bytes[problem.arrays.creates[some]]
    return found


def _reached(edges: list[list[int]], ops: list[int]) -> set[int]:
    """All ops that can be reached from these by one edge or more."""
    found: set[int] = set()
    stack = list(ops)
    while stack:
        for other in edges[stack.pop()]:
            if other not in found:
                found.add(other)
                stack.append(other)
    return found


def _with_arena(problem: Problem, arena: int) -> Problem:
    problem.stop.check()
    return problem.within(arena + problem.graph.outside_bytes)


def refuse(problem: Problem, step_peak_bytes: int) -> BudgetTooSmallError:
    """The error for a budget that has no plan, or for which none was found."""
    set_bytes, (op, most), least = working_sets(problem), ruled_out(problem), least_budget(problem, step_peak_bytes)
    outside = problem.graph.outside_bytes
    beside = f", beside {format_bytes(outside)} of temporary memory outside of the arena" if outside else ""
    share = ' (a bare number is bytes; write "40%" for a share of what the step takes)' if problem.budget < 4096 else ""
    if problem.arena_budget < most:
        budget, alone = format_apart(problem.budget, most)
        how = ", even if its result reuses an input's memory" if most < set_bytes[op] else ""
        why = f"{_op_text(problem, op)} alone works on {alone}{beside}{how}"
    else:
        op = int(set_bytes.argmax())
        budget, alone = format_apart(problem.budget, int(set_bytes[op]))
        why = (
            f"{_op_text(problem, op)} alone works on {alone}{beside} unless its result reuses an input's memory, and "
            "no order of the ops was found in which every buffer that must be reused can be"
        )
    return BudgetTooSmallError(
        f"a budget of {budget} is too small{share}: {why}; allow at least {least} bytes "
        f"({format_bytes(least, round_up=True)})"
    )


def _op_text(problem: Problem, op: int) -> str:
    node = problem.nodes[op]
    return f"{node.name} ({node.target})"
