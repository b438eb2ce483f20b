"""The steps of the self test under PyTorch's sanitizer of streams, which has to be on before PyTorch is imported.

It knows a tensor by the address of its first byte, so that it is a second opinion: in an arena, tensors overlap whose
first bytes are others.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from planner.errors import StowageError
from planner.progress import Progress
from planner.run import DEVICES
from planner.selftest.eager_comparison import expected, make_steps
from planner.selftest.repeatable_kernels import repeatable_kernels
from planner.selftest.sample_steps import planned_step

_STEPS = 2
_LONGEST = 240  # seconds
_SWITCH = "TORCH_CUDA_SANITIZER"


def sanitized(device: str, names: Sequence[str]) -> str:
    """What the sanitizer has found in steps made by plans, in another process; empty if that is nothing.

    Args:
        device: PyTorch's name of its type.
        names: of the steps.

    Raises:
        StowageError: the process has not ended in time.
    """
    command = [sys.executable, "-c", f"from {__name__} import main; main()", device, *names]
    try:
        ended = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=_LONGEST, env={**os.environ, _SWITCH: "1"}
        )
    except subprocess.TimeoutExpired as error:
        raise StowageError(f"the steps under the sanitizer have not ended after {_LONGEST} seconds") from error
    if not ended.returncode:
        return ""
    lines = [line.strip() for line in ended.stderr.splitlines() if line.strip()]
    return lines[-1] if lines else f"the process ended with {ended.returncode}"


def main() -> None:
    """Make the steps that the command line names, on the device that it begins with; what differs ends the process."""
    device, *names = sys.argv[1:]
    for name in names:
        with repeatable_kernels():
            tested = planned_step(name, device, Progress())
            made = make_steps(tested, expected(tested, _STEPS), DEVICES[device])
        if made.different:
            sys.exit(f"{made.different[0]} of {name} differs from eager's")
