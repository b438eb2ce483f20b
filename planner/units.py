"""Amounts for people to read."""

from __future__ import annotations


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
