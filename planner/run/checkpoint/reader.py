"""Reads a checkpoint for DCP, executing nothing in it, and refusing what has changed since it was written."""

from __future__ import annotations

from collections import defaultdict
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import LoadPlan, LoadPlanner, ReadItem
from torch.futures import Future

from planner.run.checkpoint.checksums import VerifiedFile, noted_checksums
from planner.run.checkpoint.metadata import metadata_bytes, metadata_of, parts_of


class SafeReader(FileSystemReader):
    """Reads a checkpoint of which nothing is executed: DCP itself unpickles the metadata, whatever is in them.

    Args:
        folder: of the checkpoint.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._folder, self._data = folder, metadata_bytes(folder)
        self._metadata = metadata_of(folder, self._data)
        self._checksums: dict[str, str] | None = None

    def verify(self) -> None:
        """Let `read_data` read all files, and refuse the checkpoint if one is not as it was written.

        Raises:
            StowageError: the metadata are not, or it is not said what was written.
        """
        self._checksums = noted_checksums(self._folder, parts_of(self._metadata), self._data)

    def read_metadata(self, *_args: Any, **_kwargs: Any) -> Metadata:
        """The metadata, read once."""
        return self._metadata

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read what is asked for; after `verify`, each file from its first byte to its last."""
        if self._checksums is None:
            return super().read_data(plan, planner)
        by_file: dict[str, list[ReadItem]] = defaultdict(list)
        for item in plan.items:
            by_file[self.storage_data[item.storage_index].relative_path].append(item)
        for name in sorted(self._checksums.keys() | by_file.keys()):
            with VerifiedFile(self._folder / name, self._checksums.get(name, "")) as file:
                for item in sorted(by_file[name], key=lambda item: self.storage_data[item.storage_index].offset):
                    self._read_item(file, item, planner)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def _read_item(self, file: VerifiedFile, item: ReadItem, planner: LoadPlanner) -> None:
        kept = self.storage_data[item.storage_index]
        whole = torch.load(BytesIO(file.part(kept.offset, kept.length)), map_location="cpu", weights_only=True)
        spans = zip(item.storage_offsets, item.lengths, strict=True)
        part = whole[tuple(slice(begin, begin + size) for begin, size in spans)]
        target = planner.resolve_tensor(item).detach()
        if target.shape != part.shape:
            raise ValueError(f"{item.storage_index.fqn} has shape {tuple(part.shape)} where another was noted")
        target.copy_(part)
        planner.commit_tensor(item, target)
