"""The folder that all ranks write their parts of checkpoints to, on a file system that their hosts share."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import uuid4

import torch
from torch import Tensor

from planner.errors import StowageError
from planner.run.checkpoint import names
from planner.run.checkpoint.folder import CheckpointFolder
from planner.run.checkpoint.load import folder_for
from planner.run.checkpoint.part import OwnedBox, WrittenPart
from planner.run.workers.launch.ranks import Ranks
from planner.run.workers.launch.shared_work import at_each, at_first
from planner.step import Step

_MARK = "seen"
#: Until what rank 0 has made is there on other hosts, whose systems remember for a while what was not.
_SEEN_SECONDS = 5.0
_LOOK_SECONDS = 0.02


class RankFolder:
    """As `CheckpointFolder`, which rank 0 has; all ranks call everything together, and get the same errors.

    Args:
        path: the same on every host.
        step: whose state is written.
    """

    def __init__(self, path: Path, step: Step) -> None:
        self.path, self._step = path, step
        self._ranks: Ranks
        self._folder: CheckpointFolder | None = None

    def open(self, ranks: Ranks) -> None:
        """Make the folder, if that is not done.

        Args:
            ranks: all of them.

        Raises:
            StowageError: it cannot be written to, or has something else in it.
        """
        self._ranks = ranks

        def make() -> None:
            self._folder = self._folder or folder_for(self._step, self.path)

        at_first(ranks, make)

    def is_due(self, here: bool) -> bool:
        """Whether to write; rank 0 decides."""
        return bool(at_first(self._ranks, lambda: here))

    def begin(self, steps: int) -> Path:
        """A new folder for the parts of the checkpoint after so many steps; as `CheckpointFolder.begin`.

        Raises:
            OSError, StowageError: it cannot be made, or a rank does not see it.
        """

        def make() -> tuple[str, str]:
            assert self._folder is not None
            parts, mark = self._folder.begin(steps), uuid4().hex
            (parts / _MARK).write_text(mark)
            return parts.name, mark

        name, mark = at_first(self._ranks, make)
        parts = self.path / str(name)
        at_each(self._ranks, lambda: self._see(parts / _MARK, mark))
        at_first(self._ranks, (parts / _MARK).unlink)
        return parts

    def end(self) -> None:
        """Let others write to the folder again."""
        if self._folder is not None:
            self._folder.end()

    def commit(
        self, parts: Path, owned: Sequence[Sequence[OwnedBox]], found: WrittenPart, whole: Mapping[str, Tensor],
        dtypes: Mapping[str, torch.dtype], places: Mapping[str, names.Place], aliases: Mapping[names.Place, str],
    ) -> None:  # fmt: skip
        """Let a checkpoint take the place of the one before; as `CheckpointFolder.commit`."""

        def commit() -> None:
            assert self._folder is not None
            self._folder.commit(parts, owned, found, whole, dtypes, places, aliases)

        at_first(self._ranks, commit)

    def discard(self, parts: Path) -> None:
        """Remove parts that were not all written."""
        if self._folder is not None:
            self._folder.discard(parts)

    def _see(self, mark: Path, content: str) -> None:
        """Refuse a folder that is another one at this rank than at rank 0."""
        until = time.monotonic() + _SEEN_SECONDS
        while not (mark.exists() and mark.read_text() == content):
            if time.monotonic() > until:
                raise StowageError(
                    f"rank {self._ranks.rank} does not see what rank 0 writes to {self.path}: choose a folder on a "
                    "file system that all hosts share"
                )
            time.sleep(_LOOK_SECONDS)
