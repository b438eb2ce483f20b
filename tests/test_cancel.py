"""One token cancels everything: between steps at once, within one when its patience has run out."""

import time
from queue import SimpleQueue
from threading import Thread, current_thread

import pytest

from planner.cancel import Cancelled, CancelToken, interruptibly
from planner.progress import Progress, announce, reporting


def test_a_token_stops_what_checks_it_and_the_kernels_that_poll_its_flag() -> None:
    stop = CancelToken()
    stop.check()
    assert (stop.requested, stop.flag[0], stop.wait(0)) == (False, 0, False)
    stop.cancel()
    assert (stop.requested, stop.flag[0], stop.wait(0)) == (True, 1, True)
    with pytest.raises(Cancelled):
        stop.check()
    stop.clear()
    stop.check()
    assert (stop.requested, stop.flag[0]) == (False, 0)


def test_what_a_token_asks_sets_the_flag_too() -> None:
    answers = iter([False, True])
    stop = CancelToken(lambda: next(answers))
    stop.check()
    with pytest.raises(Cancelled):
        stop.check()
    assert stop.flag[0] == 1


def test_a_step_has_as_long_as_its_patience() -> None:
    stop = CancelToken()
    within = stop.within_step()
    stop.cancel(patience=1000)
    assert stop.requested
    within.check()
    stop.cancel()  # the shorter patience counts, whichever was asked for last
    stop.cancel(patience=1000)
    with pytest.raises(Cancelled):
        within.check()


def test_a_token_may_be_cancelled_by_the_clock() -> None:
    CancelToken.after(1000).check()
    with pytest.raises(Cancelled):
        CancelToken.after(-1).check()


def test_no_handler_of_errors_swallows_it() -> None:
    """A model's code may run between a check and whoever cancelled."""
    stop = CancelToken()
    stop.cancel()

    def model() -> None:
        try:
            stop.check()
        except Exception:
            pytest.fail("it was handled as an error")

    with pytest.raises(Cancelled):
        model()


def test_code_that_checks_nothing_is_interrupted() -> None:
    stop = CancelToken()
    begun: list[int] = []

    def work() -> None:
        begun.append(1)
        while True:
            time.sleep(0.001)

    def cancel() -> None:
        while not begun:
            time.sleep(0.001)
        stop.cancel()

    Thread(target=cancel).start()
    with pytest.raises(Cancelled):
        interruptibly(work, stop)


def test_an_interrupt_that_is_lost_comes_again() -> None:
    """Python drops errors that are raised in finalizers, and code that goes on whatever happens drops them, too."""
    stop = CancelToken()
    dropped: list[str] = []

    def work() -> None:
        stop.cancel()
        try:
            while True:
                time.sleep(0.001)
        except BaseException:
            dropped.append("the error")
        while True:
            time.sleep(0.001)

    with pytest.raises(Cancelled):
        interruptibly(work, stop)
    assert len(dropped) == 1


def test_watching_ends_also_where_the_interrupt_comes_just_after_the_work() -> None:
    """A thread that went on watching could interrupt its caller much later."""
    looks: list[Thread] = []
    values: SimpleQueue[str] = SimpleQueue()

    def asked() -> bool:
        looks.append(current_thread())
        if len(looks) == 3:  # the first was before the work, and the second has interrupted it
            values.put("the end")
        return len(looks) > 1

    # Python raises an interrupt only in its own code, and this work runs none: it waits for the end, and then raises an
    # error of its own, which is being handled once the interrupt comes
    work = iter(values.get, "the end").__next__
    with pytest.raises(Cancelled):
        interruptibly(work, CancelToken(asked))
    watcher = looks[-1]
    assert watcher is not current_thread()
    watcher.join(10)
    assert not watcher.is_alive()


def test_a_cleanup_is_interrupted_once_however_long_it_takes() -> None:
    stop = CancelToken()
    cleaned: list[str] = []

    def work() -> None:
        stop.cancel()
        try:
            while True:
                time.sleep(0.001)
        finally:
            for _ in range(300):
                time.sleep(0.001)
            cleaned.append("all")

    with pytest.raises(Cancelled):
        interruptibly(work, stop)
    assert cleaned == ["all"]


def test_a_part_of_the_progress_never_falls_and_a_report_checks_the_token() -> None:
    said: list[tuple[float, str]] = []
    stop = CancelToken()
    whole = Progress(lambda share, doing: said.append((share, doing)), stop)
    part = whole.part(0.5, 1.0, "packing")
    part(0.5)
    part(0.25, "packing again")
    part(2.0)
    assert said == [(0.5, "packing"), (0.75, "packing"), (0.75, "packing again"), (1.0, "packing again")]
    assert (whole.share, whole.doing) == said[-1]
    stop.cancel()
    with pytest.raises(Cancelled):
        part(0.5)
    assert len(said) == 4


def test_compiling_is_announced_to_the_innermost_call_that_reports() -> None:
    outer: list[tuple[float, str]] = []
    inner: list[tuple[float, str]] = []
    announce("nobody reports")
    with reporting(lambda *said: outer.append(said)) as report:
        report(0.25, "outer")
        with reporting(lambda *said: inner.append(said)), reporting(False):
            announce("compiling")
        announce("compiling more")
    announce("nobody reports any more")
    assert inner == [(0.0, "compiling")]
    assert outer == [(0.25, "outer"), (0.25, "compiling more")]
