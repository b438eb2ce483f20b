"""What a step returns: tensors, and how those beside the loss are put together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from planner import torch_private as private
from planner.errors import StowageError, given_type

_ADVICE = "return a tensor, a tuple, a list or a dict of tensors"


@dataclass(frozen=True)
class ExtrasForm:
    """How tensors that a loss returns beside its value are put together.

    Args:
        names: of the tensors in order, as one would write it: `"extras['accuracy']"`.
        structure: without the tensors.
    """

    names: tuple[str, ...]
    structure: Any

    def rebuilt(self, tensors: Sequence[torch.Tensor]) -> Any:
        """The extras with these tensors, in the order of `names`."""
        return private.pytree.tree_unflatten(list(tensors), self.structure)


class Outputs(tuple[torch.Tensor, ...]):
    """What a step returns: the loss and the tensors of its extras, or for inference the outputs."""

    form: ExtrasForm | None

    def __new__(cls, tensors: Iterable[torch.Tensor], form: ExtrasForm | None = None) -> Outputs:
        """What a step returns.

        Args:
            tensors: in order.
            form: of the extras; None if there are none.
        """
        made = super().__new__(cls, tensors)
        made.form = form
        return made

    @property
    def extras(self) -> Any:
        """What the loss returned beside its value; None if that was nothing."""
        return None if self.form is None else self.form.rebuilt(self[1:])


def taken_apart(extras: Any) -> tuple[list[torch.Tensor], ExtrasForm]:
    """The tensors in what a loss returns beside its value, and how they are put together.

    Raises:
        StowageError: something in it is no ordinary tensor.
    """
    leaves, structure = private.pytree.tree_flatten(extras)
    names = _names(extras, len(leaves))
    for name, leaf in zip(names, leaves, strict=True):
        if not isinstance(leaf, torch.Tensor):
            raise StowageError(
                f"the loss returns {name} as {given_type(leaf)}, which a plan cannot follow from step to step: "
                f"{_ADVICE}, without .item()"
            )
        if leaf.layout is not torch.strided or leaf.is_nested:
            raise StowageError(f"the loss returns {name} as a tensor with layout {leaf.layout}: return a dense tensor")
    return leaves, ExtrasForm(names, structure)


def _names(extras: Any, count: int) -> tuple[str, ...]:
    try:
        found, _ = private.pytree.tree_flatten_with_path(extras)
    except ValueError:  # a container registered without names of its parts, as those of transformers are
        return tuple(f"leaf {number} of extras" for number in range(count))
    return tuple(f"extras{private.pytree.keystr(path)}" for path, _ in found)
