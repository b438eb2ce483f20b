"""Writing files atomically: a failure leaves the previous file unchanged; and refusing arguments of other types."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from errno import EISDIR
from pathlib import Path
from typing import TypeVar

from planner.errors import StowageError

T = TypeVar("T")

#: The types of what names a file.
PATH = (str, os.PathLike)


def write_text(path: str | Path, text: str) -> None:
    """Write `text` to `path` whole or not at all, through a temporary file in the same folder and a rename.

    Raises:
        StowageError: the folder is missing or read-only, the disk is full, the file name is invalid, or the text cannot
            be encoded.
    """
    write_bytes(path, encoded(text))


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write `data` to `path` whole or not at all, as `write_text` does.

    Raises:
        StowageError: the folder is missing or read-only, the disk is full, or the file name is invalid.
    """
    path = Path(path)
    temporary: str | None = None
    try:
        if path.is_symlink():
            path = path.resolve()
        if path.exists() and not (path.is_file() or path.is_dir()):  # /dev/stdout or a pipe cannot be renamed to
            path.write_bytes(data)
            return
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise _cannot_write(path, error) from error
    except ValueError as error:
        raise _no_path(path, error) from error


def refuse_unwritable(path: str | Path) -> None:
    """Check that a file can be written, before doing the work whose result goes there.

    Raises:
        StowageError: the folder is missing or read-only, the disk is full, or the path is a folder.
    """
    path = Path(path)
    try:
        if path.is_symlink():
            path = path.resolve()
        if path.is_dir():
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
        if path.is_file() or not path.exists():  # otherwise a pipe or /dev/stdout
            with tempfile.TemporaryFile(dir=path.parent):
                pass
    except OSError as error:
        raise _cannot_write(path, error) from error
    except ValueError as error:
        raise _no_path(path, error) from error


def encoded(text: str) -> bytes:
    """The bytes of a text file.

    Raises:
        StowageError: the text contains half a character (a lone surrogate), as names read from elsewhere may.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        around = ascii(text[max(0, error.start - 20) : error.end + 20])
        raise StowageError(
            f"{around} holds half a character, which no file can hold: rename what is called so"
        ) from error


def read_text(path: str | Path) -> str:
    """Read a text file.

    Raises:
        StowageError: it does not exist, cannot be opened, is not UTF-8 text, or its name is invalid.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise StowageError(f"cannot read {path}: {error.strerror or error}; check the path") from error
    except UnicodeDecodeError as error:
        raise StowageError(f"cannot read {path}: it is not a text file; check the path") from error
    except ValueError as error:
        raise _no_path(path, error) from error


def read_parsed(path: str | Path, parse: Callable[[str], T]) -> T:
    """Read a text file, and what its text holds.

    Args:
        path: of the file.
        parse: reads the text; may raise a StowageError, which then names the file.

    Raises:
        StowageError: the file cannot be read, or its text not parsed.
    """
    text = read_text(path)
    try:
        return parse(text)
    except StowageError as error:
        raise StowageError(f"{path}: {error}") from error


def _cannot_write(path: Path, error: OSError) -> StowageError:
    return StowageError(f"cannot write {path}: {error.strerror or error}; choose another place or free some space")


def _no_path(path: str | Path, error: ValueError) -> StowageError:
    return StowageError(f"no file can be called {str(path)!a}: {error}; choose another name")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def require_arguments(function: str, **arguments: tuple[object, type | tuple[type, ...]]) -> None:
    """Check the types of arguments.

    Args:
        function: what is called, for the message.
        arguments: by name, in the order in which the function takes them, each value and its type.

    Raises:
        StowageError: one is of another type.
    """
    for name, (value, wanted) in arguments.items():
        if not isinstance(value, wanted):
            what = "a str or a Path" if wanted == PATH else f"of type {getattr(wanted, '__name__', wanted)}"
            raise StowageError(f"{function} takes {_order(*arguments)}; the {name} must be {what}, got {_type(value)}")


def _order(*names: str) -> str:
    if len(names) == 1:
        return f"the {names[0]}"
    if len(names) == 2:
        return f"the {names[0]} first, then the {names[1]}"
    return ", ".join(f"the {name}" for name in names[:-1]) + f" and the {names[-1]} in this order"


def _type(value: object) -> str:
    return "None" if value is None else type(value).__name__
