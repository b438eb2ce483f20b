"""The dataflow graph of one step: ops, the tensors they read and write, and the storages that hold those.

Only storages take memory; tensors are views of them. A storage is created by one op, or exists when the
step starts (`Storage.live_in`). An op whose output is in a storage that already exists updates it in place:
that is how parameters are updated. Dependencies follow from which ops read and write each storage, in captured
order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Any


class Kind(StrEnum):
    """What a storage is for."""

    PARAMETER = "parameter"
    BUFFER = "buffer"
    OPTIMIZER_STATE = "optimizer_state"
    INPUT = "input"
    ACTIVATION = "activation"
    GRADIENT = "gradient"
    WORKSPACE = "workspace"
    OUTPUT = "output"


#: Kinds that persist from one step to the next.
PERSISTENT = frozenset({Kind.PARAMETER, Kind.BUFFER, Kind.OPTIMIZER_STATE})


class Phase(StrEnum):
    """The part of a step an op belongs to."""

    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"


@dataclass(frozen=True, slots=True)
class Storage:
    """A block of memory, in bytes; all tensors that share it are views of each other."""

    id: int
    name: str
    bytes: int
    kind: Kind

    @property
    def persistent(self) -> bool:
        """Whether its contents outlive the step, and so must be valid again at its end."""
        return self.kind in PERSISTENT

    @property
    def live_in(self) -> bool:
        """Whether it exists before the step's first op."""
        return self.persistent or self.kind is Kind.INPUT


@dataclass(frozen=True, slots=True)
class Tensor:
    """One value: a strided view of a storage.

    `strides` and `offset` count elements. `base` is the tensor this one is a view of, or -1; `view` then names
    the view op (`aten.t.default`) and `attributes` holds its other arguments as text.
    """

    id: int
    name: str
    storage: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: str
    base: int = -1
    view: str = ""
    attributes: str = ""


@dataclass(frozen=True, slots=True)
class Op:
    """One kernel call.

    `inputs` and `outputs` are tensors in argument order. `attributes` is the argument list as text with `$0`, `$1`, ...
    for the inputs (and `^0` for an output that is written in place without being read), so that `target`, `attributes`
    and the tensors' layouts fully determine what is computed.
    `overwrites` lists the inputs whose buffer the first output may reuse, exactly and in full, with the same bits.
    `bytes` is memory traffic, `flops` arithmetic; `workspace` is the storage of its scratch memory, or -1.
    A plan may run an op more than once in a step, to make values again. `first_run_only` lists storages that it updates
    beside its results (the running statistics of a batch normalisation): its results do not depend on them, and only
    its first run in a step reads and writes them.
    `draws_as` is the earlier op whose random numbers a random op draws once more, as `torch.utils.checkpoint` has it in
    the backward pass; -1 if it continues from the last op that draws numbers of its own.
    """

    id: int
    name: str
    target: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attributes: str = ""
    phase: Phase = Phase.FORWARD
    module: str = ""
    source: str = ""
    flops: int = 0
    bytes: int = 0
    random: bool = False
    overwrites: tuple[int, ...] = ()
    workspace: int = -1
    first_run_only: tuple[int, ...] = ()
    draws_as: int = -1

    @property
    def drawn_first_by(self) -> int:
        """The op that draws the numbers of a random op first in captured order, which may be the op itself."""
        return self.id if self.draws_as < 0 else self.draws_as


@dataclass(frozen=True, eq=False)
class Graph:
    """A whole step as ops in captured order.

    Args:
        name: what was captured, for titles (`"wresnet:depth=50"`).
        ops, tensors, storages: each entry's `id` is its position.
        outputs: tensors the step returns, the loss first; they are valid when the step ends.
        modules: class name by module path; the root's path is `""`.
        device: PyTorch's name of the type of device that it was captured for.
        approximate: whether it was captured without such a device, whose kernels may keep other bytes.
        outside_bytes: the most device memory that is taken outside of a plan's arena at once: by the scratch memory of
            an op, and by what libraries keep; where scratch memory lies there, ops have no workspaces.
        program: the executable program; never written to a file, pickled or copied with the graph.
    """

    name: str
    ops: tuple[Op, ...]
    tensors: tuple[Tensor, ...]
    storages: tuple[Storage, ...]
    outputs: tuple[int, ...] = ()
    modules: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    device: str = "cpu"
    approximate: bool = False
    program: Any = field(default=None)
    outside_bytes: int = 0

    def __repr__(self) -> str:
        """One line, because a notebook would print the default repr, which can reach megabytes."""
        phases = Counter(op.phase for op in self.ops)
        split = ", ".join(f"{phases[phase]:,} {phase}" for phase in Phase if phases[phase])
        return f"<Graph of {self.name}: {len(self.ops):,} ops ({split}), {len(self.tensors):,} tensors>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy without the program, as files are written, because it belongs to a live step."""
        return Graph, (
            self.name, self.ops, self.tensors, self.storages, self.outputs, dict(self.modules), self.device,
            self.approximate, None, self.outside_bytes,
        )  # fmt: skip

    @cached_property
    def reads(self) -> tuple[tuple[int, ...], ...]:
        """Per op, the storages it reads, each once, in argument order."""
        return tuple(self._storages_of(op.inputs) for op in self.ops)

    @cached_property
    def writes(self) -> tuple[tuple[int, ...], ...]:
        """Per op, the storages it creates or updates, each once; its workspace is not among them."""
        return tuple(self._storages_of(op.outputs) for op in self.ops)

    @cached_property
    def reads_again(self) -> tuple[tuple[int, ...], ...]:
        """Per op, the storages that it reads when it runs again in a step: all of `reads` but `Op.first_run_only`."""
        return self._without_first_run_only(self.reads)

    @cached_property
    def writes_again(self) -> tuple[tuple[int, ...], ...]:
        """Per op, the storages that it writes when it runs again in a step: all of `writes` but `Op.first_run_only`."""
        return self._without_first_run_only(self.writes)

    @cached_property
    def dependencies(self) -> tuple[tuple[int, ...], ...]:
        """Per op, the earlier ops it follows: writers of what it reads, and readers and writers of what it writes."""
        writer: dict[int, int] = {}
        readers: dict[int, list[int]] = {}
        result = []
        for op, reads, writes in zip(self.ops, self.reads, self.writes, strict=True):
            before = {writer[s] for s in (*reads, *writes) if s in writer}
            for storage in writes:
                before.update(readers.get(storage, ()))
            before.discard(op.id)
            result.append(tuple(sorted(before)))
            for storage in reads:
                readers.setdefault(storage, []).append(op.id)
            for storage in writes:
                writer[storage] = op.id
                readers[storage] = []
        return tuple(result)

    @cached_property
    def output_storages(self) -> frozenset[int]:
        """The storages of the tensors that the step returns."""
        return frozenset(self.tensors[tensor].storage for tensor in self.outputs)

    def bytes_of(self, kinds: Iterable[Kind]) -> int:
        """Total bytes of all storages of these kinds, whenever they are alive."""
        wanted = frozenset(kinds)
        return sum(storage.bytes for storage in self.storages if storage.kind in wanted)

    def workspace_bytes(self, op: int) -> int:
        """Bytes of scratch memory that an op needs while it runs."""
        workspace = self.ops[op].workspace
        return 0 if workspace < 0 else self.storages[workspace].bytes

    def with_workspaces(self, needed: Mapping[int, int]) -> Graph:
        """The same graph with the scratch memory of its ops replaced by `needed`, bytes by op.

        Workspaces follow all other storages, so the ids of the others never change.
        """
        present = {op.id: op.workspace for op in self.ops if op.workspace >= 0}
        last = range(len(self.storages) - len(present), len(self.storages))
        if [*present.values()] == [*last] and {op: self.workspace_bytes(op) for op in present} == needed:
            return self  # with what is known of it, such as its fingerprint
        storages = [storage for storage in self.storages if storage.kind is not Kind.WORKSPACE]
        ops = []
        for op in self.ops:
            workspace = -1
            if needed.get(op.id, 0) > 0:
                workspace = len(storages)
                storages.append(Storage(workspace, f"{op.name}/workspace", needed[op.id], Kind.WORKSPACE))
            ops.append(op if op.workspace == workspace else replace(op, workspace=workspace))
        return replace(self, ops=tuple(ops), storages=tuple(storages))

    def with_scratch_outside(self, needed: Mapping[int, int], kept: int = 0) -> Graph:
        """The same graph with the scratch memory of its ops outside of a plan's arena.

        One op runs after the other, so they take as much as the one that needs most; no less than this graph says
        already, which is what capturing knows of.

        Args:
            needed: bytes by op.
            kept: bytes that libraries keep between ops in addition.
        """
        outside = max(self.outside_bytes, max(needed.values(), default=0) + kept)
        return replace(self.with_workspaces({}), outside_bytes=outside)

    def _without_first_run_only(self, touched: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
        return tuple(
            tuple(storage for storage in storages if storage not in op.first_run_only)
            if op.first_run_only
            else storages
            for op, storages in zip(self.ops, touched, strict=True)
        )

    def _storages_of(self, tensors: Iterable[int]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(self.tensors[tensor].storage for tensor in tensors))
