"""Stands for a process that another one has forked: passes on signals, and ends as it does.

Uses nothing but modules that are there in a moment. Called with the folder of the session and the words that `python`
would be called with.
"""

import fcntl
import marshal
import os
import signal
import socket
import sys

_PASSED_ON = signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2


def connect(folder):
    """A connection to the server, which is started where there is none."""
    with open(f"{folder}/lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            return _connected(folder)
        except OSError:
            _start(folder)
            return _connected(folder)


def _connected(folder):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(f"{folder}/socket")
    return connection


def _start(folder):
    """Start the server, in a session of its own and without our streams, and wait until it is ready."""
    with open(f"{folder}/server", "rb") as file:
        _, environment = marshal.load(file)
    ready, say_ready = os.pipe()
    server = os.path.join(os.path.dirname(__file__), "server.py")
    log = os.open(f"{folder}/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    if os.fork() == 0:
        os.setsid()
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        for ours, theirs in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(ours, theirs)
        os.set_inheritable(say_ready, True)
        os.execve(sys.executable, [sys.executable, server, folder, str(say_ready)], environment)
    os.close(say_ready)
    if os.read(ready, 1) != b"!":
        with open(f"{folder}/log") as file:
            sys.exit(f"the process that others are forked from does not start: {file.read()}")


def main(folder, words):
    # whatever comes before there is somebody to pass it on to
    signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    ignored = [int(each) for each in _PASSED_ON if signal.getsignal(each) is signal.SIG_IGN]
    connection = connect(folder)
    request = marshal.dumps((words, os.getcwd(), dict(os.environb), ignored))
    socket.send_fds(connection, [len(request).to_bytes(4, "big")], [0, 1, 2])
    connection.sendall(request)
    said = connection.makefile("rb")
    process = int(said.readline())

    def pass_on(number, _):
        try:
            os.killpg(process, number)
        except ProcessLookupError:  # it has just ended
            pass

    for each in _PASSED_ON:
        signal.signal(each, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
    status = int(said.readline() or -signal.SIGKILL)
    signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    if status < 0:
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [-status])
    os._exit(status)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
