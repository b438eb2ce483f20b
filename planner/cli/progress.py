"""A progress line on standard error, shown only to a person."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

Report = Callable[[float, str], None]


@contextmanager
def progress() -> Iterator[Report]:
    """Show how far a long call is; what it yields takes a share from 0 to 1 and what is being done."""
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(),
        console=console, transient=True, disable=not console.is_terminal,
    ) as bar:  # fmt: skip
        task = bar.add_task("starting", total=1.0)
        yield lambda share, what: bar.update(task, completed=share, description=what)
