"""Models that loops start from, and loops that edit one before some of the steps."""

from __future__ import annotations

import functools
import types
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from beside_eager import Loop
from torch import Tensor, nn

from tests.run.loops.harness import Net, at, loop

Edit = Callable[[torch.optim.Optimizer, Net], object]


class Blend(Net, ABC):
    """What it returns is mixed with something that it keeps."""

    def forward(self, x: Tensor) -> Tensor:
        return self.keep(super().forward(x))

    @abstractmethod
    def keep(self, out: Tensor) -> Tensor:
        """Keep something of the output, and return the output mixed with what was kept before."""


class Scaled(Net):
    """Its output times a number; `factor` says where the number is kept."""

    def __init__(self, factor: Callable[[Any], Any], **attributes: Any) -> None:
        super().__init__()
        for name, value in attributes.items():
            setattr(self, name, value)
        object.__setattr__(self, "factor", types.MethodType(factor, self))

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * self.factor()


class Uses(Net):
    """Multiplies its output by a number in its odd attribute."""

    def __init__(self, read: Callable[[Any], Any]) -> None:
        super().__init__()
        self.read = read

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * self.read(self.odd)


class Fails:
    """Cannot be compared, hashed, printed, counted or copied."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    def __hash__(self) -> int:
        raise RuntimeError("no hash")

    def __repr__(self) -> str:
        raise RuntimeError("no text")

    def __len__(self) -> int:
        raise RuntimeError("no length")

    def __bool__(self) -> bool:
        raise RuntimeError("no truth")

    def __deepcopy__(self, memo: object) -> Fails:
        raise RuntimeError("no copy")

    def __reduce_ex__(self, protocol: object) -> Any:
        raise RuntimeError("no pickle")


def layers(*, middle: nn.Module | None = None) -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 8), middle or nn.Tanh(), nn.Linear(8, 4))


def scaled(factor: Callable[[Any], Any], edits: dict[int, Callable[[Any], object]], **attributes: Any) -> Loop:
    """A loop in which the number that the output is multiplied by is changed."""
    model = Scaled(factor, **attributes)
    return edited(model, edits)


def edited(model: nn.Module, edits: dict[int, Callable[[Any], object]], **rest: Any) -> Loop:
    """A loop that edits the model before some steps."""
    return loop(model, before=at({number: functools.partial(edit, model) for number, edit in edits.items()}), **rest)


def put(name: str, value: object) -> Callable[[Any], object]:
    return lambda model: setattr(model, name, value)


def holding(value: object, edits: dict[int, Callable[[Any], object]] | None = None, model: Any = None) -> Loop:
    """A loop over a model with an attribute, which is taken away at the end so that no comparison looks into it."""
    model = model or Net()
    model.odd = value
    given = {number: functools.partial(edit, model) for number, edit in (edits or {}).items()}
    return loop(model, before=at(given), after=lambda number, loss: number == 4 and delattr(model, "odd"))


def tuned(make: Callable[..., torch.optim.Optimizer], edits: dict[int, Edit] | None = None, **options: Any) -> Loop:
    """A loop that edits the optimizer before some steps."""
    model = Net()
    optimizer = make(model, **options)
    given = {number: (lambda edit=edit: edit(optimizer, model)) for number, edit in (edits or {}).items()}
    return loop(model, optimizer=optimizer, before=at(given))
