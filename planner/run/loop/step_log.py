"""What is known of the steps that a run has made so far."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from torch import Tensor

#: Number of steps of which the records are kept.
_RECORDS = 64

Record = TypeVar("Record")


@dataclass(eq=False)
class StepLog(Generic[Record]):
    """The steps made so far, with records of the last of them and the outputs of the last one.

    One thread adds, any thread may read.
    """

    losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    records: deque[Record] = field(default_factory=lambda: deque(maxlen=_RECORDS))
    outputs: tuple[Tensor, ...] = ()

    def add_step(self, record: Record, outputs: tuple[Tensor, ...], seconds: float) -> None:
        """Record a step; one that returns no single number has no loss."""
        self.records.append(record)
        self.outputs = outputs
        if outputs[0].numel() == 1 and not outputs[0].is_complex():
            self.losses.append(float(outputs[0]))
        self.seconds.append(seconds)  # last, since readers count these and then read the rest

    def last_records(self) -> tuple[Record, ...]:
        """The records kept; retries, since a deque cannot be read while it changes."""
        while True:
            try:
                return tuple(self.records)
            except RuntimeError:
                continue
