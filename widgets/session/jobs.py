"""Long things, each in a daemon thread; a new one of a kind takes the place of the one before."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, RLock, Thread
from time import perf_counter


class Job:
    """One long thing.

    Args:
        kind: of what.

    Attributes:
        stop: set once it is to stop, whether it may still say how it ended or not.
        current: whether it may still say anything; not once another took its place.
        under_way: set once what it works on can be looked at, and at its end.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.stop = Event()
        self.current = True
        self.under_way = Event()
        self.began = perf_counter()

    @property
    def seconds(self) -> float:
        """Since it began."""
        return perf_counter() - self.began

    def stopped(self) -> bool:
        """Whether it is to stop."""
        return self.stop.is_set()


class Jobs:
    """The long things of one session, one of a kind at a time.

    Args:
        turn: the lock under which messages are told, so that a job that was replaced says nothing afterwards.
    """

    def __init__(self, turn: RLock) -> None:
        self._turn = turn
        self._jobs: dict[str, Job] = {}
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether no more are begun."""
        return self._closed

    def start(self, kind: str, work: Callable[[Job], None]) -> Job | None:
        """Begin a job in the place of the one of its kind; None once all is closed."""
        with self._turn:
            self.drop(kind)
            if self._closed:
                return None
            job = self._jobs[kind] = Job(kind)

        def run() -> None:
            try:
                work(job)
            finally:
                with self._turn:
                    if self._jobs.get(kind) is job:
                        del self._jobs[kind]
                job.under_way.set()

        Thread(target=run, name=f"stowage {kind}", daemon=True).start()
        return job

    def at_work(self, kind: str) -> Job | None:
        """The job of a kind, None where there is none."""
        with self._turn:
            return self._jobs.get(kind)

    def running(self, *kinds: str) -> bool:
        """Whether a job of one of these kinds is at work and was not told to stop."""
        with self._turn:
            return any(kind in self._jobs and not self._jobs[kind].stopped() for kind in kinds)

    def cancel(self, kind: str) -> bool:
        """Have a job stop and say how it ended; returns whether there was one."""
        with self._turn:
            job = self._jobs.get(kind)
            if job is None or job.stopped():
                return False
            job.stop.set()
            return True

    def drop(self, *kinds: str) -> None:
        """Have jobs stop and say nothing more."""
        with self._turn:
            for kind in kinds:
                job = self._jobs.pop(kind, None)
                if job is not None:
                    job.current = False
                    job.stop.set()

    def close(self) -> None:
        """Drop all jobs and begin no more."""
        with self._turn:
            self._closed = True
            self.drop(*tuple(self._jobs))
