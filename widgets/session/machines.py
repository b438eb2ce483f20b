"""Which machines there are to choose from, without measuring any."""

from __future__ import annotations

import psutil

from planner.errors import StowageError
from planner.machine import machine
from planner.machine.presets import PRESETS
from planner.machine.types import Machine
from widgets.canvas.machine_message import label_of

#: What is planned for where no GPU is attached: the machine of the paper that the planner is held against.
_USUAL = "v100-16gb"
_HERE = "this computer's CPU"


def default_name() -> str:
    """The machine to plan for if none is asked for: the attached GPU, else a usual one."""
    return "auto" if _has_gpu() else _USUAL


def find(asked: str | Machine | None) -> Machine:
    """The machine asked for; the attached ones are measured, which takes a second or two.

    Raises:
        StowageError: there is no machine of that name.
    """
    return asked if isinstance(asked, Machine) else machine(asked or default_name(), progress=False)


def choice(shown: Machine) -> list[tuple[str, str, int]]:
    """Name, label and device bytes of every machine that one may change to."""
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
    """Refuse a name that no machine has, without measuring anything.

    Raises:
        StowageError: there is no machine of that name.
    """
    if asked is not None and not isinstance(asked, str | Machine):
        raise StowageError(f"a {type(asked).__name__} is no machine; give a name such as {_USUAL!r}, or a Machine")
    if isinstance(asked, str) and asked not in {"auto", "cpu"}:
        machine(asked)


def name_of(asked: str | Machine) -> str:
    """What to call a machine that may not be measured yet."""
    if isinstance(asked, Machine):
        return label_of(asked)
    return {"cpu": _HERE, "auto": "what is attached"}.get(asked) or label_of(machine(asked))
