"""A memory snapshot as the plain data that PyTorch pickled: nothing in it is ever called."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any, NoReturn

from planner.errors import StowageError, first_line
from planner.snapshot.loading.opcodes import check_plain
from planner.units import format_bytes

#: The largest file that is read: its objects take several times as much memory.
_MOST_BYTES = 4 * 2**30


class _PlainUnpickler(pickle.Unpickler):
    """Finds no function or class and no object kept elsewhere, whatever the opcodes are."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it names {module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise pickle.UnpicklingError("it names an object outside of it")


def unpickle(path: str | Path) -> Any:
    """The dicts, lists, tuples, texts and numbers in a pickle.

    Raises:
        StowageError: the file cannot be read, is larger than 4 GiB, or has anything but plain data.
    """
    data = read_bytes(path, _MOST_BYTES)
    check_plain(data)
    try:
        return _PlainUnpickler(io.BytesIO(data)).load()
    except Exception as error:
        raise StowageError(f"it cannot be unpickled: {first_line(error)}; copy it again") from error


def read_bytes(path: str | Path, most: int) -> bytes:
    """A file's content.

    Args:
        path: the file.
        most: its largest size in bytes.

    Raises:
        StowageError: it cannot be read, is no file, or is larger.
    """
    path = Path(path)
    try:
        if path.exists() and not path.is_file():  # a pipe may never end
            raise StowageError("it is no file; check the path")
        if path.stat().st_size > most:
            raise StowageError(f"it is larger than {format_bytes(most)}; record fewer events")
        return path.read_bytes()
    except OSError as error:
        raise StowageError(f"it cannot be opened: {error.strerror or error}; check the path") from error
    except ValueError as error:
        raise StowageError(f"no file can be called so: {error}; check the path") from error
