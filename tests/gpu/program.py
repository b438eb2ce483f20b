"""Programs that change their process for good: what they print, and what they are refused."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from typing import Any

from planner.errors import StowageError
from tests.preloaded import command


def printed_by(module: str, **variables: str) -> dict[str, Any]:
    """The JSON in the last line that a module prints, run as a program, with more environment variables."""
    environment = {**os.environ, **variables}
    ended = subprocess.run(
        command("-m", module), check=False, capture_output=True, text=True, timeout=600, env=environment
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    printed: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return printed


def refusal(call: Callable[[], Any]) -> str:
    """Why a call is refused; empty if it is not."""
    try:
        call()
    except StowageError as error:
        return str(error)
    return ""
