"""Rooms as attributes of `planner`, imported when first named; some can be called.

`planner.capture` is a package and, as people think of it, a function. So a room whose main function bears its
name passes calls on to that function.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _CallableRoom(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return getattr(self, self.__name__.rpartition(".")[2])(*args, **kwargs)


def make_callable(room: str) -> None:
    """Let the imported module `room` (`"planner.capture"`) be called like the function of its name."""
    sys.modules[room].__class__ = _CallableRoom
