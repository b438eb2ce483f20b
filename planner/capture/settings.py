"""What a graph was captured for: how a model was set up, which a user may change between two runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from planner.capture.guards import Reach, environment, named
from planner.capture.members import Member, overlaps
from planner.graph import Kind

Settings = Mapping[str, object]

#: Of a parameter group: numbers that an optimizer leaves kernels out for where they are 0, and what chooses kernels.
_NUMBERS = ("weight_decay", "momentum")
_FLAGS = ("nesterov", "amsgrad", "maximize", "decoupled_weight_decay")


def settings(held: Iterable[Member], reach: Reach, *, modes: bool) -> Settings:
    """What the ops of a step follow from, each by how a user would write it.

    These are PyTorch's own settings of now, every value that the step's code can reach, what tensors look like, whether
    they want gradients, and which of them share memory.

    Args:
        held: the tensors that the code holds on to.
        reach: what it can reach.
        modes: whether the training modes matter.
    """
    found: dict[str, object] = dict(named(environment()))
    own = [member for member in held if not member.reached]
    for member in own:
        tensor = member.tensor
        found[f"{member.name}.shape"] = tuple(tensor.shape)
        found[f"{member.name}.dtype"] = tensor.dtype
        if member.kind is Kind.PARAMETER:
            found[f"{member.name}.requires_grad"] = tensor.requires_grad
    found.update({f"{one.name}.shares_memory_with": other.name for one, other in overlaps(own)})
    found.update({name: value for name, value in reach.values.items() if modes or not name.endswith(".training")})
    return found


def optimizer_settings(groups: Sequence[tuple[Mapping[str, Any], Sequence[str]]]) -> Settings:
    """The same of an optimizer: which parameters are in its groups, and what decides which kernels it calls.

    Args:
        groups: hyperparameters and parameter names.
    """
    found: dict[str, object] = {}
    for place, (group, names) in enumerate(groups):
        name = f"optimizer.param_groups[{place}]"
        found[f"{name}.params"] = tuple(names)
        found.update({f"{name}.{key}": "0" if group[key] == 0 else "not 0" for key in _NUMBERS if key in group})
        found.update({f"{name}.{key}": bool(group[key]) for key in _FLAGS if key in group})
    return found


def change(before: Settings, now: Settings) -> str:
    """What differs, in words (`"encoder.training is now False"`); empty where nothing does."""
    for name, value in now.items():
        if name not in before:
            return f"{name} is now {value}" if _owner(name) in before or "." not in name else f"{_owner(name)} is new"
        if before[name] is not value and before[name] != value:
            return f"{name} is now {value}"
    for name in before:
        if name not in now:
            return f"{name if _owner(name) in now or '.' not in name else _owner(name)} is gone"
    return ""


def _owner(name: str) -> str:
    return name.rpartition(".")[0]
