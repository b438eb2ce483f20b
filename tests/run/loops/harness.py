"""Loops as a specification: what each is expected to do, and a small model and batches that most of them start from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from beside_eager import STEPS, Loop, outcome
from torch import Tensor, nn
from torch.nn.functional import mse_loss

Make = Callable[[], Loop]


@dataclass(frozen=True)
class Case:
    """A loop, whether a refusal is an answer to it, and whether the guards alone are to see what it does."""

    make: Make
    may_be_refused: bool
    recheck: bool = False

    def check(self) -> None:
        found = outcome(self.make, recheck=self.recheck)
        allowed = ("equal", "refused") if self.may_be_refused else ("equal",)
        assert found.kind in allowed, f"{found.kind}: {found.detail}"


class Specification:
    """Collects the loops of a file; a loop's name is the name of the function that makes it, as words."""

    def __init__(self) -> None:
        self.cases: list[Any] = []

    def equal(self, make: Make) -> Make:
        """A user expects this to work, with eager's bits."""
        return self._add(make, may_be_refused=False)

    def equal_or_refused(self, make: Make) -> Make:
        """This may be refused in a sentence, and must not be silently wrong."""
        return self._add(make, may_be_refused=True)

    def equal_or_refused_by_the_second_look(self, make: Make) -> Make:
        """No guard sees what this does; capturing it again does."""
        return self._add(make, may_be_refused=True, recheck=True)

    def _add(self, make: Make, *, may_be_refused: bool, recheck: bool = False) -> Make:
        self.cases.append(pytest.param(Case(make, may_be_refused, recheck), id=make.__name__.replace("_", " ")))
        return make


class Net(nn.Module):
    """Two layers and a factor."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.tanh(self.first(x)))


def inputs(count: int = STEPS) -> list[dict[str, Tensor]]:
    return [{"x": torch.randn(4, 8), "y": torch.randn(4, 4)} for _ in range(count)]


def squares(model: Any, batch: Mapping[str, Tensor]) -> Tensor:
    return mse_loss(model(batch["x"]), batch["y"])


def sgd(model: nn.Module, **options: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), **{"lr": 0.1, "momentum": 0.9, "foreach": False} | options)


def adam(model: nn.Module, **options: Any) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), **{"lr": 0.01, "foreach": False} | options)


def loop(
    model: nn.Module | None = None,
    loss: Callable[[Any, Any], Tensor] = squares,
    *,
    optimizer: torch.optim.Optimizer | None = None,
    batches: Sequence[Any] | None = None,
    **rest: Any,
) -> Loop:
    """A loop of which only what matters is said."""
    model = Net() if model is None else model
    return Loop(model, optimizer or sgd(model), inputs() if batches is None else batches, loss, **rest)


def at(edits: Mapping[int, Callable[[], object]]) -> Callable[[int], None]:
    """What is done before some of the steps."""

    def before(number: int) -> None:
        if number in edits:
            edits[number]()

    return before
