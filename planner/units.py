"""Amounts of memory and time, shares and counts, as people read them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal
from math import ceil

#: Bytes of each unit that people write, in lower case; none is bytes.
BYTE_UNITS = {
    "": 1, "b": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
_BYTES = (("B", 1.0), ("KiB", 2.0**10), ("MiB", 2.0**20), ("GiB", 2.0**30), ("TiB", 2.0**40))
_SECONDS = (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0))
#: From here on, two decimals are always shown where amounts stand in a column: hundredths are megabytes.
_LARGE = 2.0**30
#: Seconds that are shown as none: less than an operation of any machine takes.
_NOTHING = 5e-10


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit, and its size in bytes or seconds."""

    name: str
    size: float


def byte_unit(largest: float) -> Unit:
    """The unit for an axis that ends at `largest` bytes."""
    return Unit(*next((unit for unit in reversed(_BYTES[:-1]) if largest >= unit[1]), _BYTES[0]))


def second_unit(largest: float) -> Unit:
    """The unit for an axis that ends at `largest` seconds."""
    return Unit(*next((unit for unit in reversed(_SECONDS) if largest >= unit[1]), _SECONDS[0]))


def format_bytes(amount: float, more_digits: int = 0, *, round_up: bool = False) -> str:
    """An amount of memory in a sentence: `36 MiB`, `1.5 GiB`; three significant digits, no zeros at the end.

    Args:
        amount: in bytes.
        more_digits: extra digits after the decimal point.
        round_up: never write less than the amount, as for the least that is enough, which may be typed back.
    """
    unit = _unit_of_text(amount, round_up)
    if unit.size == 1:
        return f"{amount:.0f} B"
    value = amount / unit.size
    return f"{_without_zeros(_rounded(value, _decimals(value) + more_digits, round_up))} {unit.name}"


def bytes_label(amount: float, *, round_up: bool = False) -> str:
    """An amount of memory as a label beside others: `628 MiB`, `36.0 MiB`, `1.50 GiB`; two decimals from one GiB on.

    The page shows the same (`core/units.js`).

    Args:
        amount: in bytes.
        round_up: as in `format_bytes`.
    """
    unit = _unit_of_text(amount, round_up)
    value = amount / unit.size
    decimals = 0 if unit.size == 1 else 2 if unit.size >= _LARGE else _decimals(value)
    return f"{_rounded(value, decimals, round_up)} {unit.name}"


def exact_bytes_label(amount: float) -> str:
    """A label with enough digits to distinguish nearby ones: `36.25 MiB`, `10.4209 GiB`."""
    unit = unit_of_bytes(amount)
    return f"{_without_zeros(_rounded(amount / unit.size, 4 if unit.size >= _LARGE else 2))} {unit.name}"


def format_apart(*amounts: int) -> list[str]:
    """Amounts of memory in one sentence, with as many digits as it takes to tell them apart."""
    for more_digits in range(16):
        texts = [format_bytes(amount, more_digits) for amount in amounts]
        if len(set(texts)) == len(set(amounts)):
            return texts
    return [f"{amount} B" for amount in amounts]


def format_seconds(seconds: float, digits: int = 3) -> str:
    """An amount of time with that many significant digits: `1.84 s`, `848 ms`."""
    if abs(seconds) < _NOTHING:
        return "0 s"
    # 999.6 ms are 1.00 s
    name, size = next(
        (unit for unit in reversed(_SECONDS) if abs(seconds) >= unit[1] * (1 - 0.5 * 10**-digits)), _SECONDS[0]
    )
    value = seconds / size
    return f"{_rounded(value, _decimals(value, digits))} {name}"


def format_percent(share: float) -> str:
    """A share in percent: `66 %`, one decimal below ten."""
    return f"{100 * share:.0f} %" if abs(share) >= 0.0995 or not share else f"{100 * share:.1f} %"


def several(number: int, noun: str) -> str:
    """`1 op`, `2 ops`, `1,500 ops`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def unit_of_bytes(amount: float) -> Unit:
    """The unit of an amount: 1000 of a unit is written as 0.98 of the next larger one; bytes are counted up to 1023."""
    size = abs(amount)
    units = (unit for unit in reversed(_BYTES) if size >= (unit[1] if unit[1] <= 2**10 else unit[1] * 999.5 / 1024))
    return Unit(*next(units, _BYTES[0]))


def _unit_of_text(amount: float, round_up: bool) -> Unit:
    """The unit of an amount that may be rounded up: 999.2 KiB are 1000 KiB then, and those 0.98 MiB."""
    unit = unit_of_bytes(amount)
    return unit_of_bytes(ceil(amount / unit.size) * unit.size) if round_up else unit


def _decimals(value: float, digits: int = 3) -> int:
    """Decimals that leave `digits` significant digits once rounded."""
    whole = sum(abs(value) >= 10.0**power - 0.5 * 10.0 ** (power - digits) for power in range(1, digits))
    return digits - 1 - int(whole)


def _rounded(value: float, decimals: int, up: bool = False) -> str:
    """Rounded half up, as the page does: 220.5 becomes 221, where Python gives 220; or always up."""
    rounding = ROUND_CEILING if up else ROUND_HALF_UP
    return str(Decimal(float(value)).quantize(Decimal(1).scaleb(-decimals), rounding))


def _without_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
