"""Let the kernel's interrupt also cancel searches and runs, which continue in threads between cells."""

from __future__ import annotations

import signal
import sys
from threading import current_thread, main_thread
from types import FrameType
from typing import Any
from weakref import WeakSet

from widgets.session.state.feature import features
from widgets.session.state.session_state import SessionState

_sessions: WeakSet[SessionState] = WeakSet()
_AGAIN_SECONDS = 0.2


def cancel_on_interrupt(session_state: SessionState) -> None:
    """Cancel the session's search and run when the kernel is interrupted, in a cell or between cells.

    Does nothing outside a notebook kernel.
    """
    shell = _shell()
    kernel = getattr(shell, "kernel", None)
    if shell is None or kernel is None:
        return
    if not _sessions:
        shell.events.register("post_run_cell", _after_cell)
    _sessions.add(session_state)
    kernel.io_loop.add_callback(_listen, kernel)


def in_message() -> None:
    """Handle interrupts for the rest of a message from the page, because no cell is running that they could stop."""
    if getattr(_shell(), "kernel", None) is not None and current_thread() is main_thread():
        signal.signal(signal.SIGINT, _interrupted)  # the kernel restores its own handler between cells


def cancel_all() -> None:
    """Cancel the work of every feature that can be cancelled, such as searches and runs."""
    for session_state in list(_sessions):
        for feature in features():
            feature.cancel(session_state)


def _shell() -> Any:
    module = sys.modules.get("IPython")
    return None if module is None else module.get_ipython()


def _after_cell(result: Any) -> None:
    if isinstance(result.error_in_exec, KeyboardInterrupt):
        cancel_all()


def _listen(kernel: Any) -> None:
    """Install a handler between cells, where a kernel ignores interrupts; reschedule while a cell is running."""
    now = signal.getsignal(signal.SIGINT)
    if now is signal.SIG_IGN:
        signal.signal(signal.SIGINT, _interrupted)
    elif now is not _interrupted:  # a cell is running, and restores the earlier handler when it ends
        kernel.io_loop.call_later(_AGAIN_SECONDS, _listen, kernel)


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    cancel_all()
