"""The captured step of each size, and what is said where one cannot be made or captured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Self

from planner.cancel import CancelToken
from planner.capture import capture
from planner.finalizers import without_garbage_collection
from planner.fit.argument_checks import checked_step
from planner.fit.failing_sizes import Failure, SizeFailedError, check_not_out_of_memory, refuse
from planner.graph import Graph
from planner.progress import Progress
from planner.step import Step


class CapturedSizes:
    """Captures the step of each size once; leaving its block on a size that fails says which one is the last to work.

    Args:
        make_step: called with a value by the argument's name; returns a step.
        name: of the argument.
        values: those that are asked about, ascending.
        stop: checked before each capture, and by it.
        report: called with the share done, from 0 to 1, and a status text.

    Attributes:
        values: those that are asked about.
    """

    def __init__(
        self, make_step: Callable[..., Step], name: str, values: Sequence[int], stop: CancelToken,
        report: Callable[[float, str], object],
    ) -> None:  # fmt: skip
        self.values = values
        self._make_step, self._name, self._stop, self._report = make_step, name, stop, report
        self._graphs: dict[int, Graph] = {}
        self._failed: dict[int, SizeFailedError] = {}

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
            refuse(self._name, self.values, self._failed, tuple(self._graphs), self.works)

    def say(self, value: int, _: float = 0.0) -> None:
        """Report that a value is being tried."""
        self._report(len(self) / (len(self) + 4), f"trying {self._name}={value}")

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
            try:
                step = checked_step(self._make_step(**{self._name: value}))
                with without_garbage_collection():
                    graph = capture(step, progress=Progress(lambda *_: self.say(value), self._stop))
            except Exception as error:
                check_not_out_of_memory(f"{self._name}={value}", error)
                self._failed[value] = SizeFailedError(self._name, value, error)
                raise self._failed[value] from error
            self._graphs[value] = replace(graph, program=None)  # which keeps the step alive
        return self._graphs[value]

    def works(self, value: int) -> bool:
        """Whether the step of a value can be made and captured."""
        with suppress(SizeFailedError):
            self.graph_of(value)
        return value not in self._failed

    @property
    def failed(self) -> tuple[Failure, ...]:
        """The first of the values if it failed, and the one after the last if that was tried and failed."""
        ends = self.values[0], self.values[-1] + 1
        return tuple(self._failed[value].failure for value in ends if value in self._failed)
