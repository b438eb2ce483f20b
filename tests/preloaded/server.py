"""A process that has imported everything, runs no thread, and forks one that runs a program for whoever asks.

Called with the folder of the session and a file descriptor to which it writes one byte once it can be asked.
"""

from __future__ import annotations

import gc
import marshal
import os
import runpy
import selectors
import signal
import socket
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
#: What programs and tests import, and what that imports once it is used.
MODULES = (
    "ipykernel.kernelapp", "ipykernel.zmqshell", "ipywidgets", "anywidget", "plotly.graph_objects", "scipy.optimize",
    "torch", "torch._dynamo", "torch._inductor", "torch._subclasses.schema_check_mode", "planner.cli.main",
    "widgets.figures", "widgets.session", "widgets.fallback", "widgets.panels",
    "nbclient", "nbformat", "playwright.sync_api", "transformers.models.llama.modeling_llama",
)  # fmt: skip


@dataclass(frozen=True)
class Request:
    """A program to run.

    Args:
        words: those that `python` is called with.
        folder: to work in.
        environment: variables and their values.
        ignored: signals that are ignored, others are as Python has them.
        streams: file descriptors of the three standard streams.
    """

    words: list[str]
    folder: str
    environment: dict[bytes, bytes]
    ignored: list[int]
    streams: list[int]


def preload() -> None:
    import planner

    for name in planner.__all__:
        getattr(planner, name)
    for name in MODULES:
        import_module(name)
    planner.pack([0, 0], [1, 1], [8, 8])  # the first compiled kernel that is used imports most of numba
    plotly = import_module("plotly.graph_objects")
    plotly.Figure([plotly.Bar(), plotly.Scatter()], {"title": {"text": ""}})  # and the first figure most of Plotly
    threads = len(os.listdir("/proc/self/task"))
    assert threads == 1, f"{threads - 1} threads, which would be lost in a fork, are running: {threading.enumerate()}"
    gc.collect()
    gc.freeze()  # a search for cycles would visit, and so copy, all of it


class Server:
    """Forks a process for every request, and says to who has asked which one it is and how it ends.

    Args:
        folder: of the session.
        owner: process of the session, after whose end there are no requests.
    """

    def __init__(self, folder: Path, owner: int) -> None:
        self._folder, self._owner = folder, owner
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(folder / "socket"))
        self._door.listen(64)
        self._events = selectors.DefaultSelector()
        self._events.register(self._door, selectors.EVENT_READ)
        self._ended, wakes = os.pipe()
        os.set_blocking(wakes, False)
        self._wakes = wakes
        self._events.register(self._ended, selectors.EVENT_READ)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._connections: dict[int, socket.socket] = {}

    def serve(self) -> Request:
        """Serve until the session ends; returns in processes that were forked, with what they are to do."""
        while self._is_asked():
            ready = {key.fileobj for key, _ in self._events.select(timeout=1.0)}
            for process, connection in list(self._connections.items()):
                if connection in ready:  # it is gone: nothing is sent this way
                    os.killpg(process, signal.SIGKILL)
                    os.waitpid(process, 0)
                    self._forget(process)
            if self._ended in ready:
                os.read(self._ended, 4096)
                self._report_ends()
            if self._door in ready and (request := self._fork()):
                return request
        for process in self._connections:
            os.killpg(process, signal.SIGKILL)
        os._exit(0)

    def _is_asked(self) -> bool:
        try:
            os.kill(self._owner, 0)
        except ProcessLookupError:
            return False
        return self._folder.exists()

    def _report_ends(self) -> None:
        for process, connection in list(self._connections.items()):
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                _say(connection, os.waitstatus_to_exitcode(status))
                self._forget(process)

    def _forget(self, process: int) -> None:
        connection = self._connections.pop(process)
        self._events.unregister(connection)
        connection.close()

    def _fork(self) -> Request | None:
        connection, _ = self._door.accept()
        try:
            size, streams, _, _ = socket.recv_fds(connection, 4, 3)
            with connection.makefile("rb") as sent:
                request = Request(*marshal.loads(sent.read(int.from_bytes(size, "big"))), streams)
        except (OSError, EOFError):  # it was ended before it had asked
            connection.close()
            return None
        if process := os.fork():
            for stream in streams:
                os.close(stream)
            os.setpgid(process, process)
            self._connections[process] = connection
            self._events.register(connection, selectors.EVENT_READ)
            _say(connection, process)
            return None
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._events.close()
        for each in (self._door, connection, *self._connections.values()):
            each.close()
        os.close(self._ended)
        os.close(self._wakes)
        return request


def _say(connection: socket.socket, number: int) -> None:
    with suppress(OSError):  # it may be gone
        connection.sendall(b"%d\n" % number)


def take_over(request: Request) -> None:
    """Make this process what it would be if it had been started by itself."""
    os.chdir(request.folder)
    os.environ.clear()
    os.environb.update(request.environment)
    for number in request.ignored:
        signal.signal(number, signal.SIG_IGN)
    for ours, theirs in zip(request.streams, range(3), strict=True):
        os.dup2(ours, theirs)
        os.close(ours)
    sys.stdin = sys.__stdin__ = TextIOWrapper(open(0, "rb", closefd=False), "utf-8")
    out, error = open(1, "wb", closefd=False), open(2, "wb", closefd=False)
    sys.stdout = sys.__stdout__ = TextIOWrapper(out, "utf-8", line_buffering=os.isatty(1))
    sys.stderr = sys.__stderr__ = TextIOWrapper(error, "utf-8", "backslashreplace", line_buffering=True)


def run(words: list[str]) -> None:
    """Run a program as `python` does, with as little of ours below it as can be."""
    words = words[words[0] == "-u" :]  # a worker of pytest-xdist, which flushes by itself
    kind = words[0] if words[0] in ("-c", "-m") else ""
    first = {"-c": "", "-m": os.getcwd()}.get(kind, str(Path(words[0]).resolve().parent))
    sys.path[:1] = [first, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    main = sys.modules["__main__"] = ModuleType("__main__")
    if kind == "-m":
        sys.argv = words[1:]
        runpy._run_module_as_main(words[1])  # type: ignore[attr-defined]
        return
    sys.argv = ["-c", *words[2:]] if kind else words
    if not kind:
        main.__file__ = words[0]
    source, name = (words[1], "<string>") if kind else (Path(words[0]).read_bytes(), words[0])
    exec(compile(source, name, "exec"), main.__dict__)


if __name__ == "__main__":
    sys.path[0] = str(ROOT)
    preload()
    server = Server(Path(sys.argv[1]), marshal.loads((Path(sys.argv[1]) / "server").read_bytes())[0])
    os.write(int(sys.argv[2]), b"!")
    os.close(int(sys.argv[2]))
    request = server.serve()
    take_over(request)
    run(request.words)
