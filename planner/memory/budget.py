"""Amounts of memory as people write them."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from numbers import Integral

from planner.errors import StowageError

_UNITS = {
    "": 1, "b": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
_AMOUNT = re.compile(r"(\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(e[+-]?\d{1,3})?\s*(%|[a-z]*)", re.IGNORECASE | re.ASCII)
_EXAMPLES = 'write "8GiB", "8GB", "50%" or a whole number of bytes'
_LARGEST = 2**62


def parse_budget(budget: str | int | float, step_peak_bytes: int, what: str = "budget") -> int:
    """Read a memory budget.

    Args:
        budget: bytes, or text such as `"8GiB"` (2**30 bytes), `"8GB"` (10**9 bytes), `"8e9"` and `"50%"`.
        step_peak_bytes: what `"100%"` stands for, in bytes.
        what: what an error calls it.

    Raises:
        StowageError: it is no amount, or not at least one byte.
    """
    exact = _exact(budget, step_peak_bytes)
    if exact < 1:
        raise StowageError(f"a {what} of {budget} leaves no memory at all; {_EXAMPLES}, at least one byte")
    if exact > _LARGEST:
        raise StowageError(f"a {what} of {budget} is more than any machine has; {_EXAMPLES}")
    return math.floor(exact)


def _exact(budget: str | int | float, step_peak_bytes: int) -> Fraction:
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
        return amount * step_peak_bytes / 100
    if unit.lower() not in _UNITS:
        raise StowageError(f'"{unit}" in the budget "{budget}" is not a unit of memory; {_EXAMPLES}')
    return amount * _UNITS[unit.lower()]


def format_bytes(amount: int, more_digits: int = 0) -> str:
    """An amount of memory for people to read, in B, KiB, MiB, GiB or TiB, with three or four significant digits.

    Args:
        amount: in bytes.
        more_digits: behind the point.
    """
    size = abs(amount)
    for unit, power in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        # What would be 1000 of the smaller unit is written as 0.98 of this one; bytes are counted to 1023.
        if size >= (999.5 * 2 ** (power - 10) if power > 10 else 2**power):
            value = amount / 2**power
            digits = (0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2) + more_digits
            text = f"{value:.{digits}f}"
            return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {unit}"
    return f"{amount} B"


def format_apart(*amounts: int) -> list[str]:
    """Amounts for people to read beside each other: with as many digits as it takes to tell them apart."""
    for more_digits in range(16):
        texts = [format_bytes(amount, more_digits) for amount in amounts]
        if len(set(texts)) == len(set(amounts)):
            return texts
    return [f"{amount} B" for amount in amounts]
