"""Compiled kernels are kept on the disk, and not used once the source of a kernel that they call has changed."""

import os
import subprocess
import sys
from pathlib import Path

CALLED = """
from planner.kernels import kernel

@kernel
def called():
    return {number}
"""
CALLING = """
from called import called
from planner.kernels import kernel

@kernel
def calling():
    return 10 * called()
"""
ASKED = """
from pathlib import Path
from planner.kernels import forget_changed

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
