"""Report the progress of a capture while it is busy."""

from __future__ import annotations

from threading import Event, Thread

from planner.jit import doing
from planner.progress import Progress
from widgets.messages import loading_message
from widgets.session.state.jobs import Job
from widgets.session.state.session_state import SessionState

_EVERY_SECONDS = 0.25


class Loading:
    """Reports the progress of the capture, several times a second in a separate thread; cancels it with the job."""

    def __init__(self, session_state: SessionState, job: Job) -> None:
        self._session_state, self._job, self._over = session_state, job, Event()
        self.progress = Progress(stop=job.stop)
        self.ops = None if session_state.source.graph is None else len(session_state.source.graph.ops)
        Thread(target=self._tell, name="stowage loading", daemon=True).start()

    def _tell(self) -> None:
        while True:
            with self._session_state.message_bus.lock:  # no loading message may follow the graph
                if not self._over.is_set() and not self._job.stop.requested:
                    share, words = self.progress.share, doing(self.progress.doing)
                    text = self._session_state.source.name, words, share, self.ops, self._job.seconds
                    self._session_state.report(self._job, loading_message(*text))
            if self._over.wait(_EVERY_SECONDS) or self._job.stop.requested:
                return

    def end(self) -> None:
        """Report nothing more."""
        self._over.set()
