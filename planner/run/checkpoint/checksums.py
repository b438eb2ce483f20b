"""Checksums of the files of a checkpoint, made as they are written and read, so that damaged numbers are refused."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from torch.distributed.checkpoint.filesystem import FileSystem

from planner.errors import StowageError

#: Beside the parts of a checkpoint.
CHECKSUMS = "checksums.json"
_CHUNK_BYTES = 1 << 20


class DamagedFileError(StowageError):
    """A file of a checkpoint is not as it was written."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path.name} is not as it was written")


def checksum_of(data: bytes) -> str:
    """Of some bytes."""
    return hashlib.blake2b(data).hexdigest()


def write_checksums(parts: Path, metadata: bytes, checksums: Mapping[str, str]) -> None:
    """Note the checksums of all files of a checkpoint, and of its metadata, and wait until they are on the disk.

    Args:
        parts: the folder of its parts.
        metadata: as they will be written.
        checksums: of the files in the folder, by name.

    Raises:
        OSError: they cannot be written.
    """
    with (parts / CHECKSUMS).open("w") as file:
        json.dump({"metadata": checksum_of(metadata), "parts": dict(sorted(checksums.items()))}, file)
        file.flush()
        os.fsync(file.fileno())


def noted_checksums(folder: Path, parts: Iterable[str], metadata: bytes) -> dict[str, str]:
    """The checksums of all files of a checkpoint, by their paths in it.

    Args:
        folder: of the checkpoint.
        parts: the folders in it that have its parts.
        metadata: as they were read.

    Raises:
        StowageError: the metadata are not those that were written, or the checksums cannot be read.
    """
    found = {}
    try:
        for each in parts:
            noted = json.loads((folder / each / CHECKSUMS).read_text())
            if noted["metadata"] != checksum_of(metadata):
                raise ValueError("the metadata are not those that were written")
            for name, checksum in noted["parts"].items():
                if Path(name).name != name:
                    raise ValueError(f"{CHECKSUMS} names {name}")
                found[f"{each}/{name}"] = str(checksum)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        strerror = getattr(error, "strerror", None)
        why = f"{Path(str(getattr(error, 'filename', ''))).name}: {strerror}" if strerror else str(error)
        raise StowageError(
            f"a part of the checkpoint {folder} is missing or damaged ({why}); take another copy"
        ) from error
    return found


class ChecksummedFiles(FileSystem):
    """Files that DCP writes, each from its first byte to its last.

    Attributes:
        checksums: of the files written, by name.
    """

    def __init__(self) -> None:
        self.checksums: dict[str, str] = {}

    @contextmanager
    def create_stream(self, path: str | os.PathLike[str], mode: str) -> Generator[Any, None, None]:
        """A stream for a file, as DCP asks for it."""
        with super().create_stream(path, mode) as file:
            stream = _ChecksummedStream(file)
            yield stream
            self.checksums[Path(path).name] = stream.checksum.hexdigest()


class _ChecksummedStream:
    def __init__(self, file: Any) -> None:
        self._file, self.checksum = file, hashlib.blake2b()
        self.tell, self.fileno, self.flush, self.close = file.tell, file.fileno, file.flush, file.close

    def write(self, data: Any) -> int:
        self.checksum.update(data)
        return int(self._file.write(data))


class VerifiedFile:
    """A file that is read once, from its first byte to its last; leaving it reads the rest, and refuses what differs.

    Args:
        path: of the file.
        checksum: as it was noted.

    Raises:
        DamagedFileError: on leaving, also after another error, which the damage may have caused.
        OSError: the file cannot be read.
    """

    def __init__(self, path: Path, checksum: str) -> None:
        self._path, self._noted = path, checksum
        self._file, self._found = path.open("rb"), hashlib.blake2b()
        self._last = 0, b""

    def part(self, offset: int, length: int) -> bytes:
        """Some bytes of it, which are the last part that was read or begin after that."""
        begin, data = self._last
        if (offset, length) == (begin, len(data)):
            return data
        if offset < begin + len(data):
            raise ValueError("its parts overlap")
        while (gap := offset - self._file.tell()) > 0 and self._read(min(gap, _CHUNK_BYTES)):
            pass
        self._last = offset, self._read(length)
        return self._last[1]

    def _read(self, size: int) -> bytes:
        data = self._file.read(size)
        self._found.update(data)
        return data

    def __enter__(self) -> VerifiedFile:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        with self._file:
            if error is not None and not isinstance(error, Exception):
                return
            while self._read(_CHUNK_BYTES):
                pass
        if self._found.hexdigest() != self._noted:
            raise DamagedFileError(self._path) from error
