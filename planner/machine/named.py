"""Machines by name."""

from __future__ import annotations

from planner.errors import StowageError, did_you_mean
from planner.machine.presets import PRESETS
from planner.machine.types import Machine
from planner.progress import Progress, reporting

_MEASURED = ("auto", "cpu")


def machine(name: str, *, progress: Progress = True) -> Machine:
    """The machine of that name.

    Args:
        name: a preset (`"v100-16gb"`, in any case), `"cpu"`, or `"auto"` for what is attached; these two are measured
            once: op times are kept in the file that `planner.machine.cache_path()` names until `remeasure=True` is
            asked of `planner.run` or `planner.machine.timed`, or the file is removed.
        progress: True shows how far it is, False shows nothing; a function is called with the share done, 0 to 1, and
            what is being done.

    Raises:
        StowageError: there is no such machine.
    """
    known = (*_MEASURED, *PRESETS)
    name = name.lower() if isinstance(name, str) else name
    if name in PRESETS:
        return PRESETS[name]
    if name not in _MEASURED:
        raise StowageError(f"unknown machine {name!r}{did_you_mean(name, known)}; choose one of {', '.join(known)}")
    from planner.machine.attached import attached, attached_cpu

    with reporting(progress) as report:
        report(0.0, "measuring this computer")
        return attached() if name == "auto" else attached_cpu()


def machines() -> list[Machine]:
    """Every machine that can be planned for: what is attached, measured, and the presets."""
    return [machine(name) for name in (*_MEASURED, *PRESETS)]
