"""Compiled kernels are kept on the disk and not used once a kernel that they call has changed; compiling is told of."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
    command = [sys.executable, "-c", ASKED]
    said = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
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
import os, planner
from planner import zoo

def heed(share, doing):
    if doing == "compiling the planner, once on this computer":
        os._exit(7)

graph = planner.capture(zoo.load("mlp:layers=3"))
planner.plan_swaps(graph, planner.machine("laptop"), "60%", progress=heed)
"""
SEARCHED = """
import os, planner, time
from planner import zoo

graph = planner.capture(zoo.load("mlp:layers=150"))  # large enough to be laid out by the search's own thread
search = planner.search_swaps(graph, planner.machine("laptop"), "60%")
while search.progress.state == "running":
    if search.progress.doing == "compiling the planner, once on this computer":
        os._exit(7)
    time.sleep(0.01)
"""
SHOWN = """
import os, planner, time
from planner import zoo
from widgets.session import Session

def heed(message):
    if message.content.get("doing") == "compiling the planner, once on this computer":
        os._exit(7)

session = Session(zoo.load("mlp:layers=3"), machine="laptop", budget="60%")
session.listen(heed)
session.plan
"""


@pytest.mark.parametrize("code", [PLANNED, SEARCHED, SHOWN])
def test_whoever_waits_for_the_first_plan_on_a_computer_is_told_what_for(code: str, tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 7


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
    command = [sys.executable, "-c", INTERRUPTED]
    for loaded in (0, 1):
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert (done.stdout, done.stderr) == (f"interrupted\n10 {loaded}\n", "")
