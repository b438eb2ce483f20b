"""Activation checkpointing of a model's repeated blocks, as `torch.utils.checkpoint` does it."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint

from planner.errors import StowageError, given_type


def repeated_blocks(model: nn.Module) -> list[nn.Module]:
    """The members of each ModuleList or Sequential that are of its most frequent class, if there are two or more.

    Only the outermost ones: blocks in blocks are left out.
    """
    found: list[nn.Module] = []
    inside: set[int] = set()
    for module in model.modules():
        if id(module) in inside or not isinstance(module, nn.ModuleList | nn.Sequential) or not len(module):
            continue
        kinds = Counter(map(type, module))
        kind, count = kinds.most_common(1)[0]
        if count < 2 or kind in (nn.ModuleList, nn.ModuleDict):  # which are not called
            continue
        blocks = [member for member in module if type(member) is kind]
        found += [block for block in blocks if id(block) not in inside]
        inside.update(id(part) for block in blocks for part in block.modules())
    return found


def checkpoint_blocks(model: nn.Module) -> None:
    """Let the repeated blocks of a model keep their inputs alone, and run again in the backward pass.

    Args:
        model: changed in place; names of modules and parameters stay.

    Raises:
        StowageError: there are no repeated blocks, or one has a forward of its own.
    """
    blocks = repeated_blocks(model)
    if not blocks:
        raise StowageError("no ModuleList or Sequential of the model has two members of one class to checkpoint")
    for block in blocks:
        if "forward" in vars(block):
            raise StowageError(f"{given_type(block)} has a forward of its own; define it in the class instead")
        block.__class__ = _checkpointed(type(block))  # type: ignore[arg-type]


@cache
def _checkpointed(kind: type[nn.Module]) -> type[nn.Module]:
    """A subclass of the same name, so that copies, names and views of the block stay as they are."""

    def forward(self: Any, *args: Any, **named: Any) -> Any:
        return checkpoint(lambda *given, **by_name: kind.forward(self, *given, **by_name), *args, use_reentrant=False,
                          **named)  # fmt: skip

    body = {"forward": forward, "__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (kind,), body)
