"""Sizes that a step does not take, whatever memory a machine has: making or capturing it raises an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from planner.errors import StowageError, first_line


@dataclass(frozen=True, slots=True)
class Failure:
    """A value that the step does not take, whatever memory the machine has.

    Args:
        value: the value.
        error: the error of making or capturing the step, in short.
    """

    value: int
    error: str


class SizeFailedError(StowageError):
    """The step of a size cannot be made or captured; the cause says why.

    Args:
        name: of the argument.
        value: the size.
        error: what was raised.
    """

    def __init__(self, name: str, value: int, error: Exception) -> None:
        size = f"{name}={value}"
        super().__init__(str(error) if size in str(error) else f"{size} fails: {error}")
        self.name, self.value, self.error = name, value, error

    @property
    def failure(self) -> Failure:
        """The value and the error in short."""
        return Failure(self.value, _in_short(self.error))


def check_not_out_of_memory(size: str, error: Exception) -> None:
    """Refuse to take an error for a limit of the model that says that this computer is out of memory.

    Args:
        size: the argument and its value.
        error: what was raised by making or capturing the step.

    Raises:
        StowageError: it is such an error.
    """
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        raise StowageError(
            f"{size} takes more memory than this computer has; give TrainStep functions that make the model and the "
            "batch, which take none"
        ) from error


def last_working(works: Callable[[int], bool], low: int, high: int) -> int:
    """The last whole number that works below one that fails, by bisection.

    Args:
        works: says whether a number works.
        low: one that works.
        high: a larger one that fails.
    """
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if works(middle) else (low, middle)
    return low


def refuse(
    name: str, values: Sequence[int], failed: Mapping[int, SizeFailedError], captured: Sequence[int],
    works: Callable[[int], bool], raised_again: Callable[[int], SizeFailedError],
) -> NoReturn:  # fmt: skip
    """Say which of the values asked about fails, why, and which one works.

    Args:
        name: of the argument.
        values: those asked about, ascending.
        failed: the error of each value that failed.
        captured: values that worked.
        works: says whether a value works.
        raised_again: the error of a value that failed, from trying it again: with its tracebacks.

    Raises:
        StowageError: always, unless the first value failed by an error of the user's own, which is raised as it is.
    """
    if not captured:
        first = failed[values[0]]
        if isinstance(first.error, StowageError):
            raise first
        raise first.error
    value = max(failed)
    below = [one for one in captured if one < value]
    if not below:
        raise _failing(raised_again(value), f"while {name}={min(captured)} works; begin the range there")
    if any(one > value for one in captured):
        raise _failing(raised_again(value), f"while smaller and larger values work; vary {name} where all values work")
    place = last_working(lambda place: works(values[place]), values.index(max(below)), values.index(value))
    last, error = values[place], raised_again(values[place + 1])
    raise _failing(error, f"and {name}={last} is the last that works; end the range there, or leave its end open")


def _failing(failed: SizeFailedError, what_works: str) -> StowageError:
    error = StowageError(f"{failed.name}={failed.value} fails ({failed.failure.error}), {what_works}")
    error.__cause__ = failed.error
    return error


def _in_short(error: BaseException) -> str:
    """The first line of the error that was raised first."""
    while error.__cause__ is not None:
        error = error.__cause__
    said = first_line(error) if isinstance(error, Exception) else ""
    return said if isinstance(error, StowageError) else f"{type(error).__name__}: {said}"
