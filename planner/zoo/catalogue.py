"""What is in the zoo: each model with its arguments, their types and defaults, read from its function's signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from types import MappingProxyType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from planner.errors import StowageError, did_you_mean
from planner.zoo.inceptions import inception
from planner.zoo.nasnet_a import nasnet
from planner.zoo.perceptron import mlp
from planner.zoo.recurrent import brnn, rnn
from planner.zoo.residual import wresnet
from planner.zoo.steps import ZooStep
from planner.zoo.transformer import gpt

Value = int | float | str
Builder = Callable[..., ZooStep]

_BUILDERS: Mapping[str, Builder] = MappingProxyType(
    {"mlp": mlp, "wresnet": wresnet, "rnn": rnn, "brnn": brnn, "inception": inception, "nasnet": nasnet, "gpt": gpt}
)
_KINDS = {int: "a whole number", float: "a number", str: "a word"}


@dataclass(frozen=True)
class ModelInfo:
    """A model of the zoo.

    Args:
        name: what `load` calls it.
        about: one sentence.
        arguments: default by argument; all of them have one.
        types: the type of each argument: `int`, `float`, or a tuple of the words it may be.
    """

    name: str
    about: str
    arguments: Mapping[str, Value]
    types: Mapping[str, Any]

    def read(self, argument: str, text: str) -> Value:
        """The value that `text` means for an argument.

        Raises:
            StowageError: there is no such argument, or the text does not fit its type.
        """
        if argument not in self.arguments:
            meant = did_you_mean(argument, self.arguments)
            raise StowageError(f"{self.name} has no argument {argument!r}{meant}; it takes {self.usage()}")
        kind = self.types[argument]
        if isinstance(kind, tuple):
            if text not in kind:
                raise StowageError(f"{self.name}: {argument}={text} is unknown; choose one of {', '.join(kind)}")
            return text
        try:
            value: Value = kind(text)
        except ValueError as error:
            raise StowageError(
                f"{self.name}: {argument}={text} is not {_KINDS[kind]}; it takes {self.usage()}"
            ) from error
        return value

    def usage(self) -> str:
        """All arguments with their defaults, as `load` reads them."""
        return ",".join(f"{argument}={value}" for argument, value in self.arguments.items())


def models() -> list[ModelInfo]:
    """Every model of the zoo with its arguments and defaults."""
    return [_info(name, builder) for name, builder in _BUILDERS.items()]


def builder(name: str, settings: Iterable[tuple[str, str]]) -> Builder:
    """A function that makes the step of a model, with arguments given as text unless it is called with others.

    Raises:
        StowageError: no such model or argument, or a value that does not fit.
    """
    if name not in _BUILDERS:
        raise StowageError(
            f"unknown model {name!r}{did_you_mean(name, _BUILDERS)}; the zoo has {', '.join(_BUILDERS)}, "
            "and a file is given as path/to/file.py:function"
        )
    model = _BUILDERS[name]
    info = _info(name, model)
    values: dict[str, Value] = {}
    for argument, text in settings:
        value = info.read(argument, text)
        if argument in values:
            raise StowageError(f"{name}: {argument} is given twice; give it once")
        values[argument] = value

    @wraps(model)
    def make(**replacements: Value) -> ZooStep:
        return model(**{**values, **replacements})

    return make


def _info(name: str, builder: Builder) -> ModelInfo:
    hints = get_type_hints(builder)
    parameters = inspect.signature(builder).parameters.values()
    return ModelInfo(
        name,
        (inspect.getdoc(builder) or "").split("\n", maxsplit=1)[0].rstrip("."),
        MappingProxyType({parameter.name: parameter.default for parameter in parameters}),
        MappingProxyType({parameter.name: _kind(hints[parameter.name]) for parameter in parameters}),
    )


def _kind(hint: Any) -> Any:
    return get_args(hint) if get_origin(hint) is Literal else hint
