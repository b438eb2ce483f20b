"""What a graph was captured for: how a model was set up, which a user may change between two runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from planner.capture.members import Member, overlaps
from planner.graph import Kind

Settings = Mapping[str, object]

_PLAIN = frozenset({bool, int, float, str, type(None)})
#: Of a parameter group: numbers that an optimizer leaves kernels out for where they are 0, and what chooses kernels.
_NUMBERS = ("weight_decay", "momentum")
_FLAGS = ("nesterov", "amsgrad", "maximize", "decoupled_weight_decay")


def settings(model: nn.Module, held: Iterable[Member], *, modes: bool) -> Settings:
    """What the ops of a step follow from, each by how a user would write it.

    These are training modes, plain attributes of modules such as `p` of a dropout, what tensors look like, whether they
    want gradients and which of them share memory, and of PyTorch the autocast and the default dtype of now.

    Args:
        model: real or fake.
        held: its members.
        modes: whether the training modes matter.
    """
    autocast = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else "off"
    found: dict[str, object] = {"autocast": autocast, "the default dtype": torch.get_default_dtype()}
    for path, module in model.named_modules():
        found.update({f"{path or 'model'}.{name}": value for name, value in attributes(module)})
        if modes:
            found[f"{path or 'model'}.training"] = module.training
    held = list(held)
    for member in held:
        tensor = member.tensor
        found[f"{member.name}.shape"] = tuple(tensor.shape)
        found[f"{member.name}.dtype"] = tensor.dtype
        if member.kind is Kind.PARAMETER:
            found[f"{member.name}.requires_grad"] = tensor.requires_grad
    found.update({f"{one.name}.shares_memory_with": other.name for one, other in overlaps(held)})
    return found


def attributes(module: nn.Module) -> Iterator[tuple[str, object]]:
    """The public attributes of a module that are numbers, text, truth values, None, or tuples of these."""
    for name, value in vars(module).items():
        if name[0] == "_" or name == "training":
            continue
        if type(value) in _PLAIN or (type(value) is tuple and all(type(item) in _PLAIN for item in value)):
            yield name, value


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
            return f"{name} is now {value}" if _owner(name) in map(_owner, before) else f"{_owner(name)} is new"
        if before[name] is not value and before[name] != value:
            return f"{name} is now {value}"
    for name in before:
        if name not in now:
            return f"{name if _owner(name) in map(_owner, now) else _owner(name)} is gone"
    return ""


def _owner(name: str) -> str:
    return name.rpartition(".")[0]
