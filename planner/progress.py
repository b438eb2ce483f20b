"""How far a long call is: a line in a notebook, a bar in a terminal, now and then a line in a log.

Rich could draw in notebooks too, by an ipywidgets `Output` that stays in the notebook when it is empty. What is shown
here is a display that is replaced, and emptied in the end, so that nothing of it is seen or stored.
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

#: Takes the share that is done, from 0 to 1, and what is being done; it may raise to end the call.
Report = Callable[[float, str], object]
#: `True` shows how far a call is, `False` shows nothing, and a function is called instead.
Progress = bool | Report

Look = Callable[[], tuple[float, str]]

#: Seconds until anything is shown, and between two looks.
_FIRST, _EVERY = 0.5, 0.2
#: Seconds until a log has its first line; between two lines at first, which doubles, and at most.
_LOG_FIRST, _LOG_EVERY, _LOG_MOST = 2.0, 3.0, 60.0
#: A bar that is full stops its clock, and what was full is not the whole call.
_FULL = 0.999

#: One thing is shown at a time: a call within another one is a part of it.
_drawing = Lock()


@contextmanager
def reporting(progress: Progress) -> Iterator[Report]:
    """Show how far a block is; what it yields takes the share done and what is being done, from any thread.

    Args:
        progress: whether to show it, or what to call instead.

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
    """Refuse what is neither True, False nor a function.

    Raises:
        StowageError: it is something else.
    """
    if not (isinstance(progress, bool) or callable(progress)):
        raise StowageError(f"progress must be True, False or a function of (share, doing), got {progress!r}")


def silent(share: float, doing: str) -> None:
    """Show nothing."""


@contextmanager
def shown(look: Look) -> Iterator[None]:
    """Show how far a block is, once it has taken half a second; nothing is left of it when the block ends.

    A thread of its own draws, so that neither an interrupt nor an exception in the block leaves half a bar, and what
    takes long without a report is seen too.

    Args:
        look: the share done, from 0 to 1, and what is being done; cheap, and called from another thread.
    """
    get_ready()
    over = Event()
    drawer = Thread(target=copy_context().run, args=(_draw, look, over), name="stowage progress", daemon=True)
    try:
        drawer.start()
    except RuntimeError:  # no more threads may begin
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
        with suppress(Exception):  # what cannot be shown must not end what is being done
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
    """Import what draws a bar: that draws from Python's generator, which no capture allows, so it comes before one."""
    if _at_terminal() and "rich.progress" not in sys.modules:
        state = random.getstate()
        importlib.import_module("rich.progress")
        random.setstate(state)


def _notebook() -> Any:
    """Where the kernel of a notebook publishes what it displays; None where there is none, or a cell keeps it."""
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
    """What a notebook shows: a bar as wide as a hand, the share, and what is being done."""
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
    # what is printed meanwhile stands above the bar, unless it goes into a file: then it must stay there
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
