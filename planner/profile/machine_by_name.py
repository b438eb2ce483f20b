"""Machines by name."""

from __future__ import annotations

from planner.errors import StowageError, did_you_mean
from planner.machine import PRESETS, Machine
from planner.progress import ShowProgress, reporting

_MEASURED = ("auto", "cpu")


def machine(name: str, *, progress: ShowProgress = True) -> Machine:
    """The machine with the given name.

    Args:
        name: a preset (`"v100-16gb"`, in any case), `"cpu"`, or `"auto"` for the attached machine; these two are
            measured once: op times are kept in the file that `planner.profile.cache_path()` names until `planner.run`
            or `planner.profile.prepare` is called with `remeasure=True`, or the file is removed.
        progress: True shows progress, False shows nothing; a function is called with the share done, 0 to 1, and a
            status text.

    Raises:
        StowageError: there is no such machine.
    """
    known = (*_MEASURED, *PRESETS)
    name = name.lower() if isinstance(name, str) else name
    if name in PRESETS:
        return PRESETS[name]
    if name not in _MEASURED:
        raise StowageError(f"unknown machine {name!r}{did_you_mean(name, known)}; choose one of {', '.join(known)}")
    from planner.profile.attached import attached, attached_cpu

    with reporting(progress) as report:
        report(0.0, "measuring this computer")
        return attached() if name == "auto" else attached_cpu()


def machines() -> list[Machine]:
    """All machines that can be planned for: the attached one, measured, and the presets."""
    return [machine(name) for name in (*_MEASURED, *PRESETS)]
