"""Rooms as attributes of `planner`, imported when first named; some can be called.

`planner.capture` is a package and, as people think of it, a function. So a room whose main function bears its
name passes calls on to that function, and shows its signature and its docstring to whoever asks for help.
"""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any


class _CallableRoom(ModuleType):
    __signature__: inspect.Signature

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _main_function(self)(*args, **kwargs)


def make_callable(room: str) -> None:
    """Let the imported module `room` (`"planner.capture"`) be called like the function of its name."""
    module = sys.modules[room]
    function = _main_function(module)
    about = inspect.getdoc(module) or ""
    module.__class__ = _CallableRoom
    module.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    module.__doc__ = f"{inspect.getdoc(function)}\n\nIt is a package too: {about[:1].lower()}{about[1:]}"


def _main_function(room: ModuleType) -> Any:
    return getattr(room, room.__name__.rpartition(".")[2])
