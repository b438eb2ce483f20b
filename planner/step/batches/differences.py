"""The differences between two batches, in words."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from typing import Any, Protocol

import torch

from planner.errors import named_type

_FACTS = ("shape", "strides", "dtype", "device", "layout", "requires_grad", "lazily")


class Described(Protocol):
    """The description of a batch without the numbers in its tensors; see `Form`."""

    structure: tuple[tuple[str, Hashable], ...]
    tensors: dict[str, Any]
    sharing: tuple[tuple[str, str, int], ...]
    plain: dict[str, Hashable]
    texts: dict[str, str]


def differences(own: Described, other: Described, without: Collection[str]) -> Iterator[str]:
    """The differences of another batch from the step's own, one phrase each.

    Args:
        own, other: the batches.
        without: names of plain values that may differ.
    """
    for (name, ours), (place, theirs) in zip(own.structure, other.structure, strict=False):
        if name != place:
            yield f"{place} is in the place of {name}"
        elif ours != theirs:
            yield f"{name} is {_typed(theirs)}, was {_typed(ours)}"
    shorter, longer = sorted((own.structure, other.structure), key=len)
    for name, _ in longer[len(shorter) :]:
        yield f"{name} is {'new' if longer is other.structure else 'gone'}"
    for name, own_facts in own.tensors.items():
        other_facts = other.tensors.get(name, own_facts)
        for fact in _FACTS:
            before, after = getattr(own_facts, fact), getattr(other_facts, fact)
            if before != after:
                yield _changed(name, fact, before, after)
    yield from _shared(own.sharing, other.sharing)
    for name in own.plain:
        if name not in without and name in other.plain and other.plain[name] != own.plain[name]:
            yield f"{name} is now {other.texts[name]}"


def _changed(name: str, fact: str, before: object, after: object) -> str:
    if fact == "requires_grad":
        return f"{name} {'now requires' if after else 'no longer requires'} a gradient"
    verb = "is" if fact in ("device", "layout", "lazily") else "has"
    what = "" if fact in ("device", "layout") else f"{fact} "
    return f"{name} {verb} {what}{after}, was {before}"


def _shared(own: tuple[tuple[str, str, int], ...], other: tuple[tuple[str, str, int], ...]) -> Iterator[str]:
    for a, b, _ in sorted(set(own) ^ set(other)):
        before, other_facts = (any(pair[:2] == (a, b) for pair in pairs) for pairs in (own, other))
        change = "otherwise than" if before and other_facts else "and did not" if other_facts else "and not"
        yield f"{a} and {b} share memory {change if other_facts else 'no longer, as they did'} in the step's own batch"


def _typed(token: Any) -> str:
    kind = token[0] if isinstance(token, tuple) else token
    if kind == "as":
        return f"the same object as {token[1]}"
    if kind == "tensor":
        return "a tensor" if token[1] is torch.Tensor else named_type(token[1])
    if isinstance(token, tuple) and isinstance(token[1], int):
        return f"{named_type(kind)} of {token[1]} values"
    if isinstance(token, tuple):
        labels = [label[-1] if isinstance(label, tuple) else label for _, label in token[1]]
        return f"{named_type(kind)} with {', '.join(map(str, labels[:8])) or 'nothing'}{', ...' if labels[8:] else ''}"
    return named_type(kind)
