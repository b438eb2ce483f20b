"""What a result may depend on: versions and hardware."""

from __future__ import annotations

import os
import platform
from importlib import metadata

import psutil
import torch

from planner.profile import cpu_name
from planner.units import format_bytes


def environment() -> dict[str, str]:
    """Versions and hardware of this computer, by name."""
    found = {
        "planner": metadata.version("stowage"),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": metadata.version("numpy"),
        "numba": metadata.version("numba"),
        "system": platform.platform(),
        "processor": cpu_name(),
        "cores": str(os.cpu_count()),
        "threads": str(torch.get_num_threads()),
        "memory": format_bytes(psutil.virtual_memory().total),
    }
    if torch.version.cuda:
        found["cuda"] = torch.version.cuda
    return found
