"""The kernel's interrupt cancels searches and runs too: they go on between cells, where nothing would notice it."""

from __future__ import annotations

import signal
import sys
from threading import current_thread, main_thread
from types import FrameType
from typing import Any
from weakref import WeakSet

from widgets.session import running, searching
from widgets.session.core import Core

_cores: WeakSet[Core] = WeakSet()
_AGAIN_SECONDS = 0.2


def heed(core: Core) -> None:
    """Cancel what goes on in a session when the kernel is interrupted, in a cell or between two; nothing elsewhere."""
    shell = _shell()
    kernel = getattr(shell, "kernel", None)
    if shell is None or kernel is None:
        return
    if not _cores:
        shell.events.register("post_run_cell", _after_cell)
    _cores.add(core)
    kernel.io_loop.add_callback(_listen, kernel)


def in_message() -> None:
    """Take interrupts for the rest of a message from the page too: there is no cell in it that they could stop."""
    if getattr(_shell(), "kernel", None) is not None and current_thread() is main_thread():
        signal.signal(signal.SIGINT, _interrupted)  # the kernel puts back what was there between cells


def cancel_all() -> None:
    """Cancel every search and every run."""
    for core in list(_cores):
        searching.cancel(core)
        running.cancel(core)


def _shell() -> Any:
    module = sys.modules.get("IPython")
    return None if module is None else module.get_ipython()


def _after_cell(result: Any) -> None:
    if isinstance(result.error_in_exec, KeyboardInterrupt):
        cancel_all()


def _listen(kernel: Any) -> None:
    """Between two cells a kernel ignores interrupts; take them then, as long as a session is there."""
    now = signal.getsignal(signal.SIGINT)
    if now is signal.SIG_IGN:
        signal.signal(signal.SIGINT, _interrupted)
    elif now is not _interrupted:  # a cell is running, and puts the handler back that was there before
        kernel.io_loop.call_later(_AGAIN_SECONDS, _listen, kernel)


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    cancel_all()
