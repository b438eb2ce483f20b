"""Classification of frames: the user's code, or that of PyTorch and of this package."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

_HERE = Path(__file__).parents[1]
_TORCH = str(Path(str(find_spec("torch").origin)).parent)  # type: ignore[union-attr]
#: Excludes the zoo, whose models are treated like a user's.
_OURS = tuple(f"{_HERE / room}{os.sep}" for room in ("capture", "guards", "program", "step", "torch_private"))
_STEPS = f"{_HERE / 'step'}{os.sep}"


def is_users(filename: str) -> bool:
    """Whether a code object's file (`frame.f_code.co_filename`) is neither PyTorch's nor this package's own."""
    return not filename.startswith((_TORCH, *_OURS, "<"))


def source_line() -> str:
    """Return the innermost of the user's lines in the running step as `file.py:123`; or `""`.

    Frames outside the step's `passes` are those of the caller of `capture`, or of a run, and say nothing about the op.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not _begins_step(frame):
        name = frame.f_code.co_filename
        if is_users(name):
            return f"{name.rpartition('/')[2]}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def _begins_step(frame: FrameType) -> bool:
    return frame.f_code.co_name == "passes" and frame.f_code.co_filename.startswith(_STEPS)
