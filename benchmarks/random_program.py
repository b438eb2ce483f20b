"""A random training loop of a seed: parts, hooks, loss, optimizer, batches, and what the user does between steps."""

from __future__ import annotations

import copy
import random
from collections import OrderedDict, UserDict, namedtuple
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from beside_eager import STEPS, Loop
from random_parts import GLOBALS, NUMBERS, PARTS, ROWS, WIDTH, Edits
from torch import Tensor, nn
from torch.nn.functional import l1_loss, mse_loss

Pair = namedtuple("Pair", "x y")


class Stack(nn.Module):
    """Parts one after the other."""

    def __init__(self, parts: list[nn.Module]) -> None:
        super().__init__()
        self.parts, self.last = nn.ModuleList(parts), nn.Linear(WIDTH, 4)

    def forward(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return self.last(x)


def program(seed: int) -> Loop:
    """The loop of a seed: the same whenever it is made."""
    return describe(seed)[0]


def features(seed: int) -> str:
    """What the loop of a seed does, in words."""
    return ", ".join(describe(seed)[1])


def describe(seed: int) -> tuple[Loop, list[str]]:
    """The loop of a seed, and what it does in words."""
    rng = random.Random(seed)
    parts: list[Any] = [_new(rng.choice(PARTS), rng) for _ in range(rng.randint(1, 3))]
    model = Stack(parts)
    said = [_words(part) for part in parts]
    edits: Edits = {}
    for place, part in enumerate(parts):
        edits |= {f"{name} of part {place}": edit for name, edit in part.edits(rng).items()}
    optimizer, more = _optimizer(model, rng)
    edits |= more | _of_the_model(model, rng) | _settings(rng)
    for make in (_hook, _loss, _batches):
        made = make(model, rng)
        said.append(made[1])
        edits |= made[2]
        if make is _loss:
            loss = made[0]
        elif make is _batches:
            batches = made[0]
    script = _script(edits, rng)
    said += [f"{name} before step {number}" for number, names in enumerate(script) for name in names]

    def before(number: int) -> None:
        batches[1](number)
        for name in script[number]:
            edits[name]()

    around = _around(rng)
    said.append(around[0])
    return Loop(model, optimizer, batches[0], loss, before=before, around=around[1], also=GLOBALS), [
        *filter(None, said)
    ]


def _new(kind: type[Any], rng: random.Random) -> Any:
    """A part of a class of its own, so that what is written to classes stays within the loop."""
    return type(kind.__name__, (kind,), {})(rng)


def _words(part: Any) -> str:
    extra = getattr(part, "kind", getattr(part, "place", getattr(part, "where", "")))
    return f"{type(part).__name__.lower()} {extra}".strip()


def _script(edits: Edits, rng: random.Random) -> list[list[str]]:
    """Which edits are made before which step: mostly one that concerns a part's own number or state."""
    script: list[list[str]] = [[] for _ in range(STEPS)]
    own = [name for name in edits if name.startswith(("kept", "number", "weight", "gain", "p of", "reset", "data of"))]
    for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4])):
        name = rng.choice(own if own and rng.random() < 0.5 else sorted(edits))
        script[rng.randrange(STEPS)].append(name)
    return script


def _optimizer(model: nn.Module, rng: random.Random) -> tuple[torch.optim.Optimizer, Edits]:
    kind = rng.choice(["sgd", "sgd", "adam", "adamw"])
    if kind == "sgd":
        dampening = rng.choice([0.0, 0.0, 0.3])
        made: torch.optim.Optimizer = torch.optim.SGD(
            model.parameters(), lr=0.05, momentum=0.9, dampening=dampening, foreach=False
        )
    else:
        make = torch.optim.Adam if kind == "adam" else torch.optim.AdamW
        made = make(model.parameters(), lr=0.01, foreach=False)
    group, lr, decay = made.param_groups[0], rng.choice([0.001, 0.0, 0.2]), rng.choice([0.0, 0.1])
    first = next(model.parameters())
    return made, {
        "learning rate": lambda: group.update(lr=lr),
        "weight decay": lambda: group.update(weight_decay=decay),
        "maximize": lambda: group.update(maximize=True),
        "cleared optimizer": made.state.clear,
        "state by data": lambda: [v.data.mul_(0.5) for k, v in made.state.get(first, {}).items() if k != "step"],
    }


def _of_the_model(model: Stack, rng: random.Random) -> Edits:
    start = copy.deepcopy(model.last.state_dict())

    act = rng.choice([nn.Tanh, nn.ELU, nn.Softplus])

    def replace() -> None:
        model.parts[-1].act = act()

    return {
        "load state dict": lambda: model.last.load_state_dict(start),
        "row by data": lambda: model.last.weight.data[1].fill_(0.5),
        "replaced activation": replace,
        "reversed parts": lambda: setattr(model, "parts", nn.ModuleList(list(model.parts)[::-1])),
        "appended module": lambda: model.parts.append(nn.Tanh()),
        "freeze last bias": lambda: model.last.bias.requires_grad_(False),
        "new weights": lambda: nn.init.normal_(model.last.weight),
    }


def _settings(rng: random.Random) -> Edits:
    threads = rng.choice([1, 2])
    return {
        "autocast on": _autocast_on,
        "autocast off": lambda: torch.set_autocast_enabled("cpu", False),
        "threads": lambda: torch.set_num_threads(threads),
        "deterministic": lambda: torch.use_deterministic_algorithms(True),
        "onednn off": lambda: setattr(torch.backends.mkldnn, "enabled", False),
        "matmul precision": lambda: torch.set_float32_matmul_precision("medium"),
        "seed": lambda: torch.manual_seed(3),
        "draw": lambda: torch.rand(3),
        "python draw": random.random,
    }


def _autocast_on() -> None:
    torch.set_autocast_cache_enabled(False)  # or eager goes on with the casts of this step's weights
    torch.set_autocast_enabled("cpu", True)


def _hook(model: Stack, rng: random.Random) -> tuple[None, str, Edits]:
    """A hook on a part, there from the start or not, with a number in its closure."""
    part, gain, number = rng.choice(list(model.parts)), {"now": rng.choice(NUMBERS)}, rng.choice(NUMBERS)
    handles: list[Any] = []
    calls: list[Any] = []

    def add() -> None:
        kind = kinds[0]
        if kind == "pre":
            handles.append(part.register_forward_pre_hook(lambda module, args: (args[0] * gain["now"],)))
        elif kind == "look":
            handles.append(part.register_forward_hook(lambda module, args, out: calls.append(out.detach())))
        else:
            handles.append(part.register_forward_hook(lambda module, args, out: out * gain["now"]))

    def remove() -> None:
        if handles:
            handles.pop().remove()

    kinds = rng.choices(["forward", "pre", "look"], [4, 3, 1])
    there = rng.random() < 0.3
    if there:
        add()
    edits: Edits = {"hook": add, "unhook": remove, "gain of hook": lambda: gain.update(now=number)}
    return None, f"{kinds[0]} hook" if there else "", edits


def _loss(model: Stack, rng: random.Random) -> tuple[Callable[[Any, Any], Tensor], str, Edits]:
    """A loss that reads a number or a tensor in its closure, a teacher, or an object."""
    kind = rng.choice(["plain", "number", "cell", "tensor", "teacher", "module", "object", "global"])
    number, weight = rng.choice(NUMBERS), {"now": 1.0}
    held, teacher, cell = torch.ones(4), nn.Linear(WIDTH, 4), 1.0
    criteria: dict[str, Any] = {"now": nn.SmoothL1Loss(), "weight": held}
    GLOBALS["weight"] = 1.0

    def loss(model: Any, batch: Any) -> Tensor:
        x, y = (batch.x, batch.y) if isinstance(batch, Pair) else (batch["x"], batch["y"])
        out = model(x).float()
        if kind == "number":
            return mse_loss(out, y) * weight["now"]
        if kind == "cell":
            return mse_loss(out, y) * cell
        if kind == "tensor":
            return ((out - y).square() * held).mean()
        if kind == "teacher":
            return mse_loss(out, teacher(x).detach().float())
        if kind == "module":
            return criteria["now"](out, y)
        if kind == "global":
            return mse_loss(out, y) * GLOBALS["weight"]
        return mse_loss(out, y) + (l1_loss(out, y) if "extra" in criteria else 0.0)

    def put() -> None:
        nonlocal cell
        cell = number

    edits: dict[str, Edits] = {
        "number": {"weight in a dict": lambda: weight.update(now=number)},
        "cell": {"weight in a cell": put},
        "global": {"weight in a global": lambda: GLOBALS.update(weight=number)},
        "tensor": {
            "weight tensor in place": lambda: held.mul_(0.5),
            "weight tensor by data": lambda: held.data.fill_(2.0),
        },
        "teacher": {
            "weight of the teacher": lambda: teacher.weight.data.lerp_(model.last.weight.data, 0.5),
            "weights of the teacher": lambda: teacher.load_state_dict(model.last.state_dict()),
        },
        "module": {"weight: another loss": lambda: criteria.update(now=nn.MSELoss())},
        "object": {"weight: one more term": lambda: criteria.update(extra=1)},
    }
    return loss, f"loss {kind}", edits.get(kind, {})


def _batches(model: Stack, rng: random.Random) -> tuple[tuple[list[Any], Callable[[int], object]], str, Edits]:
    """Five batches and what is done to them before each step."""
    given = [{"x": torch.randn(ROWS, WIDTH), "y": torch.randn(ROWS, 4)} for _ in range(STEPS)]
    kind = rng.choice(
        ["dict", "dict", "refilled", "new tensors", "pair", "user dict", "names", "transposed", "expanded"]
    )

    def nothing(number: int) -> None:
        return None

    if kind == "refilled":
        kept = {name: value.clone() for name, value in given[0].items()}
        return ([kept] * STEPS, lambda n: [kept[name].copy_(given[n][name]) for name in kept]), kind, {}
    if kind == "new tensors":
        one: dict[str, Tensor] = dict(given[0])
        return ([one] * STEPS, lambda n: one.update(given[n])), kind, {}
    wraps: dict[str, Callable[[int, Any], Any]] = {
        "pair": lambda n, b: Pair(b["x"], b["y"]),
        "user dict": lambda n, b: UserDict(b),
        "names": lambda n, b: OrderedDict({**b, "name": f"sample {n}", "nan": float("nan")}),
        "transposed": lambda n, b: {**b, "x": b["x"].t().contiguous().t()} if n % 2 else b,
        "expanded": lambda n, b: {**b, "x": b["x"][:1].expand(ROWS, WIDTH)} if n == 3 else b,
    }
    wrap = wraps.get(kind, lambda n, b: b)
    return ([wrap(number, batch) for number, batch in enumerate(given)], nothing), f"batch {kind}", {}


def _around(rng: random.Random) -> tuple[str, Callable[[], Any]]:
    kind = rng.choices(["", "autocast", "anomaly"], [20, 3, 1])[0]
    makes: dict[str, Callable[[], Any]] = {
        "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False),
        "anomaly": lambda: torch.autograd.set_detect_anomaly(True),
    }
    return kind and f"{kind} around", makes.get(kind, nullcontext)
