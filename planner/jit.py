"""Compilation of the hot loops by numba: decorators, notification of compilation, and the cache on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit
from numba.core import event, serialize
from numba.np import linalg

from planner.cancel import uninterrupted
from planner.progress import announce

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

_MARKS = (b"@kernel", b"@inlined_kernel")


#: Status text while kernels are compiled; the first plan on a computer waits for most of them.
COMPILING = "compiling a part of the planner, once on this computer"


def kernel(function: Kernel) -> Kernel:
    """Compile a loop over arrays on its first call; it runs without the interpreter's lock."""
    return _dispatcher(function)


def inlined_kernel(function: Kernel) -> Kernel:
    """The same for a short function that another kernel calls in its innermost loop."""
    return _dispatcher(function, inline="always")


def _dispatcher(function: Kernel, **options: Any) -> Kernel:
    """Compile and load without losing a Ctrl-C.

    Both drop objects of LLVM's, whose finalizers are written in Python: a KeyboardInterrupt raised in one of them would
    be printed and forgotten. It is raised when the kernel is compiled or loaded.
    """
    with uninterrupted():
        dispatcher: Any = njit(cache=True, nogil=True, **options)(function)
    compile_or_load = dispatcher.compile

    def after_imports(signature: Any) -> Any:
        _import_without_scipy()
        return compile_or_load(signature)

    dispatcher.compile = uninterrupted()(after_imports)
    return cast(Kernel, dispatcher)


@cache
def _import_without_scipy() -> None:
    """Import what numba imports before its first kernel, but for the linear algebra of SciPy, which takes as long.

    All that numba wants to know there is whether it is installed, and it is; what uses it imports it by itself.
    """
    ensure_blas = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        from numba.np import arraymath
    finally:
        linalg.ensure_blas = ensure_blas
    vars(arraymath)["ensure_blas"] = ensure_blas


def doing(words: str) -> str:
    """The status text to show: `words`, or `COMPILING` while a kernel is being compiled, which blocks everything."""
    return COMPILING if _watch.depth else words


class _Watch(event.Listener):
    """Notified when a kernel is compiled, not when one is loaded from disk; one thread compiles at a time."""

    def __init__(self) -> None:
        self.depth = 0

    def on_start(self, event: Any) -> None:
        if _ours(event):
            announce(COMPILING)
            self.depth += 1

    def on_end(self, event: Any) -> None:
        self.depth -= _ours(event)


def _ours(event: Any) -> bool:
    return str(event.data["dispatcher"].py_func.__module__).startswith("planner.")


# numba calls this for every named tuple that a kernel returns, and an exception raised in it from outside may crash the
# process: what is known already is looked up without running Python, so that nothing is raised there
serialize._numba_unpickle = cache(serialize._numba_unpickle)

_watch = _Watch()
event.register("numba:compile", _watch)  # type: ignore[no-untyped-call]


def forget_changed(folder: Path) -> None:
    """Delete the compiled kernels below a folder if the source of one of them has changed.

    numba recompiles a kernel when its own file has changed, but not when the file of a kernel that it calls has.

    Args:
        folder: of the sources; a file in its `__pycache__` stores their hash.
    """
    sources = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        text = path.read_bytes()
        if any(mark in text for mark in _MARKS):
            sources.update(b"%s\0%s\0" % (str(path.relative_to(folder)).encode(), text))
    stamp, now = folder / "__pycache__" / "kernels.sha256", sources.hexdigest()
    with suppress(OSError):  # a read-only folder has no compiled kernels either
        if stamp.exists() and stamp.read_text() == now:
            return
        for compiled in folder.rglob("*.nb[ci]"):
            compiled.unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(now)


forget_changed(Path(__file__).parent)
