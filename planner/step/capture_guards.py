"""Capture guards: the configuration that a graph was captured for, which a user may change between two runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from planner.graph import Kind
from planner.guards import Reach, environment, named
from planner.step.module_tensors import ModuleTensor, overlaps

CaptureGuards = Mapping[str, object]

#: Hyperparameters for which an optimizer skips kernels if they are 0, and flags that choose kernels.
_NUMBERS = ("weight_decay", "momentum")
_FLAGS = ("nesterov", "amsgrad", "maximize", "decoupled_weight_decay")


def capture_guards(tensors: Iterable[ModuleTensor], reach: Reach, *, modes: bool) -> CaptureGuards:
    """Everything that the ops of a step depend on, by the expression that a user would write for it.

    These are PyTorch's present settings, every value that the step's code can reach, the shapes and dtypes of tensors,
    whether they require gradients, and which of them share memory.

    Args:
        tensors: the tensors that the code holds.
        reach: everything that the code can reach.
        modes: whether the training modes matter.
    """
    found: dict[str, object] = dict(named(environment()))
    own_entries = [entry for entry in tensors if not entry.reached]
    for entry in own_entries:
        tensor = entry.tensor
        found[f"{entry.name}.shape"] = tuple(tensor.shape)
        found[f"{entry.name}.dtype"] = tensor.dtype
        if entry.kind is Kind.PARAMETER:
            found[f"{entry.name}.requires_grad"] = tensor.requires_grad
    found.update({f"{one.name}.shares_memory_with": other.name for one, other in overlaps(own_entries)})
    found.update({name: value for name, value in reach.values.items() if modes or not name.endswith(".training")})
    return found


def optimizer_guards(groups: Sequence[tuple[Mapping[str, Any], Sequence[str]]]) -> CaptureGuards:
    """The guards of an optimizer: the parameters in its groups, and the hyperparameters that choose its kernels.

    Args:
        groups: hyperparameters and parameter names of each group.
    """
    found: dict[str, object] = {}
    for index, (group, names) in enumerate(groups):
        name = f"optimizer.param_groups[{index}]"
        found[f"{name}.params"] = tuple(names)
        found.update({f"{name}.{key}": "0" if group[key] == 0 else "not 0" for key in _NUMBERS if key in group})
        found.update({f"{name}.{key}": bool(group[key]) for key in _FLAGS if key in group})
    return found


def guard_change(before: CaptureGuards, now: CaptureGuards) -> str:
    """The first difference, in words (`"encoder.training is now False"`); empty if there is none."""
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
