"""One worker's part of a checkpoint: what it owns, written to a file of its own."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributed.checkpoint.filesystem import FileSystemWriter
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, Metadata, MetadataIndex, TensorProperties
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner, TensorWriteData, WriteItem, WriteItemType
from torch.distributed.checkpoint.storage import WriteResult

from planner.partition import PartBox
from planner.run.checkpoint.checksums import ChecksummedFiles
from planner.run.checkpoint.metadata import unpickled


@dataclass(frozen=True, slots=True)
class OwnedBox:
    """A box of a tensor that one worker alone writes.

    Args:
        key: of the tensor, in `Step.state()`.
        shape: of all of it.
        box: which part of it.
    """

    key: str
    shape: tuple[int, ...]
    box: PartBox


@dataclass(frozen=True)
class WrittenPart:
    """What was written by one worker, or by all of them together.

    Args:
        results: what a checkpoint's metadata need to say where each box is.
        checksums: of the files, by name.
    """

    results: list[WriteResult] = field(default_factory=list)
    checksums: dict[str, str] = field(default_factory=dict)

    def __add__(self, other: WrittenPart) -> WrittenPart:
        """Both."""
        return WrittenPart(self.results + other.results, self.checksums | other.checksums)

    def to_bytes(self) -> bytes:
        """This, for `from_bytes`."""
        return pickle.dumps((self.results, self.checksums))

    @staticmethod
    def from_bytes(data: bytes) -> WrittenPart:
        """What another process has written; nothing that came instead is executed."""
        return WrittenPart(*unpickled(data))


class PartPlanner(SavePlanner):
    """Writes boxes of tensors that are not whole here.

    Args:
        owned: what to write.
        parts: by key, the tensors that the boxes are parts of.
        names: by key, what tensors are called in the checkpoint.
    """

    def __init__(self, owned: Sequence[OwnedBox], parts: Mapping[str, Tensor], names: Mapping[str, str]) -> None:
        self._owned = {MetadataIndex(names[each.key], each.box.offsets): each for each in owned}
        self._parts = parts

    def set_up_planner(self, *_args: Any, **_kwargs: Any) -> None:
        """There is nothing to set up."""

    def create_local_plan(self) -> SavePlan:
        """An item for each box."""
        return SavePlan([self._item(index, each) for index, each in self._owned.items()])

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """As it is: who writes what was decided before."""
        return all_plans, Metadata({})

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """As it is."""
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> Tensor:
        """A box, as a view."""
        return box_of(self._owned[write_item.index], self._parts)

    def _item(self, index: MetadataIndex, owned: OwnedBox) -> WriteItem:
        chunk = ChunkStorageMetadata(torch.Size(owned.box.offsets), torch.Size(owned.box.sizes))
        properties = TensorProperties(self._parts[owned.key].dtype)
        data = TensorWriteData(chunk, properties, torch.Size(owned.shape))
        return WriteItem(index, WriteItemType.SHARD, tensor_data=data)


def box_of(owned: OwnedBox, parts: Mapping[str, Tensor]) -> Tensor:
    """A box, as a view of the part that has it."""
    places = zip(owned.box.local_offsets, owned.box.sizes, strict=True)
    return parts[owned.key].detach()[tuple(slice(first, first + size) for first, size in places)]


def write_part(
    folder: Path, writer: int, owned: Sequence[OwnedBox], parts: Mapping[str, Tensor], names: Mapping[str, str]
) -> WrittenPart:
    """Write what a worker owns to a file of its own, and wait until it is on the disk.

    Args:
        folder: exists.
        writer: the number of the worker; files are called by it.
        owned: what to write.
        parts: by key, the tensors that these are boxes of.
        names: by key, what tensors are called in the checkpoint.

    Raises:
        OSError, RuntimeError: the files cannot be written.
    """
    planner, storage = PartPlanner(owned, parts, names), FileSystemWriter(folder)
    storage.fs = files = ChecksummedFiles()
    plans = [SavePlan([]) for _ in range(writer)]
    plan = storage.prepare_global_plan([*plans, planner.create_local_plan()])[writer]
    results = list(storage.write_data(plan, planner).wait())
    return WrittenPart(results, files.checksums)
