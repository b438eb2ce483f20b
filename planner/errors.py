"""The one exception a user is meant to read, and how it names what was probably meant."""

import difflib
from collections.abc import Iterable


class StowageError(Exception):
    """A request that cannot be met, said in one sentence that tells the user what to change."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`" (did you mean ...?)"` with the known word closest to one that is not known, or nothing."""
    names = list(known)
    longer = [name for name in names if len(word) > 2 and name.startswith(word.lower())]
    close = longer or difflib.get_close_matches(word.lower(), names, n=1)
    return f" (did you mean {close[0]}?)" if close else ""
