"""The machines available for planning, found without measuring any."""

from __future__ import annotations

import psutil

from planner.errors import StowageError, given_type
from planner.machine import PRESETS, Machine
from planner.profile import machine
from widgets.messages import label_of

#: Default machine where no GPU is attached: that of the paper whose results the planner is compared with.
_USUAL = "v100-16gb"
_HERE = "this computer's CPU"


def default_name() -> str:
    """Name of the default machine: the attached GPU, else `_USUAL`."""
    return "auto" if _has_gpu() else _USUAL


def find(asked: str | Machine | None) -> Machine:
    """The requested machine; attached devices are measured, which takes a second or two.

    Raises:
        StowageError: there is no machine of that name.
    """
    return asked if isinstance(asked, Machine) else machine(asked or default_name(), progress=False)


def choice(shown: Machine) -> list[tuple[str, str, int]]:
    """Name, label and device bytes of every machine that can be selected."""
    found = {name: (name, label_of(preset), preset.device.memory_bytes) for name, preset in PRESETS.items()}
    found["cpu"] = ("cpu", _HERE, int(psutil.virtual_memory().total))
    if _has_gpu():
        import torch

        properties = torch.cuda.get_device_properties(0)
        found["auto"] = ("auto", f"attached: {properties.name!s}", int(properties.total_memory))
    found[shown.name] = (shown.name, label_of(shown), shown.device.memory_bytes)
    return list(found.values())


def _has_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def check(asked: str | Machine | None) -> None:
    """Refuse an unknown machine name, without measuring anything.

    Raises:
        StowageError: there is no machine of that name.
    """
    if asked is not None and not isinstance(asked, str | Machine):
        raise StowageError(f"{given_type(asked)} is no machine; give a name such as {_USUAL!r}, or a Machine")
    if isinstance(asked, str) and asked not in {"auto", "cpu"}:
        machine(asked)


def name_of(asked: str | Machine) -> str:
    """The name of a machine that may not have been measured yet."""
    if isinstance(asked, Machine):
        return label_of(asked)
    return {"cpu": _HERE, "auto": "what is attached"}.get(asked) or label_of(machine(asked))
