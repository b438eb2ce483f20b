"""A process that has imported everything a worker needs and forks one in a few milliseconds.

Started as `python -m planner.run.workers.processes.fork_server`. It reads one line per worker from its standard input,
the address to connect to and the number of the worker, and ends when that is closed.
"""

from __future__ import annotations

import os
import signal
import sys

from planner import torch_private as private
from planner.run.workers.communication.shared_memory import load_exchange
from planner.run.workers.processes.worker import work


def serve() -> None:
    """Fork a worker for every line; workers end by themselves when whoever asked for them is gone."""
    private.import_compiler()  # or each worker would
    load_exchange()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them here
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for whoever asked
    for line in sys.stdin:
        address, worker = line.rstrip("\n").split("\t")
        if os.fork() == 0:
            sys.stdin.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                work(address, int(worker))
            finally:
                os._exit(1)


if __name__ == "__main__":
    serve()
