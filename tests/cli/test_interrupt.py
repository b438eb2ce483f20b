"""Ctrl-C ends a command with status 130 and one line, whatever it was doing; a run shows the steps it has made."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FILE = """
import os
import signal
import time
import torch
import planner


def rate(step):
    if step + 2 == {step}:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)  # this is not the thread that is interrupted
    return 0.1


def f():
    if {step} == 1:
        signal.raise_signal(signal.SIGINT)
    return planner.TrainStep(
        torch.nn.Linear(8, 8), torch.ones(4, 8), loss=lambda m, b: m(b).square().mean(), optimizer=planner.SGD(lr=rate)
    )
"""


@pytest.mark.parametrize("step", [1, 5], ids=["while the model is loaded", "in the fourth step"])
def test_control_c_ends_a_run_with_one_line(tmp_path: Path, step: int) -> None:
    (tmp_path / "mine.py").write_text(FILE.replace("{step}", str(step)))
    words = ["run", f"{tmp_path / 'mine.py'}:f", "--budget", "100%", "--steps", "10"]
    done = subprocess.run(
        [sys.executable, "-m", "planner", *words],
        capture_output=True, text=True, check=False, timeout=300, cwd=Path(__file__).parents[2],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 130
    # an empty line ends the one that ^C begins
    lines = [line for line in done.stderr.splitlines() if line and not line.startswith("planner: ")]
    assert len(lines) == 1
    if step == 1:
        assert done.stdout == ""
        assert lines[0].startswith("error: stopped")
    else:
        assert "losses" in done.stdout
        assert lines[0] == "stopped after 3 of 10 steps"
