"""Builds a graph one storage, tensor and op at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from planner.graph.types import Graph, Kind, Op, Phase, Storage, Tensor

_CONTIGUOUS: Sequence[int] = ()


@dataclass
class GraphBuilder:
    """Collects the parts of a graph; every `add_` returns the id of what it added."""

    name: str
    storages: list[Storage] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    modules: dict[str, str] = field(default_factory=dict)

    def add_storage(self, name: str, size: int, kind: Kind) -> int:
        """Add a storage of `size` bytes."""
        self.storages.append(Storage(len(self.storages), name, size, kind))
        return len(self.storages) - 1

    def add_tensor(
        self,
        name: str,
        storage: int,
        shape: Sequence[int],
        *,
        strides: Sequence[int] = _CONTIGUOUS,
        offset: int = 0,
        dtype: str = "float32",
        base: int = -1,
        view: str = "",
        attributes: str = "",
    ) -> int:
        """Add a tensor; without `strides` it is contiguous."""
        if not strides and shape:
            strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
        identity = len(self.tensors)
        self.tensors.append(
            Tensor(identity, name, storage, tuple(shape), tuple(strides), offset, dtype, base, view, attributes)
        )
        return identity

    def add_op(
        self,
        name: str,
        target: str,
        inputs: Iterable[int],
        outputs: Iterable[int],
        *,
        attributes: str = "",
        phase: Phase = Phase.FORWARD,
        module: str = "",
        source: str = "",
        flops: int = 0,
        moved: int = 0,
        random: bool = False,
        overwrites: Iterable[int] = (),
        first_run_only: Iterable[int] = (),
        draws_as: int = -1,
    ) -> int:
        """Add an op; `moved` is its memory traffic in bytes."""
        op = Op(
            len(self.ops), name, target, tuple(inputs), tuple(outputs), attributes, phase, module, source,
            flops, moved, random, tuple(overwrites), first_run_only=tuple(first_run_only), draws_as=draws_as,
        )  # fmt: skip
        self.ops.append(op)
        return op.id

    def set_kind(self, storage: int, kind: Kind) -> None:
        """Change the kind of a storage, once it is known."""
        self.storages[storage] = replace(self.storages[storage], kind=kind)

    def build(self, outputs: Iterable[int] = ()) -> Graph:
        """The finished graph; `outputs` are the tensors the step returns."""
        return Graph(
            self.name, tuple(self.ops), tuple(self.tensors), tuple(self.storages), tuple(outputs), dict(self.modules)
        )
