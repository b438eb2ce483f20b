"""One call of a real kernel with tensors of real values, which can be made again with other values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor

from planner import torch_private as private
from planner.partition.ops import Describer, describe
from planner.partition.tdl import Description, Operand


class KernelCall:
    """An operator with arguments.

    Args:
        target: the overload (`"aten.mm.default"`).
        args, kwargs: its arguments, with tensors of real values.
        fixed: tensors, by their order among the arguments, that must keep their values, because other values would
            be no valid input: places that max-pooling found, or ends of groups, which ascend.
        kernel: what computes the same where the operator has no kernel for the tensors, such as one of a GPU alone.
    """

    def __init__(
        self, target: str, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None, fixed: Sequence[int] = (),
        kernel: Callable[..., Any] | None = None,
    ) -> None:  # fmt: skip
        self.target = target
        self.fixed = frozenset(fixed)
        self._overload = private.overload(target)
        self._kernel = kernel or self._overload
        leaves, self._spec = private.pytree.tree_flatten((tuple(args), dict(kwargs or {})))
        self.tensors: list[Tensor] = []
        self._leaves: list[Any] = []
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                self._leaves.append(leaf)
                continue
            places = [number for number, tensor in enumerate(self.tensors) if tensor is leaf]
            if not places:
                self.tensors.append(leaf)
            self._leaves.append(_TensorPlace(places[0] if places else len(self.tensors) - 1))

    def __str__(self) -> str:
        shapes = ", ".join(str(list(tensor.shape)) for tensor in self.tensors)
        rest = ", ".join(str(leaf) for leaf in self._leaves if not isinstance(leaf, _TensorPlace))
        return f"{self.target} of {shapes or 'nothing'}" + (f" ({rest})" if rest else "")

    def run(self, tensors: Sequence[Tensor] | None = None) -> list[Tensor | None]:
        """Call the kernel on copies, and return its results and then the arguments that it only updates."""
        copies = [tensor.clone() for tensor in (self.tensors if tensors is None else tensors)]
        args, kwargs = private.pytree.tree_unflatten(
            [copies[leaf.number] if isinstance(leaf, _TensorPlace) else leaf for leaf in self._leaves], self._spec
        )
        result = self._kernel(*args, **kwargs)
        results = list(result) if isinstance(result, tuple | list) else [result]
        results = [one if isinstance(one, Tensor) else None for one in results]
        for place in private.mutated_arguments(self._overload, args):
            changed = kwargs.get(place) if isinstance(place, str) else args[place]
            if isinstance(changed, Tensor) and all(changed is not result for result in results):
                results.append(changed)
        return results

    def describe(self, describer: Describer | None = None) -> Description:
        """Describe the call by the registered description of its operator, or by another one."""
        inputs = [
            Operand(f"input {number}", tuple(tensor.shape), number, str(tensor.dtype).removeprefix("torch."))
            for number, tensor in enumerate(self.tensors)
        ]
        args, kwargs = private.pytree.tree_unflatten(
            [inputs[leaf.number] if isinstance(leaf, _TensorPlace) else leaf for leaf in self._leaves], self._spec
        )
        shapes = [None if result is None else tuple(result.shape) for result in self.run()]
        return describe(self.target, args, kwargs, inputs, shapes, describer)


class _TensorPlace:
    """Where a tensor stands among the arguments."""

    def __init__(self, number: int) -> None:
        self.number = number
