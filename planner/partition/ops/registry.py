"""Which description belongs to which operator, and how an op's arguments reach it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from planner import torch_private as private
from planner.errors import StowageError
from planner.partition.tdl import Description, Operand, counted, opaque

#: Describes an op: gets the description to fill in, and by name those of the operator's arguments that it asks for.
Describer = Callable[..., None]

_DESCRIBERS: dict[str, Describer] = {}


def describes(*targets: str) -> Callable[[Describer], Describer]:
    """Register a function as the description of operators; a description of one's own takes the place of the last.

    The function's first parameter is the `Description` that it fills in; the others are those of the operator's
    arguments that it needs, by their names in the operator's schema, with an `Operand` for every tensor::

        @describes("mylib.scaled_sum.default")
        def scaled_sum(op, x, scale):
            i, j = indices("i j")
            op.output(0)[i] = Sum(j, x[i, j] * scale[j])

    Args:
        targets: their overloads, `"mm.default"` of the namespace aten or `"mylib.scale.default"` of another.

    Raises:
        StowageError: no operator is named, a name is none, or Stowage describes the operator itself.
    """
    for target in targets:
        if not isinstance(target, str) or target.count(".") not in (1, 2):
            raise StowageError(f'{target!r} names no overload of an operator, such as "mylib.scale.default"')
    if not targets:
        raise StowageError('name the operators that are described, as in @describes("mylib.scale.default")')

    def register(describer: Describer) -> Describer:
        for target in targets:
            name = target if target.count(".") > 1 else f"aten.{target}"
            if name in _DESCRIBERS and _DESCRIBERS[name].__module__.startswith("planner."):
                raise StowageError(f"{name} is described by Stowage itself: try another description with prove()")
            _DESCRIBERS[name] = describer
        return describer

    return register


def described() -> frozenset[str]:
    """The names of all operators with a description (`"aten.mm.default"`)."""
    return frozenset(_DESCRIBERS)


def describer_of(target: str) -> Describer | None:
    """What describes an operator (`"aten.mm.default"`) now; None if nothing does."""
    return _DESCRIBERS.get(target)


def describe(
    target: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    inputs: Sequence[Operand],
    shapes: Sequence[tuple[int, ...] | None],
    describer: Describer | None = None,
) -> Description:
    """Describe one call of an operator.

    Args:
        target: the operator overload (`"aten.mm.default"`).
        args, kwargs: its arguments, with operands for tensors.
        inputs: the operands among them, in the order of the op's inputs.
        shapes: shape per output; None for an output that the op does not make. Those without elements do not count.
        describer: the description to use instead of the registered one.

    Returns:
        The description. An operator without one is a function of all of all its inputs of which nothing else is known.

    Raises:
        StowageError: the description leaves out an output or is wrong, see `Description.finish`.
    """
    made = tuple(None if shape is None or 0 in shape else shape for shape in shapes)
    description = Description(target, tuple(inputs), made)
    describer = describer or _DESCRIBERS.get(target)
    if describer is None:
        return unknown(description)
    arguments = arguments_by_name(target, args, kwargs)
    wanted = list(inspect.signature(describer).parameters)[1:]
    describer(description, **{name: arguments[name] for name in wanted})
    for number, shape in enumerate(made):
        if shape is not None and number not in description.outputs:
            raise StowageError(
                f"the description of {target} says nothing of output {number}: give it a formula, or call unknown(op)"
            )
    return description.finish()


def unknown(description: Description) -> Description:
    """Say of every output that is made that it is some function of all inputs, which can only be computed whole."""
    everything = [operand[tuple(slice(None) for _ in operand.shape)] for operand in description.inputs]
    description.stages.clear()
    description.unknown = True
    for number, shape in enumerate(description.shapes):
        if shape is not None and 0 not in shape:
            description.output(number)[counted("i", len(shape))] = opaque(*everything)
    return description.finish()


def arguments_by_name(target: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """All arguments of a call by the names in the operator's schema, defaults included."""
    named = {}
    for number, argument in enumerate(private.schema(private.overload(target)).arguments):
        if number < len(args) and not argument.kwarg_only:
            named[argument.name] = args[number]
        else:
            named[argument.name] = kwargs.get(argument.name, argument.default_value)
    return named
