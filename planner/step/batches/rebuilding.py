"""Rebuilding of a batch with other tensors and values, and everything else unchanged."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import torch

from planner.errors import StowageError, given_type
from planner.step.batches.opening import ObjectPart, assembled, fill, mutable, shell
from planner.step.batches.tree import Node, Tree


def rebuilt(
    batch: Any, tensors: Mapping[str, torch.Tensor] | None = None, plain: Mapping[str, Any] | None = None
) -> Any:
    """A batch of the same structure and types, with other leaves; changed parts are not shared with the original.

    Args:
        batch: left unchanged.
        tensors: by name, the replacements of tensors.
        plain: by name, the replacements of plain values, or of lists and tuples without tensors.

    Raises:
        StowageError: an object on the path to a leaf cannot be rebuilt.
    """
    tree = Tree(batch)
    others = {tree.tensors[name]: tensor for name, tensor in (tensors or {}).items()}
    return replaced(tree, {**others, **{tree.plain[name]: value for name, value in (plain or {}).items()}})


def replaced(tree: Tree, others: Mapping[Node, Any]) -> Any:
    """The same, by the nodes of the batch's tree."""
    return _Builder(tree, others).build(tree.root)


class _Builder:
    def __init__(self, tree: Tree, others: Mapping[Node, Any]) -> None:
        self._others = others
        self._on_path = tree.touched(others)
        self._built: dict[Node, Any] = {}

    def build(self, node: Node) -> Any:
        if node in self._others:
            return self._others[node]
        if node in self._built:
            return self._built[node]
        kind = type(node.value)
        if node.kind == "plain" and kind is list:
            return list(node.value)
        if node.kind in ("plain", "tensor") or (node not in self._on_path and kind not in (list, dict)):
            return node.value
        if node.kind == "weak":
            return weakref.ref(self.build(node.children[0][1]))
        if hasattr(kind, "__del__"):
            raise _refusal(node, "cleans up when it is deleted")
        if not mutable(kind):
            return self._build_immutable(node)
        try:
            result = self._built[node] = shell(kind, node.value)
            fill(result, self._parts(node))
        except (TypeError, AttributeError) as error:
            raise _refusal(node, "cannot be made anew") from error
        return result

    def _build_immutable(self, node: Node) -> Any:
        object_parts = self._parts(node)
        try:
            result = assembled(node.value, object_parts)
        except Exception as error:
            raise _refusal(node, "cannot be made anew") from error
        self._built[node] = result
        return result

    def _parts(self, node: Node) -> list[ObjectPart]:
        return [ObjectPart(part.attribute, part.label, self.build(child)) for part, child in node.children]


def _refusal(node: Node, why: str) -> StowageError:
    return StowageError(
        f"{node.name} is {given_type(node.value)}, which {why}: hand over a dict of its tensors instead"
    )
