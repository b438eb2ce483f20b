"""Values of a formula: tensor elements, arithmetic, reductions over index variables, opaque functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from planner.errors import StowageError
from planner.partition.tdl.index import Affine, Index, Variable, as_index

#: A number of the op's arguments; one that changes from step to step is known by its name alone.
Number = float | int | bool | str


class Reduction(StrEnum):
    """How values over an index variable, or those of several workers, become one."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"
    FIRST_MAX = "first_max"  # where the first of the largest is; workers' answers cannot be combined


class Expression:
    """A value that depends on index variables."""

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The values it is computed from."""
        return ()

    def __add__(self, other: Expression | Affine | Number) -> Expression:
        return apply("add", self, other)

    def __radd__(self, other: Number) -> Expression:
        return apply("add", other, self)

    def __sub__(self, other: Expression | Affine | Number) -> Expression:
        return apply("sub", self, other)

    def __rsub__(self, other: Number) -> Expression:
        return apply("sub", other, self)

    def __mul__(self, other: Expression | Affine | Number) -> Expression:
        return apply("mul", self, other)

    def __rmul__(self, other: Number) -> Expression:
        return apply("mul", other, self)

    def __truediv__(self, other: Expression | Affine | Number) -> Expression:
        return apply("div", self, other)

    def __rtruediv__(self, other: Number) -> Expression:
        return apply("div", other, self)

    def __neg__(self) -> Expression:
        return apply("neg", self)


@dataclass(frozen=True, eq=False)
class Constant(Expression):
    """A number."""

    number: Number


@dataclass(frozen=True, eq=False)
class Position(Expression):
    """The value of an index itself, as in `row >= column`."""

    index: Index


@dataclass(frozen=True, eq=False)
class Operand:
    """A tensor that formulas read: an input of the op, or a stage.

    Args:
        name: `input 0`, or the name that the description gave a stage.
        shape: its shape.
        place: position among the op's inputs; -1 for a stage and for what cannot be read.
    """

    name: str
    shape: tuple[int, ...]
    place: int = -1
    dtype: str = "float32"

    def __getitem__(self, places: Affine | int | slice | tuple[Affine | int | slice, ...]) -> Read:
        return Read(self, _places(self, places))

    def padded(self, value: float) -> PaddedOperand:
        """The same tensor, which has this value wherever there is no element."""
        return PaddedOperand(self, value)


@dataclass(frozen=True, eq=False)
class PaddedOperand:
    """A tensor with a value outside of its bounds."""

    operand: Operand
    value: float

    def __getitem__(self, places: Affine | int | slice | tuple[Affine | int | slice, ...]) -> Read:
        return Read(self.operand, _places(self.operand, places), self.value)


@dataclass(frozen=True, eq=False)
class Read(Expression):
    """An element of a tensor, or a slice of it where an index is None: only opaque functions take slices.

    Args:
        operand: the tensor.
        places: an index per dimension; None is the whole dimension.
        padding: the value where there is no such element; None if that must not happen.
    """

    operand: Operand
    places: tuple[Index | None, ...]
    padding: float | None = None


@dataclass(frozen=True, eq=False)
class Apply(Expression):
    """An element-wise function of values; `planner.partition.tdl.evaluate` knows them by name."""

    function: str
    parts: tuple[Expression, ...] = ()


@dataclass(frozen=True, eq=False)
class Opaque(Expression):
    """Any function at all of values and slices."""

    parts: tuple[Expression, ...] = ()


@dataclass(frozen=True, eq=False)
class Reduce(Expression):
    """A reduction over index variables; `FIRST_MAX` gives the second part where the first is largest."""

    reduction: Reduction
    variables: tuple[Variable, ...]
    parts: tuple[Expression, ...] = ()


def apply(function: str, *parts: Expression | Affine | Number) -> Expression:
    """An element-wise function of values, numbers and indices."""
    return Apply(function, tuple(as_expression(part) for part in parts))


def opaque(*parts: Expression) -> Expression:
    """A function of which nothing is known but what it reads."""
    return Opaque(parts)


def Sum(over: Variable | Iterable[Variable], body: Expression) -> Expression:  # noqa: N802
    """The sum over all values of some index variables."""
    return _reduce(Reduction.SUM, over, body)


def Max(over: Variable | Iterable[Variable], body: Expression) -> Expression:  # noqa: N802
    """The largest over all values of some index variables."""
    return _reduce(Reduction.MAX, over, body)


def Min(over: Variable | Iterable[Variable], body: Expression) -> Expression:  # noqa: N802
    """The smallest over all values of some index variables."""
    return _reduce(Reduction.MIN, over, body)


def Prod(over: Variable | Iterable[Variable], body: Expression) -> Expression:  # noqa: N802
    """The product over all values of some index variables."""
    return _reduce(Reduction.PROD, over, body)


def FirstMax(over: Variable | Iterable[Variable], body: Expression, answer: Affine | Expression) -> Expression:  # noqa: N802
    """`answer` where `body` is largest for the first time, the last variable counting fastest."""
    return _reduce(Reduction.FIRST_MAX, over, body, as_expression(answer))


def where(condition: Expression, chosen: Expression | Number, other: Expression | Number) -> Expression:
    """`chosen` where the condition holds, else `other`."""
    return apply("where", condition, chosen, other)


def equal(left: Expression | Affine, right: Expression | Affine | Number) -> Expression:
    """Whether two values are the same."""
    return apply("eq", left, right)


def within(place: Affine, start: int, stop: int) -> Expression:
    """1 where start <= place < stop, else 0."""
    return apply("mul", apply("ge", place, start), apply("lt", place, stop))


def as_expression(value: Expression | Affine | Number) -> Expression:
    """A number or an index as a value."""
    if isinstance(value, Expression):
        return value
    return Position(as_index(value)) if isinstance(value, Affine) else Constant(value)


def walk(expression: Expression) -> Iterator[Expression]:
    """A value and all that it is computed from, each as often as it is written."""
    yield expression
    for part in expression.parts:
        yield from walk(part)


def reads(expression: Expression) -> list[Read]:
    """Every read in a formula."""
    return [part for part in walk(expression) if isinstance(part, Read)]


def _reduce(kind: Reduction, over: Variable | Iterable[Variable], *parts: Expression) -> Expression:
    variables = (over,) if isinstance(over, Variable) else tuple(over)
    return Reduce(kind, variables, parts) if variables else parts[-1]


def _places(
    operand: Operand, places: Affine | int | slice | tuple[Affine | int | slice, ...]
) -> tuple[Index | None, ...]:
    given = places if isinstance(places, tuple) else (places,)
    if len(given) != len(operand.shape):
        raise StowageError(f"{operand.name} of shape {list(operand.shape)} is read with {len(given)} indices")
    found: list[Index | None] = []
    for place in given:
        if isinstance(place, slice):
            if place != slice(None):
                raise StowageError(f"{operand.name} is read by a slice with bounds; write an index, or : for all of it")
            found.append(None)
        else:
            found.append(as_index(place))
    return tuple(found)
