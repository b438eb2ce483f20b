"""Checksums of the files of a checkpoint, so that damaged numbers are refused and not loaded."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from planner.errors import StowageError

#: Beside the parts of a checkpoint.
CHECKSUMS = "checksums.json"


def checksum_of(data: bytes) -> str:
    """Of some bytes."""
    return hashlib.blake2b(data).hexdigest()


def write_checksums(parts: Path, metadata: bytes) -> None:
    """Note the checksums of all files of a checkpoint, and of its metadata, and wait until they are on the disk.

    Args:
        parts: the folder of its parts.
        metadata: as they will be written.

    Raises:
        OSError: a part cannot be read, or the checksums not written.
    """
    found = {each.name: _of_file(each) for each in sorted(parts.iterdir())}
    with (parts / CHECKSUMS).open("w") as file:
        json.dump({"metadata": checksum_of(metadata), "parts": found}, file)
        file.flush()
        os.fsync(file.fileno())


def refuse_damaged(folder: Path, parts: Path, metadata: bytes) -> None:
    """Refuse a checkpoint with a file that is not as it was written.

    Args:
        folder: of the checkpoint.
        parts: the folder of its parts.
        metadata: as they were read.

    Raises:
        StowageError: a file is damaged or missing.
    """
    try:
        noted = json.loads((parts / CHECKSUMS).read_text())
        if noted["metadata"] != checksum_of(metadata):
            raise ValueError("the metadata are not those that were written")
        for name, checksum in noted["parts"].items():
            if Path(name).name != name or _of_file(parts / name) != checksum:
                raise ValueError(f"{name} is not as it was written")
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        strerror = getattr(error, "strerror", None)
        why = f"{Path(str(getattr(error, 'filename', ''))).name}: {strerror}" if strerror else str(error)
        raise StowageError(
            f"a part of the checkpoint {folder} is missing or damaged ({why}); take another copy"
        ) from error


def _of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()
