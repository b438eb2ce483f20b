"""Index variables and the affine expressions of them by which tensors are read."""

from __future__ import annotations

from dataclasses import dataclass

from planner.errors import StowageError


class Affine:
    """What can stand in brackets: a sum of index variables, each times a whole number, plus a whole number."""

    #: The variables and their coefficients, none of them 0.
    terms: tuple[tuple[Variable, int], ...]
    #: The number that is added.
    constant: int
    #: The sum is divided by this, and there is no such element where that leaves a remainder.
    divisor: int

    def __add__(self, other: Affine | int) -> Index:
        right = as_index(other)
        coefficients = dict(self.terms)
        for variable, coefficient in right.terms:
            coefficients[variable] = coefficients.get(variable, 0) + coefficient
        _undivided(self, right)
        return Index(
            tuple((variable, number) for variable, number in coefficients.items() if number),
            self.constant + right.constant,
        )

    def __mul__(self, factor: int) -> Index:
        _undivided(self)
        if factor == 0:
            return Index((), 0)
        return Index(tuple((variable, number * factor) for variable, number in self.terms), self.constant * factor)

    def __neg__(self) -> Index:
        return self * -1

    def __sub__(self, other: Affine | int) -> Index:
        return self + -as_index(other)

    def __radd__(self, other: int) -> Index:
        return self + other

    def __rmul__(self, other: int) -> Index:
        return self * other

    def __rsub__(self, other: int) -> Index:
        return -self + other


class Variable(Affine):
    """An index variable, which counts from 0 to below its extent; the same one in several formulas is one axis.

    Args:
        name: how it is called in reports.
        extent: how many values it takes; None where a tensor that it indexes alone determines it.
    """

    def __init__(self, name: str, extent: int | None = None) -> None:
        self.name = name
        self.extent = extent
        self.terms = ((self, 1),)
        self.constant = 0
        self.divisor = 1

    def __repr__(self) -> str:
        return self.name

    @property
    def size(self) -> int:
        """Its extent.

        Raises:
            StowageError: nothing determines it.
        """
        if self.extent is None:
            raise StowageError(f"no tensor has a dimension indexed by {self.name} alone; write index({self.name!r}, n)")
        return self.extent


@dataclass(frozen=True)
class Index(Affine):
    """(constant + the sum of coefficient x variable) / divisor."""

    terms: tuple[tuple[Variable, int], ...]
    constant: int
    divisor: int = 1


def index(name: str, extent: int | None = None) -> Variable:
    """One index variable; see `Variable`."""
    return Variable(name, extent)


def indices(names: str) -> tuple[Variable, ...]:
    """Index variables by their names, separated by spaces."""
    return tuple(Variable(name) for name in names.split())


def counted(letter: str, count: int) -> tuple[Variable, ...]:
    """`count` index variables called `i0`, `i1`, ... for the letter `i`."""
    return tuple(Variable(f"{letter}{number}") for number in range(count))


def exactly(dividend: Affine, divisor: int) -> Index:
    """The dividend divided by a whole number; where that leaves a remainder, there is no such element."""
    whole = as_index(dividend)
    _undivided(whole)
    return Index(whole.terms, whole.constant, divisor)


def as_index(value: Affine | int) -> Index:
    """A number or variable as an index."""
    if isinstance(value, Index):
        return value
    return Index((), value) if isinstance(value, int) else Index(value.terms, value.constant, value.divisor)


def digits(place: Affine, size: int) -> tuple[Variable, ...] | None:
    """The variables that are the digits of an index, the outermost first, if it takes every value below `size` once.

    A variable alone is its own only digit; `head * 64 + column` has two, if `column` has 64 values. The coefficient of
    a variable with one value does not matter: a kernel of size 1 moves no window.
    """
    if place.constant or place.divisor != 1 or not place.terms:
        return None
    inner = 1
    found: list[Variable] = []
    for variable, coefficient in sorted(place.terms, key=lambda term: (term[1], term[0].size)):
        if coefficient != inner and variable.size > 1:
            return None
        found.append(variable)
        inner *= variable.size
    return tuple(reversed(found)) if inner == size else None


def _undivided(*parts: Affine) -> None:
    if any(part.divisor != 1 for part in parts):
        raise StowageError("an index is divided last: exactly(...) cannot be added to or multiplied")
