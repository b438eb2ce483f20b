"""Progress of long calls: a line in a notebook, a bar in a terminal, occasional lines in a log.

Rich could draw in notebooks too, but through an ipywidgets `Output` that stays in the notebook when it is empty. The
display used here is updated in place and emptied at the end, so that nothing of it is seen or stored.
"""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import copy_context
from html import escape
from secrets import token_hex
from threading import Event, Lock, Thread, local
from typing import Any

from planner.cancel import CancelToken, behind_system_error, interrupted_after_kernels
from planner.errors import StowageError

#: Takes the share done, from 0 to 1, and a status text; it may raise to end the call.
Listener = Callable[[float, str], object]
#: `True` shows progress, `False` shows nothing, and a function is called instead.
ShowProgress = bool | Listener

#: Seconds until anything is shown, and between two updates.
_FIRST, _EVERY = 0.5, 0.2
#: Seconds until the first line in a log; between two lines at first, which doubles each time; and its maximum.
_LOG_FIRST, _LOG_EVERY, _LOG_MOST = 2.0, 3.0, 60.0
#: Largest share shown in a terminal: a full bar stops its clock, although the call may go on.
_FULL = 0.999

#: One call is shown at a time: a nested call is part of the outer one.
_drawing = Lock()
#: The progress of the innermost call that reports, by thread.
_reporting = local()


class Progress:
    """How far a call is: set by the call, from any thread, and read by what shows it.

    Args:
        listener: called with every report; None for nothing.
        stop: checked with every report; None to never cancel.

    Attributes:
        share: how much is done, from 0 to 1.
        doing: a status text.
    """

    def __init__(self, listener: Listener | None = None, stop: CancelToken | None = None) -> None:
        self.share, self.doing = 0.0, "starting"
        self._listener, self._stop = listener, stop

    def __call__(self, share: float, doing: str = "") -> None:
        """Report.

        Args:
            share: how much is done, from 0 to 1.
            doing: a status text; without one, the last one.

        Raises:
            Cancelled: `stop` was cancelled.
        """
        if self._stop is not None:
            self._stop.check()
        self.share, self.doing = share, doing or self.doing
        if self._listener is not None:
            self._listener(self.share, self.doing)

    def part(self, begin: float, end: float, doing: str = "") -> Progress:
        """The progress of a part of the call, whose share never falls.

        Args:
            begin, end: the shares of the whole call at which the part begins and ends.
            doing: a status text, which is reported at once.
        """
        reached = begin

        def listener(share: float, doing: str) -> None:
            nonlocal reached
            reached = max(reached, begin + min(share, 1.0) * (end - begin))
            self(reached, doing)

        part = Progress(listener)
        if doing:
            part(0.0, doing)
        return part


def announce(doing: str) -> None:
    """Report a status text for whatever call of this thread reports progress, if any; may raise to end it."""
    progress: Progress | None = getattr(_reporting, "progress", None)
    if progress is not None:
        progress(progress.share, doing)


@contextmanager
def reporting(progress: ShowProgress) -> Iterator[Progress]:
    """Show the progress of a block, which is reported to the yielded object.

    Args:
        progress: whether to show it, or a function to call instead.

    Raises:
        StowageError: progress is none of these.
    """
    check_progress(progress)
    report = Progress(progress if callable(progress) else None)
    if progress is False:
        with _interrupts_as_such():
            yield report
        return
    before = getattr(_reporting, "progress", None)
    _reporting.progress = report
    try:
        with _interrupts_as_such(), shown(report) if progress is True else nullcontext():
            yield report
    finally:
        _reporting.progress = before


@contextmanager
def _interrupts_as_such() -> Iterator[None]:
    """Raise a Ctrl-C as such that came while numba loaded a kernel, as a SystemError, or handed over its result."""
    try:
        with interrupted_after_kernels():
            yield
    except SystemError as error:
        if isinstance(behind_system_error(error), KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise


def check_progress(progress: object) -> None:
    """Refuse a value that is neither True, False nor a function.

    Raises:
        StowageError: it is something else.
    """
    if not (isinstance(progress, bool) or callable(progress)):
        raise StowageError(f"progress must be True, False or a function of (share, doing), got {progress!r}")


@contextmanager
def shown(progress: Progress) -> Iterator[None]:
    """Show the progress of a block once it has taken half a second; the display is removed when the block ends.

    A separate thread draws, so that neither an interrupt nor an exception in the block leaves half a bar, and the
    display also updates during long work that reports nothing.

    Args:
        progress: read from another thread.
    """
    get_ready()
    over = Event()
    drawer = Thread(target=copy_context().run, args=(_draw, progress, over), name="stowage progress", daemon=True)
    try:
        drawer.start()
    except RuntimeError:  # no thread can be started now
        drawer = None  # type: ignore[assignment]
    try:
        yield
    finally:
        over.set()
        if drawer is not None:
            drawer.join()


def _draw(progress: Progress, over: Event) -> None:
    if over.wait(_FIRST) or not _drawing.acquire(blocking=False):
        return
    try:
        with suppress(Exception):  # a failure to draw must not end the block
            _draw_somewhere(progress, over)
    finally:
        _drawing.release()


def _draw_somewhere(progress: Progress, over: Event) -> None:
    publisher = _notebook()
    if publisher is not None:
        _draw_line(publisher, progress, over)
    elif _at_terminal():
        _draw_bar(progress, over)
    elif sys.stderr is not None:
        _write_lines(progress, over)


def _at_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def get_ready() -> None:
    """Import what draws a bar, before any capture: the import draws from Python's generator, which captures forbid."""
    if _at_terminal() and "rich.progress" not in sys.modules:
        state = random.getstate()
        importlib.import_module("rich.progress")
        random.setstate(state)


def _notebook() -> Any:
    """The display publisher of the notebook's kernel; None outside of a notebook, or where a cell captures output."""
    module = sys.modules.get("IPython")  # a notebook has imported it
    shell: Any = None if module is None else module.get_ipython()
    if getattr(shell, "kernel", None) is None:
        return None
    publisher = shell.display_pub
    return None if hasattr(publisher, "outputs") else publisher  # `%%capture` would keep every line


def _draw_line(publisher: Any, progress: Progress, over: Event) -> None:
    place, drawn = {"display_id": token_hex(16)}, None
    try:
        while True:
            now = progress.share, progress.doing
            if now != drawn:
                publisher.publish(_line(*now), transient=place, update=drawn is not None)
            drawn = now
            if over.wait(_EVERY):
                return
    finally:
        publisher.publish({}, transient=place, update=True)


def _line(share: float, doing: str) -> dict[str, str]:
    """The line shown in a notebook: a short bar, the share, and the status text."""
    share = min(max(share, 0.0), 1.0)
    text = f"{share:4.0%} {doing}"
    bar = f'<progress value="{share:.3f}" max="1" style="width:8em;vertical-align:-0.1em"></progress>'
    look = "white-space:nowrap;overflow:hidden;text-overflow:ellipsis;font-variant-numeric:tabular-nums"
    return {"text/plain": text, "text/html": f'<div style="{look}">{bar} {share:.0%} {escape(doing)}</div>'}


def _draw_bar(progress: Progress, over: Event) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn()
    to_terminal = sys.stdout is not None and sys.stdout.isatty()
    # output printed meanwhile appears above the bar, unless stdout is a file, which must keep it
    with Bar(*columns, console=Console(stderr=True), transient=True, redirect_stdout=to_terminal) as bar:
        task = bar.add_task("", total=1.0)
        while True:
            bar.update(task, completed=min(progress.share, _FULL), description=progress.doing)
            if over.wait(_EVERY):
                return


def _write_lines(progress: Progress, over: Event) -> None:
    written, wait, after = "", _LOG_FIRST - _FIRST, _LOG_EVERY
    while not over.wait(wait):
        wait, after = after, min(2 * after, _LOG_MOST)
        doing = f"running {progress.doing}" if progress.doing.startswith("step ") else progress.doing
        if doing != written:
            written = doing
            print(f"planner: {written}", file=sys.stderr, flush=True)
