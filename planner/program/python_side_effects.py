"""Effects of a step on Python variables: tensors that replace others, or that are put where there were none.

A capture reverts its effects, since its tensors are fake. So that the next step finds what eager PyTorch would have
left, the effects are applied to the live variables after every step, with the values that the step computed.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch import Tensor

from planner.errors import StowageError
from planner.guards import KEEP, MISSING, Container, DictItems, Names, Reach, Slots

_ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class LiveRef:
    """The live tensor under a key of `Step.state()` before the step, which is kept."""

    key: str


@dataclass(frozen=True, slots=True)
class NextRef:
    """The value under a key of `Step.state()` after the step, in a tensor of its own."""

    key: str


@dataclass(frozen=True, slots=True)
class OutputRef:
    """One of the step's additional outputs, in a tensor of its own."""

    place: int


Ref = LiveRef | NextRef | OutputRef


@dataclass(frozen=True, slots=True, repr=False)
class Written:
    """What a step writes into a container.

    Args:
        container: a container that existed before the step.
        items: with references in place of tensors: of a dict, the new items; otherwise all items.
        keys, gone: of a dict, the keys of `items`, and the keys that were removed.
    """

    container: Container
    items: tuple[Any, ...]
    keys: tuple[Any, ...] = ()
    gone: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Effects:
    """What a step leaves behind.

    Args:
        written: what is written, per container.
        settles: whether the next step finds the same state as this one, except for the values of tensors.
        lost: the keys of `Step.state()` under which the live step has something else afterwards, or nothing.
        shuffles: whether an object that existed before moves to another place, where the next step finds it.
    """

    written: tuple[Written, ...]
    settles: bool
    lost: frozenset[str] = frozenset()
    shuffles: bool = False

    @property
    def constant(self) -> bool:
        """Whether no tensor is among what is written, lost or moved."""
        return not (self.lost or self.shuffles or any(any(_references(one.items)) for one in self.written))

    def fit(self, reach: Reach) -> bool:
        """Whether a step would write to the same containers again.

        Args:
            reach: the current reach of the step.
        """
        there = {id(container.target) for container in reach.containers}
        return not self.shuffles and all(id(one.container.target) in there for one in self.written)

    def replaced(self) -> set[str]:
        """The keys of `Step.state()` whose tensor is replaced by each step."""
        return {ref.key for one in self.written for ref in _references(one.items) if isinstance(ref, NextRef)}

    def apply(
        self, live: Mapping[str, Tensor], after: Mapping[str, Tensor], outputs: Sequence[Tensor]
    ) -> dict[str, Tensor]:
        """Leave in the live variables what eager PyTorch would; returns the new tensors, by key.

        Args:
            live: `Step.state()` before the step.
            after: the values after the step, by the same keys.
            outputs: the step's additional outputs.
        """
        made: dict[str, Tensor] = {}

        def resolve(ref: Ref) -> Tensor:
            if isinstance(ref, LiveRef):
                return live[ref.key]
            if isinstance(ref, OutputRef):
                return outputs[ref.place]
            if ref.key not in made:
                made[ref.key] = clone_with_alignment(after[ref.key])
            return made[ref.key]

        memo: dict[int, Any] = {}
        for one in self.written:
            items = tuple([_revived(value, resolve, memo) for value in one.items])
            if isinstance(one.container, DictItems):
                one.container.change(dict(zip(one.keys, items, strict=True)), one.gone)
            else:
                one.container.put(items)
        return made


def clone_with_alignment(tensor: Tensor) -> Tensor:
    """Return a copy with the same strides, whose first element has the same misalignment as the original's."""
    if tensor.numel() == 0:
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
    before = tensor.data_ptr() % _ALIGNMENT // tensor.element_size()
    reach = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    memory = torch.empty(before + reach, dtype=tensor.dtype, device=tensor.device)
    return memory.as_strided(tensor.shape, tensor.stride(), before).copy_(tensor)


def find_effects(
    reach: Reach,
    before: Sequence[tuple[object, ...]],
    reference: Callable[[Tensor], Ref | None],
) -> tuple[tuple[Written, ...], bool]:
    """Find what a traced step has written into the containers that existed before it.

    Args:
        reach: the reach before the step.
        before: by container, its contents before the step, including fake tensors.
        reference: returns the reference that represents a fake tensor; None for a real tensor.

    Returns:
        By container, its contents after the step; and whether an object that existed before moves to another place.

    Raises:
        StowageError: the step left a fake tensor where it cannot be replaced by a real one.
    """
    own = {id(container.target) for container in reach.containers}
    shuffled: list[object] = []
    written: list[Written] = []
    for container, earlier in zip(reach.containers, before, strict=True):
        now = container.contents()
        if len(now) == len(earlier) and all(a is b for a, b in zip(now, earlier, strict=True)):
            continue
        path = container.path
        if isinstance(container, DictItems):
            old = dict(zip(earlier[: len(earlier) // 2], earlier[len(earlier) // 2 :], strict=True))
            changed = {key: item for key, item in dict.items(container.thing) if old.get(key, MISSING) is not item}
            gone = tuple(key for key in old if not dict.__contains__(container.thing, key))
            recipes = tuple(_recipe(item, reference, own, {}, path, shuffled) for item in changed.values())
            written.append(Written(container, recipes, tuple(changed), gone))
        elif isinstance(container, Names | Slots):
            pairs = zip(now, earlier, strict=True)
            recipes = tuple(KEEP if a is b else _recipe(a, reference, own, {}, path, shuffled) for a, b in pairs)
            written.append(Written(container, recipes))
        else:
            known = {id(item) for item in earlier}
            recipes = tuple(
                item if id(item) in known and not isinstance(item, Tensor | tuple)
                else _recipe(item, reference, own, {}, path, shuffled) for item in now
            )  # fmt: skip
            written.append(Written(container, recipes))
    return tuple(written), bool(shuffled)


@dataclass(frozen=True, slots=True)
class _Made:
    """A container or an object that the step creates: an example of its type, and its contents."""

    example: Any
    keys: tuple[Any, ...]
    values: tuple[Any, ...]


def _recipe(
    value: Any,
    reference: Callable[[Tensor], Ref | None],
    own: set[int],
    memo: dict[int, Any],
    path: str,
    shuffled: list[object],
) -> Any:
    def inner(item: Any) -> Any:
        return _recipe(item, reference, own, memo, path, shuffled)

    if isinstance(value, Tensor):
        return reference(value) or value
    if isinstance(value, tuple):
        items = tuple(map(inner, value))
        same = all(a is b for a, b in zip(items, value, strict=True))
        return value if same else _Made(tuple.__new__(type(value)), (), items)
    if id(value) in own:
        shuffled.append(value)
        return value
    if id(value) in memo:
        raise StowageError(f"{path} is given something that holds itself, which a plan cannot follow: keep it flat")
    memo[id(value)] = value
    made: Any = value
    if isinstance(value, list | deque | set):
        made = _Made(_empty(value), (), tuple(map(inner, value)))
    elif isinstance(value, dict):
        made = _Made(_empty(value), tuple(value), tuple(map(inner, value.values())))
    elif not isinstance(value, type | FunctionType | ModuleType) and isinstance(table := _table(value), dict):
        items = tuple(map(inner, table.values()))
        if any(a is not b for a, b in zip(items, table.values(), strict=True)):
            made = _Made(object.__new__(type(value)), tuple(table), items)
    del memo[id(value)]
    return made


def _empty(value: Any) -> Any:
    made = copy.copy(value)
    made.clear()
    return made


def _table(value: Any) -> object:
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None


def _references(contents: Any) -> Any:
    for item in contents:
        if isinstance(item, Ref):
            yield item
        elif isinstance(item, _Made):
            yield from _references(item.values)


def _revived(value: Any, resolve: Callable[[Ref], Tensor], memo: dict[int, Any]) -> Any:
    if isinstance(value, Ref):
        return resolve(value)
    if not isinstance(value, _Made):
        return value
    if id(value) in memo:
        return memo[id(value)]
    items = [_revived(item, resolve, memo) for item in value.values]
    kind = type(value.example)
    made: Any
    if isinstance(value.example, tuple):
        made = tuple.__new__(kind, items)
    elif isinstance(value.example, dict):
        made = copy.copy(value.example)
        made.update(zip(value.keys, items, strict=True))
    elif isinstance(value.example, list | deque):
        made = copy.copy(value.example)
        made.extend(items)
    elif isinstance(value.example, set):
        made = kind(items)
    else:
        made = object.__new__(kind)
        made.__dict__.update(zip(value.keys, items, strict=True))
    memo[id(value)] = made
    return made
