"""How far a long call is, on standard error: a bar for a person, now and then a plain line in a log."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

Report = Callable[[float, str], None]

#: Seconds until a log has its first line, and between two lines.
_FIRST, _BETWEEN = 2.0, 3.0
#: A bar that is full stops its clock, and what was full is not the whole command.
_FULL = 0.999


@contextmanager
def progress() -> Iterator[Report]:
    """Show how far a long call is; what it yields takes a share from 0 to 1 and what is being done."""
    console = Console(stderr=True)
    with _bar(console) if console.is_terminal else _lines() as report:
        yield report


@contextmanager
def _bar(console: Console) -> Iterator[Report]:
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda share, what: bar.update(task, completed=min(share, _FULL), description=what)


@contextmanager
def _lines() -> Iterator[Report]:
    doing, over = "starting", Event()

    def report(_: float, what: str) -> None:
        nonlocal doing
        doing = f"running {what}" if what.startswith("step ") else what

    def write() -> None:
        written, wait = "", _FIRST
        while not over.wait(wait):
            wait = _BETWEEN
            if doing != written:
                written = doing
                print(f"planner: {written}", file=sys.stderr, flush=True)

    writer = Thread(target=write, daemon=True)
    writer.start()
    try:
        yield report
    finally:
        over.set()
        writer.join()
