"""Human-readable amounts of memory and time, and counts."""

from __future__ import annotations

_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def format_bytes(amount: int, more_digits: int = 0) -> str:
    """An amount of memory in B, KiB, MiB, GiB or TiB, with three or four significant digits.

    Args:
        amount: in bytes.
        more_digits: extra digits after the decimal point.
    """
    size = abs(amount)
    for unit, power in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        # 1000 of a smaller unit is written as 0.98 of the next larger one; bytes are counted up to 1023
        if size >= (999.5 * 2 ** (power - 10) if power > 10 else 2**power):
            value = amount / 2**power
            digits = (0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2) + more_digits
            text = f"{value:.{digits}f}"
            return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {unit}"
    return f"{amount} B"


def format_apart(*amounts: int) -> list[str]:
    """Amounts shown next to each other, with as many digits as it takes to tell them apart."""
    for more_digits in range(16):
        texts = [format_bytes(amount, more_digits) for amount in amounts]
        if len(set(texts)) == len(set(amounts)):
            return texts
    return [f"{amount} B" for amount in amounts]


def format_seconds(seconds: float) -> str:
    """An amount of time with three significant digits."""
    size = abs(seconds)
    for unit, name in _SECONDS:
        if size >= 0.9995 * unit:
            value = seconds / unit
            digits = 0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2
            return f"{value:.{digits}f} {name}"
    return "0 s" if size < 5e-10 else f"{seconds:.2g} s"


def several(number: int, noun: str) -> str:
    """`1 op`, `2 ops`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
