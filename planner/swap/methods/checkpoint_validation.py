"""Validates values from the file of a search, because kernels do not check their inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from planner import json_fields
from planner.swap.problem.problem import Bytes, Flags, Ints, Problem, Seconds

_RANK = 1 << 30


def whole(value: Any, least: int, most: int) -> int:
    """A whole number from `least` to `most`.

    Raises:
        ValueError: it is not.
    """
    if not least <= json_fields.whole(value, "a number") <= most:
        raise json_fields.DamageError(f"{value} is not from {least} to {most}")
    return int(value)


def wholes(value: Any, count: int | None, least: int, most: int) -> Bytes:
    """`[count]`, whole numbers from `least` to `most`; any number of them for None.

    Raises:
        ValueError: they are not.
    """
    found = np.array(json_fields.wholes(value, "a list"), np.int64)
    if count not in (None, len(found)) or (len(found) and not least <= found.min() <= found.max() <= most):
        raise json_fields.DamageError(f"a list does not hold {count} numbers from {least} to {most}")
    return found


def number(value: Any, least: float = 0.0, most: float = np.inf) -> float:
    """A finite number from `least` to `most`.

    Raises:
        ValueError: it is not.
    """
    if not least <= json_fields.number(value, "a number") <= most:
        raise json_fields.DamageError(f"{value} is not from {least} to {most}")
    return float(value)


def seconds(value: Any) -> float:
    """A time in seconds; None stands for infinity.

    Raises:
        ValueError: it is not.
    """
    return np.inf if value is None else number(value)


def order(problem: Problem, value: Any) -> Ints:
    """`[ops]`, an order in which the ops can run.

    Raises:
        ValueError: it is not.
    """
    found = wholes(value, problem.ops, 0, problem.ops - 1).astype(np.int32)
    slot = np.full(problem.ops, -1, np.int64)
    slot[found] = np.arange(problem.ops)
    before = problem.predecessors
    followers = np.repeat(slot, np.diff(before.start))
    if (slot < 0).any() or (slot[before.items] >= followers).any():
        raise json_fields.DamageError("the ops cannot run in this order")
    return found


def clock(problem: Problem, value: Any) -> Seconds:
    """`[slots + 1]`, times from 0 on that never decrease.

    Raises:
        ValueError: they are not.
    """
    found = _numbers(value, problem.ops + 1)
    if found[0] != 0 or (np.diff(found) < 0).any():
        raise json_fields.DamageError("a clock goes backwards")
    return found


def bias(problem: Problem, value: Any) -> Seconds:
    """`[storages]`, factors above 0.

    Raises:
        ValueError: they are not.
    """
    found = _numbers(value, problem.storages)
    if not (found > 0).all():
        raise json_fields.DamageError("a factor is not above 0")
    return found


def flags(value: Any, count: int) -> Flags:
    """`[count]`, true or false.

    Raises:
        ValueError: they are not.
    """
    if type(value) is not list or len(value) != count or any(type(one) is not bool for one in value):
        raise json_fields.DamageError(f"a list does not hold {count} booleans")
    return np.array(value, np.bool_)


def reused_buffers(problem: Problem, value: Any) -> Ints:
    """`[ops]`, the storage whose buffer each op reuses, or -1.

    Raises:
        ValueError: some op cannot reuse that buffer.
    """
    found, reusables = wholes(value, problem.ops, -1, problem.storages - 1), problem.arrays.overwrites
    for op in np.flatnonzero(found >= 0).tolist():
        if found[op] not in reusables.items[reusables.start[op] : reusables.start[op + 1]]:
            raise json_fields.DamageError("an op reuses a buffer that it cannot reuse")
    return found.astype(np.int32)


def spans(value: Any, rows: int) -> Ints:
    """`[rows, 5]`, spans of `Decisions`: slots are clipped where they are used, ranks are added to deadlines.

    Raises:
        ValueError: they are not.
    """
    found = wholes(value, 5 * rows, -(1 << 31), (1 << 31) - 1).reshape(rows, 5)
    if (abs(found[:, 3:]) > _RANK).any():
        raise json_fields.DamageError("a rank is too large to be added to a deadline")
    return found.astype(np.int32)


def rng_state(value: Any) -> int:
    """The state of a random generator: 64 bits, not all 0.

    Raises:
        ValueError: it is not.
    """
    if type(value) is not int or not 0 < value < 1 << 64:
        raise json_fields.DamageError("a random generator has no such state")
    return value


def optional(kind: Callable[[Problem, Any], Any], problem: Problem, value: Any) -> Any:
    """None, or what `kind` returns for the value."""
    return None if value is None else kind(problem, value)


def _numbers(value: Any, count: int) -> Seconds:
    if type(value) is not list or len(value) != count:
        raise json_fields.DamageError(f"a list does not hold {count} numbers")
    return np.array([json_fields.number(one, "a list") for one in value], np.float64)
