"""The captured step of each size, and what is said while they are tried and where one cannot be made or captured."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Self

from planner.cancel import Cancelled, CancelToken, uninterrupted
from planner.capture import capture
from planner.finalizers import collection_counts, oldest_generation_since
from planner.fit.argument_checks import checked_step
from planner.fit.failing_sizes import Failure, SizeFailedError, check_not_out_of_memory, refuse
from planner.graph import Graph
from planner.progress import Progress
from planner.step import Step
from planner.units import several


class CapturedSizes:
    """Captures the step of each size once.

    Leaving its block on a size that fails says which one is the last to work, and on Ctrl-C what was found by then.

    Args:
        make_step: called with a value by the argument's name; returns a step.
        name: of the argument.
        values: those that are asked about, ascending.
        device: the type of device whose ops steps are captured with.
        stop: checked before each capture, and by it.
        report: called with the share done, from 0 to 1, and a status text.
        endless: whether there are larger ones without end, until `values` and `endless` are set.

    Attributes:
        values: those that are asked about.
        endless: whether the last of them is not known yet.
    """

    def __init__(
        self, make_step: Callable[..., Step], name: str, values: Sequence[int], device: str,
        stop: CancelToken, report: Callable[[float, str], object], *, endless: bool = False,
    ) -> None:  # fmt: skip
        self.values, self.endless = values, endless
        self._make_step, self._name, self._device = make_step, name, device
        self._stop, self._report = stop, report
        self._graphs: dict[int, Graph] = {}
        self._failed: dict[int, SizeFailedError] = {}
        self._found: list[str] = []

    def __len__(self) -> int:
        return len(self._graphs)

    def __iter__(self) -> Iterator[int]:
        """The values that were captured."""
        return iter(tuple(self._graphs))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, SizeFailedError):
            refuse(self._name, self.values, self._failed, tuple(self._graphs), self.works, self._raised_again)
        if isinstance(error, KeyboardInterrupt | Cancelled) and self._found:
            error.add_note(f"found so far: {', '.join(self._found)}")

    def say(self, value: int, _: float = 0.0) -> None:
        """Report that a value is being tried, how many were captured, and what was found before."""
        known = several(len(self), "size") if self.endless else f"{len(self):,} of {several(len(self.values), 'size')}"
        tried = f"trying {self._name}={value} ({known} captured)"
        self._report(len(self) / (len(self) + 4), "; ".join(filter(None, (", ".join(self._found), tried))))

    def note(self, answer: str, value: int | None) -> None:
        """Say from now on that the largest value of an answer is found; None for no value."""
        self._found.append(f"{answer} none" if value is None else f"{answer} {self._name}={value}")

    def forget(self) -> None:
        """Take back all that was noted."""
        self._found.clear()

    def graph_of(self, value: int) -> Graph:
        """The captured graph of a value.

        Raises:
            SizeFailedError: its step cannot be made or captured.
            StowageError: this computer has too little memory to make it.
            Cancelled: cancellation was requested.
        """
        self._stop.check()
        if value in self._failed:
            raise self._failed[value]
        if value not in self._graphs:
            counts = collection_counts()
            try:
                self._graphs[value] = self._captured(value)
            except Exception as error:
                check_not_out_of_memory(f"{self._name}={value}", error)
                if self._graphs:  # otherwise it may be raised as it is
                    _drop_tracebacks(error)
                self._failed[value] = SizeFailedError(self._name, value, error)
                raise self._failed[value] from error
            finally:
                # the cycles of a model, as the search for them is disabled; to go through all old objects takes longer
                # than most captures
                with uninterrupted():  # a Ctrl-C in the callback of a weak reference would be lost
                    gc.collect(oldest_generation_since(counts))
        return self._graphs[value]

    def _captured(self, value: int) -> Graph:
        step = checked_step(self._make_step(**{self._name: value}))
        graph = capture(step, device=self._device, progress=Progress(lambda *_: self.say(value), self._stop))
        return replace(graph, program=None)  # which keeps the step alive

    def works(self, value: int) -> bool:
        """Whether the step of a value can be made and captured."""
        with suppress(SizeFailedError):
            self.graph_of(value)
        return value not in self._failed

    def _raised_again(self, value: int) -> SizeFailedError:
        """The error of a value that failed, with the tracebacks that were dropped with the model that they kept."""
        try:
            self._captured(value)
        except Exception as error:
            return SizeFailedError(self._name, value, error)
        return self._failed[value]

    @property
    def failed(self) -> tuple[Failure, ...]:
        """The first of the values if it failed, and the one after the last if that was tried and failed."""
        ends = self.values[0], self.values[-1] + 1
        return tuple(self._failed[value].failure for value in ends if value in self._failed)


def _drop_tracebacks(error: BaseException) -> None:
    """Let go of the variables of the functions that raised an error and those that it came from, a model among them."""
    seen: set[int] = set()
    while id(error) not in seen:
        seen.add(id(error))
        error.__traceback__ = None
        error = error.__cause__ or error.__context__ or error
