"""A program that is run in a process that was forked is like one that was started."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import preloaded

PROGRAM = """
import os, sys
sys.stderr.write("to the other stream")
print(__name__, sys.argv, sys.path[0], os.getcwd(), os.environ["MINE"], sys.stdin.read())
sys.exit(3)
"""


@pytest.mark.parametrize("kind", ["-c", "-u -c", "a script"])
def test_it_has_its_words_folder_environment_streams_and_status(kind: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(PROGRAM)
    words = [*(["script.py"] if kind == "a script" else [*kind.split(), PROGRAM]), "a", "b"]
    forked, started = (
        subprocess.run(
            command, cwd=tmp_path, env={**os.environ, "MINE": "1"}, input="text", capture_output=True,
            text=True, check=False,
        )
        for command in (preloaded.command(*words), [sys.executable, *words])
    )  # fmt: skip
    assert started.returncode == 3
    assert (forked.returncode, forked.stdout, forked.stderr) == (started.returncode, started.stdout, started.stderr)


WAITING = "import time\nprint('waiting', flush=True)\ntime.sleep(200)"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_it(number: int) -> None:
    process = subprocess.Popen(
        preloaded.command("-c", WAITING), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"waiting\n"
    os.killpg(process.pid, number)
    assert process.wait() == -number
    assert process.stdout.read() == b""  # ends as soon as nobody can write to it
    process.stdout.close()
