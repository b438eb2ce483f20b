"""Matching of batches with the one that a step was captured with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from torch import Tensor

from planner.errors import StowageError
from planner.step import Form, Step, TensorFacts, Tree


class Matcher:
    """Compares batches with the one that a step was captured with, as it was when the matcher was created.

    Args:
        step: the step, just captured.
        unused: names of plain values that the step does not use, which may differ.
        smaller: whether batches with fewer rows are accepted, for which the step is captured again.
        largest: the form of the batch whose rows are the most; that of the step's own if None.
    """

    def __init__(
        self, step: Step, unused: Collection[str] = (), *, smaller: bool = False, largest: Form | None = None
    ) -> None:
        self._step, self._smaller = step, smaller
        self._own = Form(step.materialize().batch)
        self._largest = self._own if largest is None else largest
        self._unused = set(unused)
        self._key = self._own.key(self._unused)

    def renewed(self) -> Matcher:
        """A matcher for the step as it is captured now, whose batches may have as many rows as before."""
        return Matcher(self._step, smaller=self._smaller, largest=self._largest)

    def leaves(self, batch: Any) -> list[Tensor]:
        """The tensors of a batch, in the order of the step's own.

        Raises:
            StowageError: no capture of this step accepts it, since its tensors or their shapes or dtypes differ; the
                message names the first difference.
        """
        tree = Tree(batch)
        given = {name: node.value for name, node in tree.tensors.items()}
        for name in [*self._own.tensors, *given]:
            if name not in given or name not in self._own.tensors:
                has, lacks = ("has no", "has one") if name in self._own.tensors else ("has a", "has none")
                raise StowageError(
                    f"a batch {has} tensor {name} and the step's own batch {lacks}: give batches of the form that the "
                    "step was made with"
                )
        smaller = self._smaller and _has_fewer_rows(self._largest.tensors, given)
        for name, largest in self._largest.tensors.items():
            own = largest._replace(shape=tuple(given[name].shape)) if smaller else largest
            _refuse_unlike(name, own, given[name], smaller_too=self._smaller)
        return [given[name] for name in self._own.tensors]

    def difference(self, batch: Any) -> str:
        """The first difference that requires another capture, in words; empty if the batch matches.

        Args:
            batch: one that `leaves` accepts.
        """
        given = Form(batch)
        return "" if given.key(self._unused) == self._key else self._own.change(given, self._unused)

    def pass_by(self, names: Collection[str]) -> None:
        """Record that the step does not use certain plain values."""
        self._unused.update(names)
        self._key = self._own.key(self._unused)

    def plain_differences(self, batch: Any) -> list[str]:
        """The names of the plain values that differ, if nothing else differs; otherwise empty."""
        given, own = Form(batch), self._own
        if given.key(given.plain) != own.key(own.plain):
            return []
        return [name for name, value in own.plain.items() if name not in self._unused and given.plain[name] != value]


def _has_fewer_rows(own: Mapping[str, TensorFacts], given: Mapping[str, Tensor]) -> bool:
    """Whether tensors differ in the number of rows alone, and all that do in the same way, to fewer."""
    rows = set()
    for name, facts in own.items():
        shape = () if given[name].is_nested else tuple(given[name].shape)
        if shape != facts.shape:
            if not shape or not facts.shape or shape[1:] != facts.shape[1:]:
                return False
            rows.add((facts.shape[0], shape[0]))
    return len(rows) == 1 and all(most > now > 0 for most, now in rows)


def _refuse_unlike(name: str, own: TensorFacts, leaf: Tensor, *, smaller_too: bool) -> None:
    if leaf.is_nested or leaf.layout != own.layout or (leaf.is_meta and own.device.type != "meta"):
        kind = "a nested tensor" if leaf.is_nested else str(leaf.layout)
        kind = "a tensor without data (meta)" if leaf.is_meta else kind
        raise StowageError(f"{name} is {kind} and the step was captured with {own.layout}: give an ordinary tensor")
    if tuple(leaf.shape) != own.shape:
        advice = (
            "only a batch with fewer rows in all tensors may follow: pad it, or make the step with the largest batch"
            if smaller_too
            else "leave out what is smaller (drop_last=True in a DataLoader), pad it, or make a step with such a batch"
        )
        raise StowageError(f"{name} has shape {tuple(leaf.shape)} and the step was captured with {own.shape}: {advice}")
    if leaf.dtype != own.dtype:
        raise StowageError(
            f"{name} has dtype {leaf.dtype} and the step was captured with {own.dtype}: convert it, or make a step "
            "with such a batch"
        )
    if leaf.device != own.device:
        raise StowageError(f"{name} is on {leaf.device} and the step was captured on {own.device}: move it there")
    if leaf.is_conj() or leaf.is_neg():
        raise StowageError(f"{name} is lazily conjugated: give it with .resolve_conj().resolve_neg()")
