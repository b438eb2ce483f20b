"""Batches in the place of the one that a step was captured with."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch import Tensor

from planner.capture.batches import leaf_names, tensor_leaves
from planner.capture.program import Program
from planner.capture.step import Step
from planner.capture.torch_private import pytree
from planner.errors import StowageError
from planner.graph import Graph


class Matcher:
    """Holds batches against the one that a step was captured with.

    Args:
        step: the step.
        graph: as it was captured.
    """

    def __init__(self, step: Step, graph: Graph) -> None:
        batch = step.materialize().batch
        self._own = dict(zip(leaf_names(batch), tensor_leaves(batch), strict=True))
        self._plain = _plain_leaves(batch)
        program: Program = graph.program
        storages = [graph.tensors[tensor].storage for tensor in program.batch]
        of_leaf = dict(zip(self._own, storages, strict=True))
        self._sharing = [(a, b) for a, b in combinations(self._own, 2) if of_leaf[a] == of_leaf[b]]

    def leaves(self, batch: Any) -> list[Tensor]:
        """The tensors of a batch, in the order of the step's own.

        Raises:
            StowageError: it is another one than the step was captured with; the sentence names the first difference.
        """
        given = dict(zip(leaf_names(batch), tensor_leaves(batch), strict=True))
        for name in [*self._own, *given]:
            if name not in given or name not in self._own:
                has, lacks = ("has no", "has one") if name in self._own else ("has a", "has none")
                raise StowageError(
                    f"a batch {has} tensor {name} and the step's own batch {lacks}: give batches of the form that the "
                    "step was made with"
                )
        for name, own in self._own.items():
            leaf = given[name]
            if leaf.shape != own.shape:
                raise StowageError(
                    f"{name} has shape {tuple(leaf.shape)} and the step was captured with {tuple(own.shape)}: leave "
                    "out what is smaller (drop_last=True in a DataLoader), pad it, or make a step with such a batch"
                )
            if leaf.dtype != own.dtype:
                raise StowageError(
                    f"{name} has dtype {leaf.dtype} and the step was captured with {own.dtype}: convert it, or make a "
                    "step with such a batch"
                )
            if leaf.is_meta or leaf.layout != own.layout:
                kind = "a tensor without data (meta)" if leaf.is_meta else f"{leaf.layout}"
                raise StowageError(
                    f"{name} is {kind} and the step was captured with {own.layout}: give an ordinary tensor"
                )
        plain = _plain_leaves(batch)
        for name in {**self._plain, **plain}:
            if name in plain and name in self._plain and _equal(plain[name], self._plain[name]):
                continue
            if isinstance(plain.get(name, self._plain.get(name)), np.ndarray):
                raise StowageError(
                    f"{name} is a NumPy array, which stays as the step was captured with it, and it differs: make the "
                    "step with a tensor in its place, and give tensors (torch.from_numpy)"
                )
            raise StowageError(
                f"{name} is a value that the step was captured with, and it differs: leave it as it was, "
                "or make a step with such a batch"
            )
        self._refuse_unlike(given)
        return [given[name] for name in self._own]

    def _refuse_unlike(self, given: dict[str, Tensor]) -> None:
        """Tensors that share memory in the step's own batch have one place in the plan."""
        for a, b in self._sharing:
            ours, theirs = (self._own[a], self._own[b]), (given[a], given[b])
            together = _apart(*ours) == _apart(*theirs) and all(
                own.stride() == leaf.stride() for own, leaf in zip(ours, theirs, strict=True)
            )
            alike = _apart(*ours) == 0 and ours[0].stride() == ours[1].stride() and torch.equal(*theirs)
            if not together and not alike:
                raise StowageError(
                    f"{a} and {b} share memory in the step's own batch and differ in this one: make the step with a "
                    "batch in which each has its own, for example by clone()"
                )


def _apart(a: Tensor, b: Tensor) -> int:
    return b.data_ptr() - a.data_ptr()


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return a is b or (type(a) is type(b) and bool(a == b))


def _plain_leaves(batch: Any) -> dict[str, Any]:
    """What is no tensor in a batch, by name."""
    return dict(_named(batch))


def _named(batch: Any) -> Iterator[tuple[str, Any]]:
    leaves = pytree.tree_leaves(batch)
    marked = pytree.tree_map(lambda _: torch.empty(0), batch)
    for name, leaf in zip(leaf_names(marked), leaves, strict=True):
        if not isinstance(leaf, Tensor):
            yield name, leaf
