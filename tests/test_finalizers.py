"""What is dropped is told of in another thread, so that no Ctrl-C is lost in the main one."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable

import pytest

from planner.capture import capture
from planner.finalizers import on_dropped
from planner.profile import machine
from planner.run import run
from planner.shutdown import on_shutdown
from planner.swap import search_swaps
from tests.run.steps import mlp


class Thing:
    """Something to drop."""

    def ask(self) -> None:
        raise AssertionError("it is gone")


def python_called(act: Callable[[], object]) -> list[str]:
    """Names of the Python functions that run in this thread meanwhile; in each a KeyboardInterrupt may be raised."""
    called: list[str] = []

    def note(frame: object, event: str, _: object) -> None:
        if event == "call":
            called.append(frame.f_code.co_name)  # type: ignore[attr-defined]

    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
    return called


def test_it_is_called_soon_in_another_thread() -> None:
    threads: list[int] = []
    called = threading.Event()

    def ask() -> None:
        threads.append(threading.get_ident())
        called.set()

    things = [Thing()]
    on_dropped(things[0], ask)
    gc.collect()
    assert not called.is_set()
    assert python_called(things.clear) == []
    assert called.wait(120)
    assert threads != [threading.get_ident()]


def test_what_one_raises_does_not_keep_the_next_from_being_called(monkeypatch: pytest.MonkeyPatch) -> None:
    said = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda _: said.set())
    called = threading.Event()
    things = [Thing()]
    on_dropped(things[0], lambda: 1 / 0)
    things.clear()
    assert said.wait(120)
    until = threading.Event()
    while any(thread.name == "dropped objects" for thread in threading.enumerate()):
        until.wait(0.001)
    things = [Thing()]
    on_dropped(things[0], called.set)
    things.clear()
    assert called.wait(120)


def test_no_python_runs_where_a_thing_to_ask_at_the_end_is_dropped() -> None:
    things = [Thing()]
    on_shutdown(things[0].ask)
    assert python_called(things.clear) == []


def test_dropping_a_run_or_a_search_stops_it_without_python_in_this_thread() -> None:
    step = mlp()
    running = [run(step, steps=1_000_000)]
    search = [search_swaps(capture(mlp()), machine("v100-16gb"), "90%")]
    stop, cancelled = running[0]._runner.stop, search[0]._runner.cancelled
    for held, token in ((running, stop), (search, cancelled)):
        gc.collect()
        assert python_called(held.clear) == []
        wait = threading.Event()
        while not token.requested:
            wait.wait(0.001)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_is_told_too() -> None:
    on_dropped(Thing(), lambda: None)
    child = os.fork()
    if child == 0:
        called = threading.Event()
        on_dropped(Thing(), called.set)
        os._exit(0 if called.wait(120) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
