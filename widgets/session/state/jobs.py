"""Background jobs, each in a daemon thread; a new job replaces the earlier one of its kind."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, RLock, Thread
from time import perf_counter

from planner.cancel import CancelToken


class Job:
    """One background job.

    Args:
        kind: what the job does, such as `"search"`.

    Attributes:
        stop: cancelled when the job must stop, whether or not it may still report how it ended.
        current: whether the job may still report; False once another job replaced it.
        under_way: set once the object the job works on can be read, and at the job's end.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.stop = CancelToken()
        self.current = True
        self.under_way = Event()
        self.began = perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since the job began."""
        return perf_counter() - self.began


class Jobs:
    """The background jobs of one session, one of a kind at a time.

    Args:
        lock: the lock under which messages are sent, so that a replaced job sends nothing afterwards.
    """

    def __init__(self, lock: RLock) -> None:
        self._lock = lock
        self._jobs: dict[str, Job] = {}
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether no more jobs can be started."""
        return self._closed

    def start(self, kind: str, work: Callable[[Job], None]) -> Job | None:
        """Start a job, replacing the one of its kind; returns None once closed."""
        with self._lock:
            self.drop(kind)
            if self._closed:
                return None
            job = self._jobs[kind] = Job(kind)

        def run() -> None:
            try:
                work(job)
            finally:
                with self._lock:
                    if self._jobs.get(kind) is job:
                        del self._jobs[kind]
                job.under_way.set()

        Thread(target=run, name=f"stowage {kind}", daemon=True).start()
        return job

    def running_job(self, kind: str) -> Job | None:
        """The job of a kind that is running, or None."""
        with self._lock:
            return self._jobs.get(kind)

    def running(self, *kinds: str) -> bool:
        """Whether a job of one of these kinds is running and was not asked to stop."""
        with self._lock:
            return any(kind in self._jobs and not self._jobs[kind].stop.requested for kind in kinds)

    def cancel(self, kind: str) -> bool:
        """Ask a job to stop and to report how it ended; returns whether there was one to stop."""
        with self._lock:
            job = self._jobs.get(kind)
            if job is None or job.stop.requested:
                return False
            job.stop.cancel()
            return True

    def drop(self, *kinds: str) -> None:
        """Ask jobs to stop without any further report."""
        with self._lock:
            for kind in kinds:
                job = self._jobs.pop(kind, None)
                if job is not None:
                    job.current = False
                    job.stop.cancel()

    def close(self) -> None:
        """Drop all jobs and refuse to start more."""
        with self._lock:
            self._closed = True
            self.drop(*tuple(self._jobs))
