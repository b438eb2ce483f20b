"""What a loop over batches needs of the steps that it makes, whoever makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from torch import Tensor

from planner.graph import Graph


class FollowedSteps(Protocol):
    """Steps each of which the live model includes, and before each of which it may be changed."""

    @property
    def graph(self) -> Graph:
        """The graph that steps are made by."""

    @property
    def changed(self) -> bool:
        """Whether the next step may be another one, because of the last one's effects or of changes from outside."""

    def prepare(self) -> None:
        """Go on with the model as it is now, by another graph if that is another step."""

    def step(self, leaves: Sequence[Tensor], batch: Any) -> None:
        """Make a step with a batch, whose tensors are `leaves`."""

    def finish(self) -> None:
        """All batches were given."""
