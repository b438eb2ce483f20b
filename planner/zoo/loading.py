"""From the text of a command line to a step."""

from __future__ import annotations

from collections.abc import Callable

from planner.errors import StowageError
from planner.step import InferenceStep, TrainStep
from planner.zoo.catalogue import builder
from planner.zoo.user_file import function_from_file


def load(text: str) -> TrainStep | InferenceStep:
    """The step that `text` names.

    Args:
        text: a model of the zoo with arguments (`"wresnet:depth=50,widen=2,batch=16"`), or a function of a Python file
            that returns a step (`"path/to/file.py:function"`).

    Raises:
        StowageError: no such model, argument, file or function, or a value that does not fit.
    """
    return step_maker(text)()


def step_maker(text: str) -> Callable[..., TrainStep | InferenceStep]:
    """A function that makes the step that `text` names, with the arguments that it is called with in place of others.

    Args:
        text: as in `load`; the function of a file is called with the arguments, if any.

    Raises:
        StowageError: no such model, argument, file or function.
    """
    path, colon, function = text.rpartition(":")
    if colon and path.endswith(".py"):
        return function_from_file(path, function)
    if text.endswith(".py"):
        raise StowageError(
            f"{text} names no function; write {text}:function, which returns a TrainStep or an InferenceStep"
        )
    name, _, arguments = text.partition(":")
    settings = []
    for setting in filter(None, (part.strip() for part in arguments.split(","))):
        key, equals, value = setting.partition("=")
        if not equals:
            raise StowageError(f"{text}: cannot read {setting!r}; write arguments as {name}:key=value,key=value")
        settings.append((key.strip(), value.strip()))
    return builder(name.strip(), settings)
