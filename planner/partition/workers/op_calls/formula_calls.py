"""An op computed by its description: formulas as calls on a worker's chunks, stages reduced over the workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch

from planner.partition.parts import only_variable
from planner.partition.tdl import (
    FUNCTIONS,
    Apply,
    Constant,
    Description,
    Expression,
    Formula,
    Index,
    Operand,
    Position,
    Read,
    Reduce,
    Reduction,
    Variable,
    digits,
)
from planner.partition.workers.events.worker_events import WorkerEvents, dense, permuted
from planner.partition.workers.op_calls.fake_calls import FakeCalls
from planner.partition.workers.tensors.redistribute import redistribute
from planner.partition.workers.tensors.spreads import Cut, Spread, Whole, chunks, local_elements, local_part, uncut
from planner.program import Layout

_ATEN = torch.ops.aten
_REDUCED = {Reduction.SUM: _ATEN.sum.dim_IntList, Reduction.MAX: _ATEN.amax.default, Reduction.MIN: _ATEN.amin.default}
#: Functions whose calls take a number for a second tensor.
_NUMBERS_AS_TENSORS = frozenset({"add", "sub", "mul", "div"})

#: A tensor with a dimension per variable in scope, of size 1 where it does not depend on it; or a number.
_Value = Layout | float | int | bool


@dataclass(eq=False)
class FormulaCalls:
    """The calls of one worker for one op.

    Args:
        calls: of the worker.
        fakes: to find out what calls return.
        op: its name.
        description: what it computes.
        tensors: by input of the description, the worker's chunk.
        spreads: by index variable that is divided, how its values are spread.
        reduced: by name of a stage that workers reduce, how and over which levels.
        stage_dtype: in which precision they do.
    """

    calls: WorkerEvents
    fakes: FakeCalls
    op: str
    description: Description
    tensors: dict[Operand, Layout]
    spreads: Mapping[Variable, Spread]
    reduced: Mapping[str, tuple[Reduction, Sequence[int]]]
    stage_dtype: torch.dtype
    _made: dict[object, Layout] = field(default_factory=dict)

    def add(self, outputs: Sequence[tuple[int, Layout, bool]]) -> None:
        """Add the calls.

        Args:
            outputs: output of the description, where the worker is to have its chunk, and whether that exists already.
        """
        for stage in self.description.stages:
            assert stage.operand is not None
            self.tensors[stage.operand] = self._stage(stage)
        late = []
        for number, layout, exists in outputs:
            if number not in self.description.outputs:  # it has no elements
                self.calls.add(_ATEN.empty.memory_format, (layout.shape,), layout, dtype=layout.dtype)
                continue
            formula = self.description.outputs[number]
            if exists:  # others may still read what is there now
                late.append((self._of_formula(formula, layout.dtype, None), layout))
            else:
                self._of_formula(formula, layout.dtype, layout)
        for value, layout in late:
            self.calls.copy(value, layout)

    def _stage(self, formula: Formula) -> Layout:
        value = self._tensor(self._value(formula.value, formula.variables), formula.variables)
        if formula.target in self.reduced:
            reduction, levels = self.reduced[formula.target]
            if value.dtype != self.stage_dtype:
                value = self._call(_ATEN._to_copy.default, (value,), {"dtype": self.stage_dtype}, None)
            value = self.calls.all_reduce(value if value.dense else self.calls.clone(value), levels, reduction)
        return self._placed(formula, value)

    def _of_formula(self, formula: Formula, dtype: torch.dtype, into: Layout | None) -> Layout:
        """A formula's values in the shape of what it is written to, and there if a place is given."""
        scope = formula.variables
        order = [factor for place, size in zip(formula.places, formula.shape, strict=True)
                 for factor in digits(place, size) or ()]  # fmt: skip
        rows = tuple(self._size(variable) for variable in order)
        own = tuple(prod(self._size(factor) for factor in digits(place, size) or ())
                    for place, size in zip(formula.places, formula.shape, strict=True))  # fmt: skip
        is_dense = into is not None and into == dense(into.storage, into.shape, into.dtype, into.offset)
        direct = None
        if into is not None and is_dense and tuple(order) == scope:
            direct = dense(into.storage, rows, into.dtype, into.offset)
        value = self._tensor(self._value(formula.value, scope, direct), scope)
        if direct is not None and value.storage == direct.storage:
            return value
        value = permuted(value, tuple(scope.index(variable) for variable in order))
        if into is not None and is_dense:
            made = dense(into.storage, rows, into.dtype, into.offset)
        elif into is None and value.dtype == dtype and own == value.shape:
            return value
        else:
            made = self.calls.new(rows, dtype)
        self._copied(value, made)
        if is_dense or into is None:
            return made._replace(shape=own, strides=dense(0, own, dtype).strides)
        self.calls.add(_ATEN.clone.default, (dense(made.storage, into.shape, dtype),), into)
        return into

    def _copied(self, value: Layout, made: Layout) -> None:
        """Bring a value to a dense tensor of its shape."""
        kwargs: dict[str, Any] = {"memory_format": torch.contiguous_format}
        if value.dtype == made.dtype:
            self.calls.add(_ATEN.clone.default, (value,), made, **kwargs)
        else:
            self.calls.add(_ATEN._to_copy.default, (value,), made, dtype=made.dtype, **kwargs)

    def _placed(self, formula: Formula, value: Layout) -> Layout:
        """A stage's values with its dimensions instead of those of its variables."""
        scope = list(formula.variables)
        shape, strides = [], []
        for place in formula.places:
            variable = only_variable(place)
            if variable is None:
                shape.append(1)
                strides.append(1)
            else:
                shape.append(value.shape[scope.index(variable)])
                strides.append(value.strides[scope.index(variable)])
        return value._replace(shape=tuple(shape), strides=tuple(strides))

    def _size(self, variable: Variable) -> int:
        """How many values of a variable the worker has."""
        if variable not in self.spreads:
            return variable.size
        return local_elements(variable.size, chunks(self.spreads[variable], self.calls.mesh, self.calls.place))

    def _tensor(self, value: _Value, scope: Sequence[Variable]) -> Layout:
        """A value as a tensor of the full size of its scope."""
        assert isinstance(value, Layout), f"the formula of {self.op} is a number"
        return self._expanded(value, scope, scope)

    def _expanded(self, value: Layout, scope: Sequence[Variable], over: Sequence[Variable]) -> Layout:
        """A view of a value that repeats it along variables that it does not depend on."""
        shape, strides = list(value.shape), list(value.strides)
        for dimension, variable in enumerate(scope):
            if variable in over and shape[dimension] == 1 != self._size(variable):
                shape[dimension], strides[dimension] = self._size(variable), 0
        return value._replace(shape=tuple(shape), strides=tuple(strides))

    def _value(self, part: Expression, scope: Sequence[Variable], into: Layout | None = None) -> _Value:
        if isinstance(part, Constant):
            assert not isinstance(part.number, str), f"a number of {self.op} is not known"
            return part.number
        if isinstance(part, Read):
            return self._read(part, scope)
        if isinstance(part, Position):
            return self._position(part.index, scope)
        if isinstance(part, Apply):
            return self._apply(part.function, [self._value(each, scope) for each in part.parts], into)
        assert isinstance(part, Reduce), f"the formula of {self.op} is not made of calls"
        inner = [*scope, *part.variables]
        body = self._value(part.parts[0], inner)
        assert isinstance(body, Layout), f"the formula of {self.op} reduces a number"
        tensor = self._expanded(body, inner, part.variables)
        dimensions = tuple(range(len(scope), len(inner)))
        return self._call(_REDUCED[part.reduction], (tensor, dimensions), {}, into)

    def _read(self, read: Read, scope: Sequence[Variable]) -> Layout:
        tensor = self._own(read)
        strides = [1] * len(scope)
        shape = [1] * len(scope)
        for place, size, stride in zip(read.places, tensor.shape, tensor.strides, strict=True):
            variable = None if place is None else only_variable(place)
            if variable is not None:
                dimension = list(scope).index(variable)
                shape[dimension], strides[dimension] = size, stride
        found = tensor._replace(shape=tuple(shape), strides=tuple(strides))
        if found.dtype in (torch.float16, torch.bfloat16):
            return self._call(_ATEN._to_copy.default, (found,), {"dtype": torch.float32}, None)
        return found

    def _own(self, read: Read) -> Layout:
        """The part of a tensor at the values that the worker has of the variables that it is read by.

        It has more of a tensor that is read in several ways.
        """
        tensor = self.tensors[read.operand]
        for dimension, place in enumerate(read.places):
            variable = None if place is None else only_variable(place)
            if variable is None or tensor.shape[dimension] == self._size(variable):
                continue
            key = "part", tensor, dimension, variable
            if key not in self._made:
                if not tensor.dense or tensor.offset:
                    tensor = self.calls.clone(tensor)
                self._made[key] = self._part(tensor, dimension, self.spreads[variable])
            tensor = self._made[key]
        return tensor

    def _part(self, tensor: Layout, dimension: int, spread: Spread) -> Layout:
        """The worker's part along one dimension of a dense tensor that has all of it."""
        step = tensor.strides[dimension]
        cut = tuple(Cut(level.stride * step, level.size) if isinstance(level, Cut) else level for level in spread)
        part = local_part(tensor, chunks(cut, self.calls.mesh, self.calls.place))
        assert part is not None
        elements = tensor.elements
        found = redistribute(self.calls, tensor.storage, tensor.dtype, elements, uncut(cut), cut)
        return part._replace(storage=found)

    def _position(self, index: Index, scope: Sequence[Variable]) -> _Value:
        """An affine expression of index variables, by the values of these that the worker has."""
        total: _Value = index.constant
        for variable, factor in index.terms:
            numbers: _Value = self._numbers(variable, scope)
            if factor != 1:
                numbers = self._apply("mul", [numbers, factor], None)
            total = (
                numbers if not isinstance(total, Layout) and total == 0 else self._apply("add", [numbers, total], None)
            )
        return total

    def _numbers(self, variable: Variable, scope: Sequence[Variable]) -> Layout:
        """The values of a variable that the worker has."""
        key = "position", variable
        if key not in self._made:
            numbers = self.calls.new((variable.size,), torch.int64)
            self.calls.add(_ATEN.arange.default, (variable.size,), numbers, dtype=torch.int64)
            if variable in self.spreads:
                spread = self.spreads[variable]
                whole: Spread = (Whole.EVERYWHERE,) * len(spread)
                found = redistribute(self.calls, numbers.storage, torch.int64, variable.size, whole, spread)
                numbers = dense(found, (self._size(variable),), torch.int64)
            self._made[key] = numbers
        shape = tuple(self._size(variable) if each is variable else 1 for each in scope)
        return dense(self._made[key].storage, shape, torch.int64)

    def _apply(self, name: str, values: list[_Value], into: Layout | None) -> _Value:
        if not any(isinstance(value, Layout) for value in values):
            numbers_alone = [torch.tensor(value, dtype=torch.float64) for value in values]
            return FUNCTIONS[name](*numbers_alone).item()
        first, *others = values
        numbers = [not isinstance(value, Layout) for value in values]
        if name == "where":
            if isinstance(first, Layout) and first.dtype != torch.bool:
                first = self._call(_ATEN.ne.Scalar, (first, 0), {}, None)
            overload = {(0, 0): "self", (1, 0): "ScalarSelf", (0, 1): "ScalarOther", (1, 1): "Scalar"}
            kernel = getattr(_ATEN.where, overload[numbers[1], numbers[2]])
            return self._call(kernel, (first, *others), {}, into)
        if numbers[0]:
            return self._of_number(name, first, others[0], into)
        packet = getattr(_ATEN, name)
        if len(values) > 1 and numbers[1] and name not in _NUMBERS_AS_TENSORS:
            kernel = packet.Tensor_Scalar if name == "pow" else packet.Scalar
            return self._call(kernel, tuple(values), {}, into)
        overloads = packet.overloads()
        kernel = next(getattr(packet, known) for known in ("Tensor", "Tensor_Tensor", "default") if known in overloads)
        return self._call(kernel, tuple(values), {}, into)

    def _of_number(self, name: str, number: _Value, other: _Value, into: Layout | None) -> _Value:
        """A function of a number and a tensor, in this order."""
        if name in ("add", "mul", "eq", "ne"):
            return self._apply(name, [other, number], into)
        if name == "sub":
            return self._call(_ATEN.rsub.Scalar, (other, number), {}, into)
        if name == "div":
            return self._apply("mul", [self._call(_ATEN.reciprocal.default, (other,), {}, None), number], into)
        assert name == "pow", f"the formula of {self.op} computes {name} of a number and a tensor"
        return self._call(_ATEN.pow.Scalar, (number, other), {}, into)

    def _call(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], into: Layout | None) -> Layout:
        """Add a call; the same call on the same tensors is made once."""
        key = target, args, tuple(kwargs.items())
        if key in self._made:
            return self._made[key]
        (returned,) = self.fakes.returned(self.op, target, args, kwargs)
        assert returned is not None
        shape, dtype = returned
        made = into if into is not None and (into.shape, into.dtype) == returned else self.calls.new(shape, dtype)
        self.calls.add(target, args, made, **kwargs)
        self._made[key] = made
        return made
