"""Format quantities for readers: one unit per plot, enough digits, always with a unit."""

from __future__ import annotations

from dataclasses import dataclass
from math import copysign, floor

_BYTES = (("B", 1), ("KiB", 2**10), ("MiB", 2**20), ("GiB", 2**30), ("TiB", 2**40))
_SECONDS = (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0))


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


def _from(unit: int) -> float:
    """The smallest amount shown in a unit: 1000 of the unit below, which is 0.98 of it, already counts."""
    return unit if unit <= 2**10 else unit * 999.5 / 1024


def bytes_text(size: float) -> str:
    """`628 MiB`, `36.0 MiB`, `1.50 GiB`: three significant digits, two decimals from one GiB on, whole bytes."""
    name, unit = next((unit for unit in reversed(_BYTES) if abs(size) >= _from(unit[1])), _BYTES[0])
    value, large = size / unit, unit >= 2**30
    digits = 0 if unit == 1 or (abs(value) >= 99.95 and not large) else 1 if abs(value) >= 9.995 and not large else 2
    return f"{_half_up(value, digits):.{digits}f} {name}"


def _half_up(value: float, digits: int) -> float:
    """Round half up as the page does: 220.5 becomes 221, where Python gives 220."""
    unit = float(10**digits)
    return copysign(floor(abs(value) * unit + 0.5) / unit, value)


def exact_bytes_text(size: float) -> str:
    """`36.25 MiB`, `10.4209 GiB`: with enough digits to distinguish nearby values."""
    name, unit = next((unit for unit in reversed(_BYTES) if abs(size) >= _from(unit[1])), _BYTES[0])
    return f"{round(size / unit, 4 if unit >= 2**30 else 2):.10g} {name}"


def seconds_text(seconds: float, digits: int = 3) -> str:
    """`1.84 s`, `848 ms`: `digits` significant digits."""
    name, unit = next((unit for unit in reversed(_SECONDS) if abs(seconds) >= unit[1]), _SECONDS[0])
    value = seconds / unit
    number = f"{value:.{max(0, digits - len(str(int(abs(value)))))}f}"
    return f"{number} {name}" if float(number) else "0 s"


def percent_text(share: float) -> str:
    """`66 %`; one decimal below ten."""
    return f"{100 * share:.0f} %" if abs(share) >= 0.0995 or not share else f"{100 * share:.1f} %"


def count_text(number: int, noun: str) -> str:
    """`1 op`, `1,500 ops`, with a comma between thousands."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
