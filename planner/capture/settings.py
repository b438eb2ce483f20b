"""What a graph was captured for: how a model was set up, which a user may change between two runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torch import nn

from planner.capture.members import Member
from planner.graph import Kind

Settings = Mapping[str, object]


def settings(model: nn.Module, held: Iterable[Member], *, modes: bool) -> Settings:
    """Training modes, and what tensors look like and whether they want gradients, each by how a user would write it.

    Args:
        model: real or fake.
        held: its members.
        modes: whether the training modes matter.
    """
    found: dict[str, object] = {}
    if modes:
        found.update({f"{path or 'model'}.training": module.training for path, module in model.named_modules()})
    for member in held:
        tensor = member.tensor
        found[f"{member.name}.shape"] = tuple(tensor.shape)
        found[f"{member.name}.dtype"] = tensor.dtype
        if member.kind is Kind.PARAMETER:
            found[f"{member.name}.requires_grad"] = tensor.requires_grad
    return found


def change(before: Settings, now: Settings) -> str:
    """What differs, in words (`"encoder.training is now False"`); empty where nothing does."""
    for name, value in now.items():
        if name not in before:
            return f"{name.rpartition('.')[0]} is new"
        if before[name] != value:
            return f"{name} is now {value}"
    gone = [name for name in before if name not in now]
    return f"{gone[0].rpartition('.')[0]} is gone" if gone else ""
