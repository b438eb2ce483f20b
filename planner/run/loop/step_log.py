"""What is known of the steps that a run has made so far."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from planner.program import Outputs

#: Number of steps of which the records are kept.
_RECORDS = 64
#: Bytes of extras that are kept; those of the last step always are.
_EXTRAS_BYTES = 256 * 2**20

Record = TypeVar("Record")


@dataclass(eq=False)
class StepLog(Generic[Record]):
    """The steps made so far, with records of the last of them and the outputs of the last one.

    One thread adds, any thread may read.

    Attributes:
        extras: what the loss of each step returned beside its value; None if that was nothing, or is not kept.
        skipped: which steps, from 0, have updated nothing, because a gradient was not finite.
    """

    losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    records: deque[Record] = field(default_factory=lambda: deque(maxlen=_RECORDS))
    outputs: Outputs = field(default_factory=lambda: Outputs(()))
    extras: list[Any] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    _kept: deque[tuple[int, int]] = field(default_factory=deque)  # steps whose extras are kept, and their bytes
    _kept_bytes: int = 0

    def add_step(self, record: Record, outputs: Outputs, seconds: float, *, skipped: bool) -> None:
        """Record a step; one that returns no single number has no loss."""
        if skipped:
            self.skipped.append(len(self.seconds))
        self.records.append(record)
        self.outputs = outputs
        if outputs[0].numel() == 1 and not outputs[0].is_complex():
            self.losses.append(float(outputs[0]))
        self._add_extras(outputs)
        self.seconds.append(seconds)  # last, since readers count these and then read the rest

    def all_extras(self) -> tuple[Any, ...]:
        """The extras of each step; empty if no loss returned any."""
        return tuple(self.extras) if self._kept else ()

    def _add_extras(self, outputs: Outputs) -> None:
        """Keep the extras of a step, and forget those of the earliest steps if all together take too much."""
        if outputs.form is not None:
            size = sum(tensor.nbytes for tensor in outputs[1:])
            self._kept.append((len(self.extras), size))
            self._kept_bytes += size
        self.extras.append(outputs.extras)
        while len(self._kept) > 1 and self._kept_bytes > _EXTRAS_BYTES:
            step, size = self._kept.popleft()
            self.extras[step] = None
            self._kept_bytes -= size

    def last_records(self) -> tuple[Record, ...]:
        """The records kept; retries, since a deque cannot be read while it changes."""
        while True:
            try:
                return tuple(self.records)
            except RuntimeError:
                continue
