"""Machines by name."""

from __future__ import annotations

from planner.errors import StowageError, did_you_mean
from planner.machine.presets import PRESETS
from planner.machine.types import Machine

_MEASURED = ("auto", "cpu")


def machine(name: str) -> Machine:
    """The machine of that name.

    Args:
        name: a preset (`"v100-16gb"`, in any case), `"cpu"`, or `"auto"` for what is attached; these two are measured
            once: op times are kept in the file that `planner.machine.cache_path()` names until `remeasure=True` is
            asked of `planner.run` or `planner.machine.timed`, or the file is removed.

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

    return attached() if name == "auto" else attached_cpu()


def machines() -> list[Machine]:
    """Every machine that can be planned for: what is attached, measured, and the presets."""
    return [machine(name) for name in (*_MEASURED, *PRESETS)]
