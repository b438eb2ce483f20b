"""A batch taken apart: its tensors and plain values by name, and its structure."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import PackedSequence

from planner.errors import StowageError, given_type
from planner.step.batches.hidden_tensors import holds_tensor
from planner.step.batches.opening import ObjectPart, can_open, mutable, parts, transparent
from planner.step.batches.plain_value_keys import ATOMS, comparable, is_flat_sequence, value_key
from planner.step.batches.poisoned_values import Poison

#: Limits of the number of containers and values, and of their depth; an entry of a list or tuple counts as a hundredth.
_MAX_VALUES, _MAX_DEPTH = 20_000, 100
_ADVICE = "hand over a dict of tensors"


@dataclass(eq=False, slots=True)
class Node:
    """A node of a batch's object graph.

    Args:
        value: the object.
        name: the path to it: `batch/input_ids`.
        kind: `"tensor"`, `"plain"`, `"open"`: taken apart, or `"weak"`: a weak reference.
        children: the parts of an open node, in order; a node may be the child of several.
        parents: the nodes that have this one as a child.
    """

    value: Any
    name: str
    kind: str
    children: list[tuple[ObjectPart, Node]] = field(default_factory=list)
    parents: list[Node] = field(default_factory=list)

    def add(self, part: ObjectPart, child: Node) -> None:
        """Add a child."""
        self.children.append((part, child))
        child.parents.append(self)


class Tree:
    """A batch taken apart.

    Args:
        batch: any object.

    Raises:
        StowageError: something in it has tensors that cannot be reached or put back, or there is too much of it.
    """

    def __init__(self, batch: Any) -> None:
        self.tensors: dict[str, Node] = {}
        self.plain: dict[str, Node] = {}
        #: The structure of the batch without its leaves: for each node its name, its type and the labels of its parts.
        self.structure: list[tuple[str, Any]] = []
        self._open: dict[int, Node] = {}
        self._names: set[str] = set()
        self._weak: list[Node] = []
        self._count = 0.0
        self.root = self._node(batch, "batch", 0)
        for node in self._weak:
            self._link_weak_reference(node)

    def touched(self, leaves: Iterable[Node]) -> set[Node]:
        """Every node from which one of the given nodes can be reached."""
        waiting = list(leaves)
        found = set(waiting)
        while waiting:
            for parent in waiting.pop().parents:
                if parent not in found:
                    found.add(parent)
                    waiting.append(parent)
        return found

    def _node(self, value: Any, name: str, depth: int) -> Node:
        existing = self._open.get(id(value))
        if existing is not None:
            self.structure.append((name, ("as", existing.name)))
            return existing
        self._check_limits(name, depth, value)
        kind = type(value)
        if issubclass(kind, torch.Tensor):
            node = self._leaf(value, name, "tensor", self.tensors)
            self.structure.append((node.name, ("tensor", torch.Tensor if kind.__name__ == "FakeTensor" else kind)))
        elif kind is weakref.ref:
            node = Node(value, self._name(name), "weak")
            self._weak.append(node)
            self.structure.append((node.name, kind))
        elif is_flat_sequence(value) or _is_plain_leaf(value, kind, name):
            node = self._leaf(value, name, "plain", self.plain)
            self.structure.append((node.name, (kind, len(value)) if kind in (list, tuple) else kind))
        else:
            node = self._opened(value, name, depth)
        return node

    def _opened(self, value: Any, name: str, depth: int) -> Node:
        node = Node(value, name, "open")
        if mutable(type(value)):
            self._open[id(value)] = node
        object_parts = parts(value)
        labels = tuple((part.attribute, _label(part, name)) for part in object_parts)
        self.structure.append((name, (type(value), labels)))
        items: dict[str, Node] = {}
        transparent_seen = False
        for part in object_parts:
            if part.attribute and part.label in items and items[part.label].value is part.value:
                node.add(part, items[part.label])  # a ModelOutput also stores its items as attributes
                continue
            if not transparent_seen and transparent(value, part):
                transparent_seen, part_name = True, name
            else:
                part_name = f"{name}/{_label_text(part)}"
            node.add(part, self._node(part.value, part_name, depth + 1))
            if type(part.label) is str and not part.attribute:
                items[part.label] = node.children[-1][1]
        return node

    def _leaf(self, value: Any, name: str, kind: str, among: dict[str, Node]) -> Node:
        node = Node(value, self._name(name), kind)
        among[node.name] = node
        return node

    def _name(self, name: str) -> str:
        """The name, or a variant if it is taken, as `a/b` and `b` in `a` have the same."""
        unique, number = name, 1
        while unique in self._names:
            number += 1
            unique = f"{name} ({number})"
        self._names.add(unique)
        return unique

    def _link_weak_reference(self, node: Node) -> None:
        """Link a weak reference to its target in the batch, so that a rebuilt one refers to the replacement."""
        target = node.value()
        if target is not None and id(target) in self._open:
            node.add(ObjectPart(False, "", target), self._open[id(target)])
        elif target is not None and holds_tensor(target):
            raise _refusal(node.name, target, "is held by a weak reference alone")
        else:
            node.kind = "plain"
            self.plain[node.name] = node

    def _check_limits(self, name: str, depth: int, value: Any) -> None:
        self._count += 1 + (len(value) / 100 if type(value) in (list, tuple) else 0)
        if depth > _MAX_DEPTH:
            raise StowageError(f"the batch is nested more than {_MAX_DEPTH} deep: {_ADVICE}")
        if self._count > _MAX_VALUES:
            raise StowageError(
                f"the batch has more than {_MAX_VALUES:,} values that are not tensors, up to {name}: {_ADVICE}, "
                "without what the step does not need"
            )


def _is_plain_leaf(value: Any, kind: type, name: str) -> bool:
    """Whether a value is a plain leaf."""
    if kind in ATOMS or issubclass(kind, Poison):
        return True
    if issubclass(kind, torch.nn.Module):
        raise StowageError(
            f"{name} is a module ({kind.__name__}), whose tensors are no part of a batch: make it a submodule of the "
            "model, or let the loss refer to it"
        )
    if issubclass(kind, PackedSequence):
        raise StowageError(
            f"{name} is a PackedSequence, whose lengths are values that a plan cannot follow: hand over the padded "
            "tensor (torch.nn.utils.rnn.pad_packed_sequence) and mask the loss"
        )
    if kind in weakref.ProxyTypes:
        raise _refusal(name, value, "is a weak proxy")
    if hasattr(kind, "__next__"):
        raise _refusal(name, value, "gives its values once")
    if issubclass(kind, np.ndarray) and not comparable(kind):
        raise _refusal(name, value, "is a NumPy array with more than its values")
    if comparable(kind):
        if issubclass(kind, np.ndarray) and value.dtype.hasobject and holds_tensor(value.ravel().tolist()):
            raise _refusal(name, value, "holds tensors")
        return True
    if can_open(kind) and not (issubclass(kind, tuple(ATOMS - {type(None)}))):
        return False
    if holds_tensor(value):
        raise _refusal(name, value, "holds tensors that cannot be reached, or more than can be looked through")
    return True


def _refusal(name: str, value: Any, why: str) -> StowageError:
    return StowageError(f"{name} is {given_type(value)}, which {why}: {_ADVICE} instead")


def _label(part: ObjectPart, name: str) -> Any:
    label = part.label
    if not comparable(type(label)) and holds_tensor(label):
        raise StowageError(f"{name} has a tensor in one of its keys: {_ADVICE} whose keys are text")
    return value_key(label, name)


def _label_text(part: ObjectPart) -> str:
    label = part.label
    if type(label) in (str, int):
        return str(label)[:80]
    if type(label) in ATOMS:
        return repr(label)[:80]
    return type(label).__name__
