"""Modules for random programs: each multiplies by a number that it keeps somewhere, or carries something on.

A part offers edits: what a user may do to it between two steps, by name.
"""

from __future__ import annotations

import functools
import random
from collections import UserDict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

WIDTH, ROWS = 8, 4
NUMBERS = (0.5, 1.0, 2.0, 0.25, -1.0, 1 / 3, 0.0, -0.0, 3)
Edits = dict[str, Callable[[], object]]
GLOBALS: dict[str, Any] = {}
Couple = namedtuple("Couple", "number other")


@dataclass
class Record:
    number: Any = 1.0
    other: Any = "text"


class Slotted:
    __slots__ = ("number",)


class Part(nn.Module):
    """A layer; what it returns is multiplied by `factor()`."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self.layer, self.act = nn.Linear(WIDTH, WIDTH), rng.choice([nn.Tanh, nn.ReLU, nn.Sigmoid])()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.layer(x)) * self.factor()

    def factor(self) -> Any:
        return 1.0

    def edits(self, rng: random.Random) -> Edits:
        """What a user may do to this part, with every choice made."""
        act = rng.choice([nn.Tanh, nn.GELU, nn.Identity])
        return {
            "activation": lambda: setattr(self, "act", act()),
            "data": lambda: self.layer.weight.data.mul_(0.5),
            "numpy": lambda: self.layer.bias.detach().numpy().fill(0.1),
            "freeze": lambda: self.requires_grad_(False),
            "unfreeze": lambda: self.requires_grad_(True),
            "eval": self.eval,
            "train": self.train,
            "forward": lambda: setattr(self, "forward", lambda x: torch.sin(self.layer(x))),
            "unused attribute": lambda: setattr(self, "note", rng.choice("abc")),
        }


class Kept(Part):
    """Its number is kept in one of many places; `places` says how each is made, read and written."""

    places: ClassVar[dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[Any, Any], object]]]] = {
        "attribute": (lambda v: v, lambda m: m.kept, lambda m, v: setattr(m, "kept", v)),
        "list": (lambda v: [0, v], lambda m: m.kept[1], lambda m, v: m.kept.__setitem__(1, v)),
        "dict": (lambda v: {"a": v}, lambda m: m.kept["a"], lambda m, v: m.kept.update(a=v)),
        "user dict": (lambda v: UserDict(a=v), lambda m: m.kept["a"], lambda m, v: m.kept.update(a=v)),
        "tuple": (lambda v: (v, "t"), lambda m: m.kept[0], lambda m, v: setattr(m, "kept", (v, "t"))),
        "named tuple": (lambda v: Couple(v, 1), lambda m: m.kept[0], lambda m, v: setattr(m, "kept", Couple(v, 1))),
        "namespace": (
            lambda v: SimpleNamespace(a=SimpleNamespace(b=v)),
            lambda m: m.kept.a.b,
            lambda m, v: setattr(m.kept.a, "b", v),
        ),
        "dataclass": (Record, lambda m: m.kept.number, lambda m, v: setattr(m.kept, "number", v)),
        "new dataclass": (Record, lambda m: m.kept.number, lambda m, v: setattr(m, "kept", Record(v))),
        "deep": (
            lambda v: {"x": [(1, {"y": [v]})]},
            lambda m: m.kept["x"][0][1]["y"][0],
            lambda m, v: m.kept["x"][0][1]["y"].__setitem__(0, v),
        ),
        "array": (lambda v: np.array([v, 1.0]), lambda m: float(m.kept[0]), lambda m, v: m.kept.__setitem__(0, v)),
        "numpy number": (np.float64, lambda m: float(m.kept), lambda m, v: setattr(m, "kept", np.float64(v))),
        "deque": (lambda v: deque([v], 2), lambda m: m.kept[-1], lambda m, v: m.kept.append(v)),
        "set": (
            lambda v: {"on"},
            lambda m: 2.0 if "on" in m.kept else 1.0,
            lambda m, v: m.kept.symmetric_difference_update({"on"}),
        ),
        "text": (str, lambda m: float(m.kept), lambda m, v: setattr(m, "kept", str(v))),
        "length": (lambda v: [1], lambda m: len(m.kept), lambda m, v: m.kept.append(v)),
        "partial": (
            lambda v: functools.partial(max, v),
            lambda m: m.kept(-5.0),
            lambda m, v: setattr(m, "kept", functools.partial(max, v)),
        ),
        "closure": (lambda v: lambda: v, lambda m: m.kept(), lambda m, v: setattr(m, "kept", lambda: v)),
        "plain tensor": (torch.tensor, lambda m: m.kept, lambda m, v: setattr(m, "kept", torch.tensor(v))),
        "tensor in place": (lambda v: torch.tensor([v * 1.0]), lambda m: m.kept, lambda m, v: m.kept.fill_(v)),
        "tensor by data": (lambda v: torch.tensor([v * 1.0]), lambda m: m.kept, lambda m, v: m.kept.data.fill_(v)),
        "tensor by numpy": (lambda v: torch.tensor([v * 1.0]), lambda m: m.kept, lambda m, v: m.kept.numpy().fill(v)),
        "tensor in list": (
            lambda v: [torch.tensor(v)],
            lambda m: m.kept[0],
            lambda m, v: m.kept.__setitem__(0, torch.tensor(v)),
        ),
        "tensor in dict by data": (
            lambda v: {"t": torch.full((WIDTH,), v * 1.0)},
            lambda m: m.kept["t"],
            lambda m, v: m.kept["t"].data.fill_(v),
        ),
        "tensor in namespace": (
            lambda v: SimpleNamespace(t=torch.tensor(v)),
            lambda m: m.kept.t,
            lambda m, v: setattr(m.kept, "t", torch.tensor(v)),
        ),
    }  # fmt: skip

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.place = rng.choice(sorted(self.places))
        self.kept = self.places[self.place][0](rng.choice(NUMBERS))

    def factor(self) -> Any:
        return self.places[self.place][1](self)

    def edits(self, rng: random.Random) -> Edits:
        write, number = self.places[self.place][2], rng.choice(NUMBERS)
        return {f"kept in {self.place}": lambda: write(self, number)} | super().edits(rng)


class Elsewhere(Part):
    """Its number is kept outside of the module: on the class, in a global, a closure, a function's own things."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.where = rng.choice(["class", "global", "cell", "default", "function", "private", "slots", "property"])
        number = rng.choice(NUMBERS)
        type(self).number = number  # type: ignore[attr-defined]
        GLOBALS["number"] = number
        self._number, self.slotted = number, Slotted()
        self.slotted.number = number

        def cell() -> Any:
            return number

        def put(value: Any) -> None:
            nonlocal number
            number = value

        def default(value: Any = number) -> Any:
            return value

        def function() -> Any:
            return function.number  # type: ignore[attr-defined]

        function.number = number  # type: ignore[attr-defined]
        self.functions = {"cell": cell, "default": default, "function": function}
        object.__setattr__(self, "put", put)

    @property
    def alias(self) -> Any:
        return self._number

    def factor(self) -> Any:
        if self.where in self.functions:
            return self.functions[self.where]()
        if self.where == "class":
            return type(self).number  # type: ignore[attr-defined]
        if self.where == "global":
            return GLOBALS["number"]
        if self.where == "slots":
            return self.slotted.number
        return self._number if self.where == "private" else self.alias

    def write(self, value: Any) -> None:
        if self.where == "cell":
            self.put(value)  # type: ignore[operator]
        elif self.where == "default":
            self.functions["default"].__defaults__ = (value,)
        elif self.where == "function":
            self.functions["function"].number = value  # type: ignore[attr-defined]
        elif self.where == "class":
            type(self).number = value  # type: ignore[attr-defined]
        elif self.where == "global":
            GLOBALS["number"] = value
        elif self.where == "slots":
            self.slotted.number = value
        else:
            self._number = value

    def edits(self, rng: random.Random) -> Edits:
        number = rng.choice(NUMBERS)
        return {f"number of the {self.where}": lambda: self.write(number)} | super().edits(rng)


class Carried(Part):
    """Leaves something behind for the next step."""

    kinds = (
        "hidden", "tuple", "dict", "list", "deque", "in place", "swap", "buffer", "count as tensor", "cache",
        "count as number", "branch", "growing", "class", "unread number",
    )  # fmt: skip

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        weights = [3] * 10 + [1] * 5  # those that a plan cannot hold are rarer
        self.kind = rng.choices(self.kinds, weights)[0]
        self.hidden: Any = None
        self.state: Any = {"dict": {}, "list": [torch.zeros(WIDTH)] * 2, "deque": deque(maxlen=2)}.get(self.kind)
        self.a, self.b = torch.zeros(WIDTH), torch.ones(WIDTH)
        self.register_buffer("average", torch.zeros(WIDTH))
        self.count, self.steps, self.grown = 0, torch.zeros(()), []
        type(self).shared = torch.zeros(WIDTH)  # type: ignore[attr-defined]

    def forward(self, x: Tensor) -> Tensor:
        out = super().forward(x)
        mean = out.detach().mean(0)
        return out + getattr(self, "_" + self.kind.replace(" ", "_"))(mean)

    def _hidden(self, mean: Tensor) -> Any:
        before, self.hidden = self.hidden, mean
        return 0.0 if before is None else before

    def _tuple(self, mean: Tensor) -> Any:
        before, self.hidden = self.hidden, (mean, mean * 2)
        return 0.0 if before is None else before[1]

    def _dict(self, mean: Tensor) -> Any:
        before = self.state.get("h", 0.0)
        self.state["h"] = 0.5 * before + mean
        return before

    def _list(self, mean: Tensor) -> Any:
        self.state.append(mean)
        return self.state.pop(0)

    def _deque(self, mean: Tensor) -> Any:
        self.state.append(mean)
        return self.state[0]

    def _in_place(self, mean: Tensor) -> Any:
        before = self.a.clone()
        self.a.lerp_(mean, 0.5)
        return before

    def _swap(self, mean: Tensor) -> Any:
        self.a, self.b = self.b, self.a
        return self.a

    def _buffer(self, mean: Tensor) -> Any:
        self.average = 0.9 * self.average + 0.1 * mean
        return self.average

    def _count_as_tensor(self, mean: Tensor) -> Any:
        self.steps = self.steps + 1
        return self.steps

    def _cache(self, mean: Tensor) -> Any:
        if self.hidden is None:
            self.hidden = torch.linspace(0, 1, WIDTH)
        return self.hidden

    def _count_as_number(self, mean: Tensor) -> Any:
        self.count += 1
        return self.count

    def _branch(self, mean: Tensor) -> Any:
        self.count = 1 - self.count
        return mean.sin() if self.count else mean.cos()

    def _growing(self, mean: Tensor) -> Any:
        self.grown.append(mean)
        return sum(self.grown)

    def _class(self, mean: Tensor) -> Any:
        before, type(self).shared = type(self).shared, mean  # type: ignore[attr-defined]
        return before

    def _unread_number(self, mean: Tensor) -> Any:
        self.count += 1
        return 0.0

    def edits(self, rng: random.Random) -> Edits:
        return {
            f"reset {self.kind}": lambda: setattr(self, "hidden", None),
            f"data of {self.kind}": lambda: self.a.data.fill_(0.5),
            f"buffer beside {self.kind}": lambda: self.average.data.fill_(0.5),
        } | super().edits(rng)


class Drawn(Part):
    """Draws random numbers."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.p, self.rng = 0.3, np.random.default_rng(1)
        self.kind = rng.choices(["dropout", "noise", "layer", "python", "numpy", "own"], [4, 4, 2, 1, 1, 1])[0]

    def forward(self, x: Tensor) -> Tensor:
        if self.kind == "dropout":
            return nn.functional.dropout(super().forward(x), self.p, self.training)
        if self.kind == "noise":
            return super().forward(x) + 0.1 * torch.randn(WIDTH)
        if self.kind == "layer":
            return x + super().forward(x) * (torch.rand(()) < self.p)
        draw = {"python": random.random, "numpy": np.random.rand, "own": self.rng.random}[self.kind]
        return x if draw() < self.p else super().forward(x)

    def edits(self, rng: random.Random) -> Edits:
        p = rng.choice([0.0, 0.5, 0.9])
        return {f"p of {self.kind}": lambda: setattr(self, "p", p)} | super().edits(rng)


PARTS: tuple[type[Part], ...] = (Part, Kept, Kept, Kept, Elsewhere, Carried, Carried, Drawn)
