"""The folder of a checkpoint: a new one takes the place of the one before in a single rename."""

from __future__ import annotations

import fcntl
import os
import pickle
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)

from planner.cancel import uninterrupted
from planner.errors import StowageError
from planner.partition import PartBox
from planner.run.checkpoint import names
from planner.run.checkpoint.checksums import checksum_of, write_checksums
from planner.run.checkpoint.metadata import (
    METADATA,
    metadata_bytes,
    metadata_of,
    parts_of,
    sync_folder,
    write_metadata,
)
from planner.run.checkpoint.part import OwnedBox, WrittenPart, write_part

_PARTS = re.compile(r"step-\d+(\.\d+)?")
_VERSION = "1.0.0"


class CheckpointFolder:
    """Where the files of one checkpoint after another go; the last complete one is always there.

    All parts of a checkpoint are files of a folder in it, and its metadata name them. Those are renamed into place when
    all parts are on the disk, and only then are the parts of the one before removed.

    Args:
        path: is made if it is not there.

    Raises:
        StowageError: it cannot be written to, or has other files in it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=path):
                pass
            others = [each.name for each in path.iterdir() if not _ours(each.name)]
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise StowageError(f"no checkpoint can be written to {path}: {why}; choose another folder") from error
        if others:
            raise StowageError(f"{path} has other files in it, such as {min(others)}; choose another folder")
        self._lock: int | None = None
        self._known = self._checksum()

    def has_checkpoint(self) -> bool:
        """Whether there is one."""
        return (self.path / METADATA).exists()

    def is_due(self, here: bool) -> bool:
        """Whether to write, where this process alone decides that."""
        return here

    def begin(self, steps: int) -> Path:
        """A new folder for the parts of the checkpoint after so many steps; no other run writes here until `end`.

        Raises:
            OSError: it cannot be made.
            StowageError: another run writes to the folder.
        """
        self._own()
        self._remove_all_but(self._present())
        for number in range(len(list(self.path.iterdir())) + 1):
            parts = self.path / (f"step-{steps}.{number}" if number else f"step-{steps}")
            with suppress(FileExistsError):
                parts.mkdir()
                return parts
        raise FileExistsError(f"{self.path} cannot be cleared")

    def end(self) -> None:
        """Let others write to the folder again."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def commit(
        self, parts: Path, owned: Sequence[Sequence[OwnedBox]], found: WrittenPart, whole: Mapping[str, Tensor],
        dtypes: Mapping[str, torch.dtype], places: Mapping[str, names.Place], aliases: Mapping[names.Place, str],
    ) -> None:  # fmt: skip
        """Write what no worker has, and let a checkpoint take the place of the one before.

        Args:
            parts: as `begin` gave it; all files of the workers are on the disk.
            owned: per worker, the boxes that it has written.
            found: what all workers have written.
            whole: by key, what none of them has.
            dtypes: of all tensors, by key.
            places: by key, where tensors are in nested dictionaries.
            aliases: further places, and the keys of what is there.

        Raises:
            OSError, RuntimeError: it cannot be written; the one before is still there.
        """
        tensors: dict[str, Any] = {}
        own = _whole_boxes(whole)
        found += write_part(parts, len(owned), own, whole, {key: names.name_of(places[key]) for key in whole})
        for each in [*chain.from_iterable(owned), *own]:
            empty = TensorStorageMetadata(TensorProperties(dtypes[each.key]), torch.Size(each.shape), [])
            chunk = ChunkStorageMetadata(torch.Size(each.box.offsets), torch.Size(each.box.sizes))
            tensors.setdefault(names.name_of(places[each.key]), empty).chunks.append(chunk)
        storage = {}
        for result in found.results:
            info = result.storage_data
            storage[result.index] = replace(info, relative_path=f"{parts.name}/{info.relative_path}")
        paths = {names.name_of(path): path for path in places.values()}
        for path, key in aliases.items():
            name, known = names.name_of(path), names.name_of(places[key])
            tensors[name], paths[name] = tensors[known], path
            for chunk in tensors[known].chunks:
                storage[MetadataIndex(name, chunk.offsets)] = storage[MetadataIndex(known, chunk.offsets)]
        data = pickle.dumps(Metadata(tensors, paths, storage, StorageMeta(str(self.path.name)), _VERSION))
        write_checksums(parts, data, found.checksums)
        sync_folder(parts)
        sync_folder(self.path)
        with uninterrupted():  # or this run's own checkpoint would be taken for another's
            self._known = checksum_of(data)
            write_metadata(self.path, data)
        self._remove_all_but({parts.name})

    def discard(self, parts: Path) -> None:
        """Remove parts that were not all written; those of the checkpoint that is there stay, whatever failed later."""
        self._known = self._checksum()
        if parts.name not in self._present():
            shutil.rmtree(parts, ignore_errors=True)

    def _own(self) -> None:
        lock = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise self._shared() from None
        self._lock = lock
        if self._checksum() != self._known:
            self.end()
            raise self._shared()

    def _shared(self) -> StowageError:
        return StowageError(f"another run writes checkpoints to {self.path}; give each run a folder of its own")

    def _checksum(self) -> str:
        """Of the metadata that are there; empty if there are none."""
        return checksum_of(metadata_bytes(self.path)) if self.has_checkpoint() else ""

    def _present(self) -> set[str]:
        """The folders of parts that the metadata name."""
        if not self.has_checkpoint():
            return set()
        return parts_of(metadata_of(self.path, metadata_bytes(self.path)))

    def _remove_all_but(self, kept: Iterable[str]) -> None:
        for each in self.path.iterdir():
            if _PARTS.fullmatch(each.name) and each.name not in kept:
                shutil.rmtree(each, ignore_errors=True)


def _whole_boxes(tensors: Mapping[str, Tensor]) -> list[OwnedBox]:
    """Tensors, by key, that one process has and writes whole."""
    found = []
    for key, value in tensors.items():
        shape, begin = tuple(value.shape), (0,) * value.dim()
        found.append(OwnedBox(key, shape, PartBox(begin, begin, shape)))
    return found


def _ours(name: str) -> bool:
    return name in (METADATA, f"{METADATA}.tmp") or bool(_PARTS.fullmatch(name))
