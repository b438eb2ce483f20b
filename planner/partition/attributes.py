"""From an op's arguments as a graph keeps them, a text, back to values and operands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from planner.errors import StowageError
from planner.partition.tdl import Operand

_WORDS = {"None": None, "True": True, "False": False}
_INTEGER = re.compile(r"-?\d+")
_NUMBER = re.compile(r"-?(\d+\.?\d*(e[+-]?\d+)?|inf|nan)")


def read_arguments(
    text: str, inputs: Sequence[Operand], outputs: Sequence[Operand]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of an op.

    Args:
        text: `Op.attributes`, such as `"$0, $1, [2, 2], alpha=-lr"`.
        inputs: an operand per `$0`, `$1`, ...
        outputs: an operand per `^0`, `^1`, ..., which have no contents yet.

    Returns:
        Positional arguments, and those by name. Numbers that change from step to step remain text, as do types.

    Raises:
        StowageError: the text cannot be read.
    """
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for part in _parts(text):
        name, equals, value = part.partition("=")
        if equals and name.isidentifier():
            kwargs[name] = _value(value, inputs, outputs)
        elif kwargs:
            raise StowageError(f"the arguments {text!r} have an unnamed one after a named one")
        else:
            args.append(_value(part, inputs, outputs))
    return args, kwargs


def _parts(text: str) -> list[str]:
    """What is between the commas that are in no brackets."""
    parts, depth, start = [], 0, 0
    for place, character in enumerate(text):
        depth += (character in "[(") - (character in "])")
        if depth < 0:
            break
        if character == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    if depth:
        raise StowageError(f"the arguments {text!r} have unmatched brackets")
    return [*parts, text[start:].strip()] if text.strip() else []


def _value(text: str, inputs: Sequence[Operand], outputs: Sequence[Operand]) -> Any:
    if text.startswith("[") and text.endswith("]"):
        return [_value(part, inputs, outputs) for part in _parts(text[1:-1])]
    if text[:1] in ("$", "^") and text[1:].isdigit():
        operands = inputs if text[0] == "$" else outputs
        if int(text[1:]) >= len(operands):
            raise StowageError(f"there is no tensor {text}")
        return operands[int(text[1:])]
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text
