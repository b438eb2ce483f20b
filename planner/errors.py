"""The user-facing exception, and suggestions for misspelled names."""

import difflib
import inspect
from collections.abc import Callable, Iterable


class StowageError(Exception):
    """A request that cannot be met; the message is one sentence that tells the user what to change."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`" (did you mean ...?)"` with the known word closest to an unknown one; empty if none is close."""
    names = list(known)
    longer = [name for name in names if len(word) > 2 and name.startswith(word.lower())]
    close = longer or difflib.get_close_matches(word.lower(), names, n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def given_type(value: object) -> str:
    """The type of what was given in place of something else, in a sentence: `a Linear`, `an int`, `None`."""
    return named_type(type(value))


def named_type(kind: type) -> str:
    """A type in a sentence: `a Linear`, `an int`, `None`."""
    name = kind.__name__
    return "None" if kind is type(None) else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def required_arguments(function: Callable[..., object]) -> list[str]:
    """The names of the arguments that a function cannot be called without, for a sentence; empty if they are not known.

    Args:
        function: any that can be called.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # as of some functions written in C
        return []
    collecting = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    return [one.name for one in parameters if one.default is one.empty and one.kind not in collecting]


def first_line(error: Exception) -> str:
    """The first line of an error's message."""
    text = str(error).strip().splitlines()
    return text[0].rstrip(".;:") if text else "no message"


def as_sentence(error: BaseException) -> str:
    """An error's message with a capital letter and a full stop, to follow another sentence."""
    text = str(error).strip().rstrip(".") or type(error).__name__
    return f"{text[0].upper()}{text[1:]}."
