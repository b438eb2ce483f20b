"""The user's line that runs: in their own files and in the files of the model, not in PyTorch's nor in ours."""

from __future__ import annotations

import os
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FrameType

from torch import nn

from planner.capture.source.file_names import file_name, is_typed

_HERE = f"{Path(__file__).parents[2]}{os.sep}"
#: Treated like a user's own.
_ZOO = f"{_HERE}zoo{os.sep}"
_STEPS = f"{_HERE}step{os.sep}"
_TORCH = f"{Path(str(find_spec('torch').origin)).parent}{os.sep}"  # type: ignore[union-attr]
_PYTHON = tuple(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib"))
_PACKAGES = tuple(f"{sysconfig.get_path(name)}{os.sep}" for name in ("purelib", "platlib"))
_FOLDERS = tuple(f"{os.sep}{folder}{os.sep}" for folder in ("site-packages", "dist-packages"))


def is_users(filename: str) -> bool:
    """Whether a code object's file (`frame.f_code.co_filename`) is neither PyTorch's, Python's nor this package's."""
    if filename.startswith("<"):
        return is_typed(filename)
    if filename.startswith(_HERE):
        return filename.startswith(_ZOO)
    return not filename.startswith(_TORCH) and (_installed(filename) or not filename.startswith(_PYTHON))


class UserLines:
    """Names the lines of a model that run.

    A line is one of the innermost frame in a file of the user's own, outside of installed packages, or in a file that
    defines a module with children: for a model of `transformers` that is the file of the model, and not one of the
    activations, attention kernels or losses that all models share, which would say little. Without such a frame, it is
    the innermost one that is neither PyTorch's nor ours.

    Args:
        model: the model that runs.
    """

    def __init__(self, model: nn.Module) -> None:
        classes = {type(model), *(type(one) for one in model.modules() if next(one.children(), None) is not None)}
        modules = [sys.modules.get(one.__module__) for kind in classes for one in kind.__mro__]
        files = {getattr(module, "__file__", None) for module in modules}
        self._model_files = frozenset(file for file in files if file is not None and is_users(file))
        self._ranks: dict[str, int] = {}
        self._lines: dict[tuple[int, int], str] = {}
        self._codes: list[CodeType] = []  # kept, since the identity of a code object that was freed is reused

    def running(self) -> str:
        """Return the running line of the step as `model.py:123`; `""` if it has none.

        Frames outside the step's `passes` are those of the caller of `capture`, or of a run, and say nothing about the
        op.
        """
        ranks, fallback = self._ranks, None
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            name = frame.f_code.co_filename
            rank = ranks.get(name)
            if rank is None:
                rank = ranks[name] = self._rank(name)
            if rank == _OWN:
                return self._line(frame)
            if rank == _LIBRARY:
                fallback = fallback or frame
            elif rank == _STEP and frame.f_code.co_name == "passes":
                break
            frame = frame.f_back
        return "" if fallback is None else self._line(fallback)

    def _rank(self, name: str) -> int:
        if name.startswith(_STEPS):
            return _STEP
        if not is_users(name):
            return _PYTORCH
        return _LIBRARY if _installed(name) and name not in self._model_files else _OWN

    def _line(self, frame: FrameType) -> str:
        # a line number is decoded from the start of its function, which takes longer than all the rest
        key = id(frame.f_code), frame.f_lasti
        line = self._lines.get(key)
        if line is None:
            self._codes.append(frame.f_code)
            line = self._lines[key] = f"{file_name(frame.f_code.co_filename)}:{frame.f_lineno}"
        return line


_PYTORCH, _STEP, _LIBRARY, _OWN = range(4)


def _installed(filename: str) -> bool:
    if filename.startswith(_ZOO):
        return False
    return filename.startswith(_PACKAGES) or any(folder in filename for folder in _FOLDERS)
