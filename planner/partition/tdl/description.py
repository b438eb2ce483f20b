"""The description of one op: for every output and stage, its coordinates and the value there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from planner.errors import StowageError
from planner.partition.tdl.expression import (
    Expression,
    Number,
    Opaque,
    Operand,
    Position,
    Read,
    Reduce,
    as_expression,
    reads,
    walk,
)
from planner.partition.tdl.index import Affine, Index, Variable, as_index, digits
from planner.partition.tdl.interval import attained


@dataclass(frozen=True, eq=False)
class Formula:
    """What an output or stage holds.

    Args:
        target: `output 0`, or a stage's name.
        shape: its shape.
        places: per dimension, the index at which it is written; together they reach every element once.
        value: the value there.
        operand: a stage, as later formulas read it; None for an output.
    """

    target: str
    shape: tuple[int, ...]
    places: tuple[Index, ...]
    value: Expression
    operand: Operand | None = None

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Its coordinates."""
        return tuple(variable for place in self.places for variable, _ in place.terms)

    @property
    def opaque(self) -> bool:
        """Whether an opaque function computes it."""
        return any(isinstance(part, Opaque) for part in walk(self.value))


class OutputTarget:
    """An output of the op while it is described: `out[i, j] = value`."""

    def __init__(self, description: Description, number: int, shape: tuple[int, ...]) -> None:
        self.description = description
        self.number = number
        self.shape = shape

    def __setitem__(self, places: Affine | int | tuple[Affine | int, ...], value: Expression | Number) -> None:
        formula = _formula(f"output {self.number}", self.shape, places, as_expression(value))
        self.description.outputs[self.number] = formula


class StageTarget(OutputTarget):
    """An intermediate result with a name, such as a mean, which workers may have to combine before they go on."""

    def __init__(self, description: Description, name: str, shape: tuple[int, ...]) -> None:
        super().__init__(description, len(description.stages), shape)
        self.operand = Operand(name, shape)

    def __setitem__(self, places: Affine | int | tuple[Affine | int, ...], value: Expression | Number) -> None:
        formula = _formula(self.operand.name, self.shape, places, as_expression(value), self.operand)
        self.description.stages.append(formula)

    def __getitem__(self, places: Affine | int | tuple[Affine | int, ...]) -> Read:
        return self.operand[places]


@dataclass(eq=False)
class Description:
    """What an op computes.

    Args:
        name: the op, for messages.
        inputs: the op's tensors, in the order of the graph's op.
        shapes: shape per output; None for an output that the op does not make.
        outputs: formula by output.
        stages: formulas of intermediate results, each before those that read it.
        unknown: whether nothing is said but that every output depends on all of every input.
    """

    name: str
    inputs: tuple[Operand, ...]
    shapes: tuple[tuple[int, ...] | None, ...]
    outputs: dict[int, Formula] = field(default_factory=dict)
    stages: list[Formula] = field(default_factory=list)
    unknown: bool = False

    def stage(self, name: str, shape: tuple[int, ...]) -> StageTarget:
        """A new intermediate result, to be assigned like an output and read like an input."""
        return StageTarget(self, name, shape)

    def output(self, number: int) -> OutputTarget:
        """An output, to be assigned.

        Raises:
            StowageError: there is no such output.
        """
        if number >= len(self.shapes) or (shape := self.shapes[number]) is None:
            raise StowageError(f"{self.name} has no output {number}")
        return OutputTarget(self, number, shape)

    @property
    def formulas(self) -> list[Formula]:
        """Stages, then outputs."""
        return [*self.stages, *(self.outputs[number] for number in sorted(self.outputs))]

    @property
    def opaque(self) -> bool:
        """Whether an opaque function computes any output, or nothing says how one is computed."""
        made = [number for number, shape in enumerate(self.shapes) if shape is not None]
        return any(number not in self.outputs or self.outputs[number].opaque for number in made)

    @property
    def axes(self) -> list[Variable]:
        """The index variables of all formulas, in the order in which they are written."""
        found: dict[Variable, None] = {}
        for formula in self.formulas:
            found.update(dict.fromkeys(formula.variables))
            for part in walk(formula.value):
                if isinstance(part, Reduce):
                    found.update(dict.fromkeys(part.variables))
        return list(found)

    def finish(self) -> Description:
        """Determine the extents of its variables and check it.

        Raises:
            StowageError: an extent is not determined or not unique, an output has an element that is written twice or
                never or has no elements, or a tensor is read where it has no element.
        """
        try:
            for formula in self.formulas:
                self._extents(formula)
            for formula in self.formulas:
                self._check(formula)
        except StowageError as error:
            shapes = ", ".join(str(list(operand.shape)) for operand in self.inputs)
            raise StowageError(f"the description of {self.name} with inputs {shapes or 'none'}: {error}") from None
        return self

    def _extents(self, formula: Formula) -> None:
        for place, size in zip(formula.places, formula.shape, strict=True):
            _determine(place, size, formula.target)
        for read in reads(formula.value):
            for index, size in zip(read.places, read.operand.shape, strict=True):
                if index is not None and read.padding is None:
                    _determine(index, size, read.operand.name)

    def _check(self, formula: Formula) -> None:
        if 0 in formula.shape:
            raise StowageError(f"{formula.target} of shape {list(formula.shape)} has no elements")
        for place, size in zip(formula.places, formula.shape, strict=True):
            if size != 1 and digits(place, size) is None:
                raise StowageError(f"{formula.target} is not written at every index of a dimension of {size} once")
        if len(set(formula.variables)) < len(formula.variables):
            raise StowageError(f"{formula.target} is written along a diagonal")
        bound = {*formula.variables}
        for variable in _free(formula.value):
            if variable not in bound:
                raise StowageError(f"{formula.target} depends on {variable.name}, which is not one of its coordinates")
        for read in reads(formula.value):
            for index, size in zip(read.places, read.operand.shape, strict=True):
                if index is None or read.padding is not None:
                    continue
                first, last = attained(index, {}, None)
                if first < 0 or last >= size:
                    wrong = first if first < 0 else last
                    raise StowageError(f"{read.operand.name} of shape {list(read.operand.shape)} is read at {wrong}")


def _formula(
    target: str,
    shape: tuple[int, ...],
    places: Affine | int | tuple[Affine | int, ...],
    value: Expression,
    operand: Operand | None = None,
) -> Formula:
    given = places if isinstance(places, tuple) else (places,)
    if len(given) != len(shape):
        raise StowageError(f"{target} of shape {list(shape)} is written with {len(given)} indices")
    return Formula(target, shape, tuple(as_index(place) for place in given), value, operand)


def _determine(place: Index, size: int, where: str) -> None:
    """Give a variable that indexes a dimension alone the dimension's size."""
    if len(place.terms) != 1 or place.constant or place.divisor != 1 or place.terms[0][1] != 1:
        return
    variable = place.terms[0][0]
    if variable.extent is None:
        variable.extent = size
    elif variable.extent != size:
        raise StowageError(f"{variable.name} takes {variable.extent} values, but {where} has {size} along it")


def _free(value: Expression) -> Iterator[Variable]:
    """The variables of a value that no reduction in it binds."""
    if isinstance(value, Read):
        for place in value.places:
            yield from (variable for variable, _ in place.terms) if place is not None else ()
    elif isinstance(value, Position):
        yield from (variable for variable, _ in value.index.terms)
    bound = set(value.variables) if isinstance(value, Reduce) else set()
    for part in value.parts:
        yield from (variable for variable in _free(part) if variable not in bound)
