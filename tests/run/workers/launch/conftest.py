"""A process that forks the ranks of all these tests."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ports import free_port

ROOT = Path(__file__).parents[4]


class Launcher:
    """Starts ranks in processes that know of each other what a launcher's environment says."""

    def __init__(self):
        threads = max(1, (os.cpu_count() or 1) // 2)  # as two workers of one process have
        self._server = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("rank_server.py"))], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": str(threads)},
        )  # fmt: skip

    def start(self, scenario, ranks, *arguments):
        """Start ranks; returns the numbers of their processes."""
        address = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        return self._start(scenario, [{"RANK": str(rank), **address} for rank in range(ranks)], arguments)

    def start_hosts(self, folders, *arguments):
        """Start `torchrun` with these arguments on hosts that have a folder each."""
        self._start("host", [{} for _ in folders], [list(map(str, folders)), arguments])

    def _start(self, scenario, environments, arguments):
        asked = {"scenario": scenario, "arguments": arguments, "environments": environments}
        self._server.stdin.write(json.dumps(asked) + "\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline())

    def results(self):
        """What each rank returns."""
        return json.loads(self._server.stdout.readline())

    def launch(self, scenario, ranks, *arguments):
        self.start(scenario, ranks, *arguments)
        return self.results()

    def close(self):
        self._server.stdin.close()
        self._server.wait()


@pytest.fixture(scope="session")
def launcher():
    made = Launcher()
    yield made
    made.close()
