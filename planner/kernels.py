"""The compiler of the hot loops, and the compiled code kept on the disk."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from numba import njit

_MARKS = (b"@kernel", b"@inlined_kernel")


#: Compiles a loop over arrays when it is first called; it runs without the interpreter's lock.
kernel = njit(cache=True, nogil=True)
#: The same, of a short one that another kernel calls in its innermost loop.
inlined_kernel = njit(cache=True, nogil=True, inline="always")


def forget_changed(folder: Path) -> None:
    """Delete the compiled kernels below a folder if the source of one of them has changed.

    numba compiles a kernel anew when the file it is in has changed, and overlooks that the file of a kernel that it
    calls has.

    Args:
        folder: of the sources; a file in its `__pycache__` keeps in mind what they were.
    """
    sources = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        text = path.read_bytes()
        if any(mark in text for mark in _MARKS):
            sources.update(b"%s\0%s\0" % (str(path.relative_to(folder)).encode(), text))
    stamp, now = folder / "__pycache__" / "kernels.sha256", sources.hexdigest()
    with suppress(OSError):  # where nothing may be written there are no compiled kernels either
        if stamp.exists() and stamp.read_text() == now:
            return
        for compiled in folder.rglob("*.nb[ci]"):
            compiled.unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(now)


forget_changed(Path(__file__).parent)
