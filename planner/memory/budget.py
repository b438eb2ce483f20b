"""Memory budgets in human-readable form."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from numbers import Integral

from planner.errors import StowageError
from planner.units import BYTE_UNITS

_AMOUNT = re.compile(r"(\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(e[+-]?\d{1,3})?\s*(%|[a-z]*)", re.IGNORECASE | re.ASCII)
_EXAMPLES = 'write "8GiB", "8GB", "50%" or a whole number of bytes'
_LARGEST = 2**62


def parse_budget(
    budget: str | int | float, step_peak_bytes: int, what: str = "budget", *, outside_bytes: int = 0
) -> int:
    """Parse a memory budget; returns bytes.

    A share is one of the arena: what lies outside of it is needed whatever a plan does, and comes on top.

    Args:
        budget: bytes, or text such as `"8GiB"` (2**30 bytes), `"8GB"` (10**9 bytes), `"8e9"` and `"50%"`.
        step_peak_bytes: what `"100%"` stands for, in bytes.
        what: the name of the budget in error messages.
        outside_bytes: the part of `step_peak_bytes` that lies outside of the arena.

    Raises:
        StowageError: it is not an amount of memory, is less than one byte or is more than any machine has.
    """
    exact = _exact(budget, step_peak_bytes, outside_bytes)
    if exact < 1:
        raise StowageError(f"a {what} of {budget} leaves no memory at all; {_EXAMPLES}, at least one byte")
    if exact > _LARGEST:
        raise StowageError(f"a {what} of {budget} is more than any machine has; {_EXAMPLES}")
    return math.floor(exact)


def _exact(budget: str | int | float, step_peak_bytes: int, outside_bytes: int) -> Fraction:
    if isinstance(budget, bool) or not isinstance(budget, str | Integral | float):
        raise StowageError(f"{budget!r} is not a budget; {_EXAMPLES}")
    if isinstance(budget, float) and not budget.is_integer():
        raise StowageError(f"{budget!r} is not a whole number of bytes; {_EXAMPLES}")
    if not isinstance(budget, str):
        return Fraction(int(budget))
    text = budget.strip()
    match = _AMOUNT.fullmatch(text.removeprefix("-"))
    if match is None:
        raise StowageError(f'"{budget}" is not a budget; {_EXAMPLES}')
    digits, exponent, unit = match.groups()
    amount = Fraction(digits + (exponent or "")) * (-1 if text.startswith("-") else 1)
    if unit == "%":
        arena = amount * (step_peak_bytes - outside_bytes) / 100
        return arena + (outside_bytes if arena > 0 else 0)
    if unit.lower() not in BYTE_UNITS:
        raise StowageError(f'"{unit}" in the budget "{budget}" is not a unit of memory; {_EXAMPLES}')
    return amount * BYTE_UNITS[unit.lower()]
