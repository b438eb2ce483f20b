"""The metadata of a checkpoint, read without executing what a stranger has put there."""

from __future__ import annotations

import os
import pickle
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint.metadata import Metadata

from planner.errors import StowageError

METADATA = ".metadata"
_DCP = "torch.distributed.checkpoint"
#: By module, what DCP's own metadata consist of; none of it does anything when it is made.
_ALLOWED = {
    f"{_DCP}.metadata": {
        "BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta", "TensorProperties",
        "TensorStorageMetadata", "_MEM_FORMAT_ENCODING",
    },
    f"{_DCP}.filesystem": {"_StorageInfo"},
    f"{_DCP}.storage": {"WriteResult"},
    "torch": {"Size"},
    "torch.serialization": {"_get_layout"},
    "collections": {"OrderedDict"},
    "pathlib": {"Path", "PosixPath", "PurePosixPath"},
}  # fmt: skip


class _MetadataUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if name in _ALLOWED.get(module, ()) or (module == "torch" and isinstance(getattr(torch, name), torch.dtype)):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"it names {module}.{name}")


def metadata_bytes(folder: Path) -> bytes:
    """The metadata of a checkpoint, as they are on the disk.

    Raises:
        StowageError: there is no checkpoint.
    """
    try:
        return (folder / METADATA).read_bytes()
    except OSError as error:
        raise StowageError(
            f"{folder} is no checkpoint: its file {METADATA} cannot be read ({error.strerror or error}); check the path"
        ) from error


def unpickled(data: bytes) -> Any:
    """What was pickled, of nothing but what DCP's own metadata consist of.

    Raises:
        Exception: it consists of something else.
    """
    return _MetadataUnpickler(BytesIO(data)).load()


def metadata_of(folder: Path, data: bytes) -> Metadata:
    """The metadata of a checkpoint.

    Args:
        folder: of the checkpoint.
        data: as `metadata_bytes` reads them.

    Raises:
        StowageError: they are not what DCP writes.
    """
    try:
        found = unpickled(data)
    except Exception as error:
        raise _broken(folder, str(error) or type(error).__name__) from error
    if not isinstance(found, Metadata) or not isinstance(found.storage_data, dict):
        raise _broken(folder, "it holds something else")
    for info in found.storage_data.values():
        path = str(getattr(info, "relative_path", ""))
        if Path(path).is_absolute() or ".." in Path(path).parts:
            raise _broken(folder, f"it refers to {path}, which is outside of the folder")
    return found


def parts_of(metadata: Metadata) -> set[str]:
    """The folders with the parts that metadata name."""
    return {Path(info.relative_path).parts[0] for info in metadata.storage_data.values()}


def write_metadata(folder: Path, data: bytes) -> None:
    """Put metadata in the place of those before, at once and on the disk.

    Args:
        folder: of the checkpoint.
        data: the metadata, pickled as DCP does.

    Raises:
        OSError: they cannot be written; those before are still there.
    """
    temporary = folder / f"{METADATA}.tmp"
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / METADATA)
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _broken(folder: Path, why: str) -> StowageError:
    return StowageError(
        f"{folder} is no checkpoint that can be loaded: its file {METADATA} is not what torch.distributed.checkpoint "
        f"writes ({why}); take another copy of the folder"
    )
