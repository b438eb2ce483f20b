"""Progress of long calls: a line in a notebook, a bar in a terminal, occasional lines in a log.

Rich could draw in notebooks too, but through an ipywidgets `Output` that stays in the notebook when it is empty. The
display used here is updated in place and emptied at the end, so that nothing of it is seen or stored.
"""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from html import escape
from secrets import token_hex
from threading import Event, Lock, Thread
from typing import Any

from planner.errors import StowageError

#: Takes the share done, from 0 to 1, and a status text; it may raise to end the call.
Report = Callable[[float, str], object]
#: `True` shows progress, `False` shows nothing, and a function is called instead.
Progress = bool | Report

Look = Callable[[], tuple[float, str]]

#: Seconds until anything is shown, and between two updates.
_FIRST, _EVERY = 0.5, 0.2
#: Seconds until the first line in a log; between two lines at first, which doubles each time; and its maximum.
_LOG_FIRST, _LOG_EVERY, _LOG_MOST = 2.0, 3.0, 60.0
#: Largest share shown in a terminal: a full bar stops its clock, although the call may go on.
_FULL = 0.999

#: One call is shown at a time: a nested call is part of the outer one.
_drawing = Lock()


@contextmanager
def reporting(progress: Progress) -> Iterator[Report]:
    """Show the progress of a block; the yielded function takes the share done and a status text, from any thread.

    Args:
        progress: whether to show it, or a function to call instead.

    Raises:
        StowageError: progress is none of these.
    """
    check_progress(progress)
    if callable(progress):
        yield progress
    elif progress:
        now = [(0.0, "starting")]

        def report(share: float, doing: str) -> None:
            now[0] = share, doing

        with shown(lambda: now[0]):
            yield report
    else:
        yield silent


def check_progress(progress: object) -> None:
    """Refuse a value that is neither True, False nor a function.

    Raises:
        StowageError: it is something else.
    """
    if not (isinstance(progress, bool) or callable(progress)):
        raise StowageError(f"progress must be True, False or a function of (share, doing), got {progress!r}")


def silent(share: float, doing: str) -> None:
    """Show nothing."""


@contextmanager
def shown(look: Look) -> Iterator[None]:
    """Show the progress of a block once it has taken half a second; the display is removed when the block ends.

    A separate thread draws, so that neither an interrupt nor an exception in the block leaves half a bar, and the
    display also updates during long work that reports nothing.

    Args:
        look: returns the share done, from 0 to 1, and a status text; cheap, and called from another thread.
    """
    get_ready()
    over = Event()
    drawer = Thread(target=copy_context().run, args=(_draw, look, over), name="stowage progress", daemon=True)
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


def _draw(look: Look, over: Event) -> None:
    if over.wait(_FIRST) or not _drawing.acquire(blocking=False):
        return
    try:
        with suppress(Exception):  # a failure to draw must not end the block
            _draw_somewhere(look, over)
    finally:
        _drawing.release()


def _draw_somewhere(look: Look, over: Event) -> None:
    publisher = _notebook()
    if publisher is not None:
        _draw_line(publisher, look, over)
    elif _at_terminal():
        _draw_bar(look, over)
    elif sys.stderr is not None:
        _write_lines(look, over)


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


def _draw_line(publisher: Any, look: Look, over: Event) -> None:
    place, drawn = {"display_id": token_hex(16)}, None
    try:
        while True:
            now = look()
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


def _draw_bar(look: Look, over: Event) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn()
    to_terminal = sys.stdout is not None and sys.stdout.isatty()
    # output printed meanwhile appears above the bar, unless stdout is a file, which must keep it
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=to_terminal) as bar:
        task = bar.add_task("", total=1.0)
        while True:
            share, doing = look()
            bar.update(task, completed=min(share, _FULL), description=doing)
            if over.wait(_EVERY):
                return


def _write_lines(look: Look, over: Event) -> None:
    written, wait, after = "", _LOG_FIRST - _FIRST, _LOG_EVERY
    while not over.wait(wait):
        wait, after = after, min(2 * after, _LOG_MOST)
        doing = look()[1]
        doing = f"running {doing}" if doing.startswith("step ") else doing
        if doing != written:
            written = doing
            print(f"planner: {written}", file=sys.stderr, flush=True)
