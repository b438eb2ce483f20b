"""Callable packages.

`planner.capture` is a package, and users also call it as a function. So a package whose main function has its name
forwards calls to that function, and shows the function's signature and docstring in `help`.
"""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _CallableRoom(ModuleType):
    _main: tuple[str, str]
    _about: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function()(*args, **kwargs)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._function())

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        # `help` shows the page of a package, on which a signature has no place of its own
        summary, _, rest = (inspect.getdoc(self._function()) or "").partition("\n")
        about = f"It is a package too: {self._about[:1].lower()}{self._about[1:]}"
        return f"{summary}\n\n{self._call()}\n{rest}\n\n{about}"

    def __getattr__(self, name: str) -> Any:
        if name != self._main[1]:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return self._function()

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), self._main[1]]

    def _call(self) -> str:
        """How the function is called, as an indented line of code without types."""
        bare = [each.replace(annotation=each.empty) for each in self.__signature__.parameters.values()]
        return f"    {self.__name__}{inspect.Signature(bare)}"

    def _function(self) -> Any:
        home, name = self._main
        return vars(import_module(home))[name]


def make_callable(room: str, home: str | None = None) -> None:
    """Make an imported package callable like the function of the same name.

    Args:
        room: the package's module name (`"planner.capture"`).
        home: the package that defines the function, imported when it is called; `room` itself if None.
    """
    module: Any = sys.modules[room]
    about = inspect.getdoc(module) or ""
    module.__class__ = _CallableRoom
    module._main, module._about = (home or room, room.rpartition(".")[2]), about
