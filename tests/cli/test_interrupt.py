"""Ctrl-C ends a command with status 130 and one line, whatever it was doing; a run shows the steps it has made."""

import os
import subprocess
from pathlib import Path

from tests import preloaded

RUNNING = """
import os
import signal
import time
import torch
import planner


def rate(step):
    if step == 3:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)  # this is not the thread that is interrupted
    return 0.1


def f():
    return planner.TrainStep(
        torch.nn.Linear(8, 8), torch.ones(4, 8), loss=lambda m, b: m(b).square().mean(), optimizer=planner.SGD(lr=rate)
    )
"""
LOADING = """
import signal


def f():
    signal.raise_signal(signal.SIGINT)
"""


def test_control_c_ends_a_run_with_one_line_after_the_steps_it_has_made(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(RUNNING)
    words = ["run", f"{tmp_path / 'mine.py'}:f", "--budget", "100%", "--steps", "10"]
    done = subprocess.run(
        preloaded.command("-m", "planner", *words),
        capture_output=True, text=True, check=False, timeout=300, cwd=Path(__file__).parents[2],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 130
    # an empty line ends the one that ^C begins
    lines = [line for line in done.stderr.splitlines() if line and not line.startswith("planner: ")]
    assert "losses" in done.stdout
    assert lines == ["stopped after 3 of 10 steps"]


def test_control_c_while_the_model_is_loaded_ends_a_run_with_one_line(planner, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(LOADING)
    answer = planner("run", f"{tmp_path / 'mine.py'}:f", "--budget", "100%", "--steps", "10")
    assert (answer.status, answer.out) == (130, "")
    (line,) = filter(None, answer.err.splitlines())
    assert line.startswith("error: stopped")
