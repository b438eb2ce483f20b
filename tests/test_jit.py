"""Compiled kernels are kept on the disk and not used once a kernel that they call has changed; compiling is told of."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import preloaded

CALLED = """
from planner.jit import kernel

@kernel
def called():
    return {number}
"""
CALLING = """
from called import called
from planner.jit import kernel

@kernel
def calling():
    return 10 * called()
"""
ASKED = """
from pathlib import Path
from planner.jit import forget_changed

forget_changed(Path.cwd())
from calling import calling
print(calling(), sum(calling.stats.cache_hits.values()))
"""


def asked(folder: Path) -> tuple[int, int]:
    """What `calling` returns in a new process, and how many kernels came from the disk."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    said = subprocess.run(
        preloaded.command("-c", ASKED), cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    result, hits = said.stdout.split()
    return int(result), int(hits)


def test_a_kernel_is_compiled_anew_when_one_that_it_calls_has_changed(tmp_path: Path) -> None:
    (tmp_path / "calling.py").write_text(CALLING)
    (tmp_path / "called.py").write_text(CALLED.format(number=1))
    assert asked(tmp_path) == (10, 0)
    assert asked(tmp_path) == (10, 1)
    (tmp_path / "called.py").write_text(CALLED.format(number=23))
    assert asked(tmp_path) == (230, 0)


PLANNED = """
def heed(share, doing):
    if doing == "compiling a part of the planner, once on this computer":
        os._exit(7)

graph = planner.capture(zoo.load("mlp:layers=3"))
planner.plan_swaps(graph, planner.machine("laptop"), "60%", progress=heed)
"""
SEARCHED = """
graph = planner.capture(zoo.load("mlp:layers=150"))  # large enough to be laid out by the search's own thread
search = planner.search_swaps(graph, planner.machine("laptop"), "60%")
while search.progress.state == "running":
    if search.progress.doing == "compiling a part of the planner, once on this computer":
        os._exit(7)
    time.sleep(0.01)
"""
SHOWN = """
def heed(message):
    if message.content.get("doing") == "compiling a part of the planner, once on this computer":
        os._exit(7)

session = Session(zoo.load("mlp:layers=3"), machine="laptop", budget="60%")
session.listen(heed)
session.plan
"""
CASES = {"a plan": PLANNED, "a search": SEARCHED, "a session": SHOWN}
#: Each in a process of its own, forked from one that has imported everything and compiled nothing.
EACH = """
import json, os, sys, time
import planner
from planner import zoo
from torch import _dynamo
from widgets.session import Session

status = {}
for name, code in json.loads(sys.argv[1]).items():
    process = os.fork()
    if not process:
        exec(code)
        os._exit(0)
    status[name] = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
print(json.dumps(status))
"""


@pytest.fixture(scope="module")
def status(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """How a process ends that ends in its own way when it learns that kernels are compiled; each compiles its own."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path_factory.mktemp("compiled"))}
    command = [sys.executable, "-c", EACH, json.dumps(CASES)]
    said = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(said.stdout))


@pytest.mark.parametrize("case", CASES)
def test_whoever_waits_for_the_first_plan_on_a_computer_is_told_what_for(case: str, status: dict[str, int]) -> None:
    assert status[case] == 7


INTERRUPTED = """
import signal
from numba.core import event
from calling import calling

class Dropped:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

class Dropping(event.Listener):
    def on_start(self, _):
        Dropped()

    def on_end(self, _):
        pass

with event.install_listener("numba:compiler_lock", Dropping()):
    try:
        calling()
    except KeyboardInterrupt:
        print("interrupted")
print(calling(), sum(calling.stats.cache_hits.values()))
"""


def test_control_c_in_a_finalizer_while_a_kernel_is_compiled_or_loaded_is_not_lost(tmp_path: Path) -> None:
    """LLVM's objects have finalizers in Python, where a KeyboardInterrupt is printed and forgotten."""
    (tmp_path / "calling.py").write_text(CALLING)
    (tmp_path / "called.py").write_text(CALLED.format(number=1))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = preloaded.command("-c", INTERRUPTED)
    for loaded in (0, 1):
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert (done.stdout, done.stderr) == (f"interrupted\n10 {loaded}\n", "")
