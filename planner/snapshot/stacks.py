"""Call stacks of a snapshot, each once, and the user's line in each."""

from __future__ import annotations

import re
from typing import Any

from planner.errors import StowageError
from planner.snapshot.tables import StackFrame, Stacks

#: PyTorch itself, installed or built from its sources.
_TORCH = re.compile(
    r"(^|/)((site|dist)-packages/torch/"
    r"|torch/(nn|autograd|optim|utils|cuda|amp|fx|jit|func|export|profiler|distributed|_\w+)/"
    r"|torch/(functional|storage|serialization|_\w+)\.py$)"
)
_INSTALLED = re.compile(r"(^|/)(site|dist)-packages/")
_PYTHON = re.compile(r"(^|/)lib(64)?/python3(\.\d+)?/(?!(site|dist)-packages/)|(^|/)Lib/(?!site-packages/)")
_CELL = re.compile(r"/ipykernel_\d+/\d+\.py$|^<ipython-input-\d+-\w+>$|^<python-input-\d+>$|^<stdin>$")
#: How a graph names a cell: with a number, which only the notebook itself knows.
_NUMBERED_CELL = re.compile(r"^cell \[[^\]]*\]")
#: The most characters of a name that are kept.
_LONGEST = 1000


class StackTable:
    """Collects stacks; PyTorch shares what is equal, and so it is read once."""

    def __init__(self) -> None:
        self._of_list: dict[int, int] = {}
        self._of_ids: dict[tuple[int, ...], int] = {}
        self._of_frame: dict[int, StackFrame] = {}
        self._numbers: dict[tuple[StackFrame, ...], int] = {}

    def add(self, frames: Any) -> int:
        """The number of a stack; -1 if it is empty or missing.

        Args:
            frames: the list in the snapshot, which must outlive this table.

        Raises:
            StowageError: it is no list of frames.
        """
        if not frames:
            if frames is None or isinstance(frames, list):
                return -1
            raise StowageError(f"frames are {type(frames).__name__}, not a list")
        number = self._of_list.get(id(frames))
        if number is None:
            if not isinstance(frames, list):
                raise StowageError(f"frames are {type(frames).__name__}, not a list")
            same = tuple(map(id, frames))  # lists are often equal but not shared, and their frames are
            number = self._of_ids.get(same)
            if number is None:
                known = self._of_frame
                stack = tuple([known.get(id(frame)) or self._frame(frame) for frame in frames])
                number = self._of_ids[same] = self._numbers.setdefault(stack, len(self._numbers))
            self._of_list[id(frames)] = number
        return number

    def _frame(self, frame: Any) -> StackFrame:
        if not isinstance(frame, dict):
            raise StowageError(f"a frame is {type(frame).__name__}, not a dict")
        filename, line, name = frame.get("filename"), frame.get("line"), frame.get("name")
        if not (isinstance(filename, str) and isinstance(name, str) and type(line) is int and 0 <= line < 2**32):
            raise StowageError("a frame has no filename, line and name")
        made = self._of_frame[id(frame)] = StackFrame(filename[-_LONGEST:], line, name[:_LONGEST])
        return made

    def stacks(self) -> Stacks:
        """All that were collected."""
        frames = tuple(self._numbers)
        return Stacks(frames, tuple(map(user_line, frames)))


def user_line(stack: tuple[StackFrame, ...]) -> str:
    """The user's line of a stack as `model.py:123`; `""` if it has none.

    That is the innermost one outside of installed packages, otherwise the innermost one that is neither PyTorch's nor
    Python's.
    """
    fallback = ""
    for frame in stack:
        name = frame.filename.replace("\\", "/")
        if not (name.endswith(".py") or _CELL.search(name)) or _TORCH.search(name) or _PYTHON.search(name):
            continue
        if not _INSTALLED.search(name):
            return line_of(frame)
        fallback = fallback or line_of(frame)
    return fallback


def line_of(frame: StackFrame) -> str:
    """A frame as `model.py:123`, without the folders of the computer; a cell of a notebook is `cell:12`."""
    name = frame.filename.replace("\\", "/")
    return f"{'cell' if _CELL.search(name) else name.rpartition('/')[2]}:{frame.line}"


def same_line(line: str) -> str:
    """A line of a graph as a snapshot names it, in which cells have no number."""
    return _NUMBERED_CELL.sub("cell", line)
