"""Machines by name."""

from __future__ import annotations

from planner.errors import StowageError, did_you_mean
from planner.machine import PRESETS, Machine, with_hosts
from planner.progress import ShowProgress, reporting

_MEASURED = ("auto", "cpu")


def machine(name: str, *, progress: ShowProgress = True) -> Machine:
    """The machine with the given name.

    Args:
        name: a preset (`"v100-16gb"`, in any case), several hosts like one (`"h100x8:hosts=4"`), `"cpu"`, or `"auto"`
            for the attached machine; these two are measured once: op times are kept in the file that
            `planner.profile.cache_path()` names until `planner.run` or `planner.profile.prepare` is called with
            `remeasure=True`, a run is much faster than they say, or the file is removed.
        progress: True shows progress, False shows nothing; a function is called with the share done, 0 to 1, and a
            status text.

    Raises:
        StowageError: there is no such machine.
    """
    known = (*_MEASURED, *PRESETS)
    name = name.lower() if isinstance(name, str) else name
    if name in PRESETS:
        return PRESETS[name]
    if isinstance(name, str) and ":" in name:
        return _of_several_hosts(*name.split(":", 1))
    if name not in _MEASURED:
        raise StowageError(f"unknown machine {name!r}{did_you_mean(name, known)}; choose one of {', '.join(known)}")
    from planner.profile.attached_machine import attached, attached_cpu

    with reporting(progress) as report:
        report(0.0, "measuring this computer")
        return attached() if name == "auto" else attached_cpu()


def _of_several_hosts(preset: str, settings: str) -> Machine:
    """The machine that `h100x8:hosts=4` names."""
    if preset not in PRESETS:
        raise StowageError(
            f"unknown preset {preset!r}{did_you_mean(preset, PRESETS)}; choose one of {', '.join(PRESETS)}"
        )
    key, _, hosts = settings.partition("=")
    if key.strip() != "hosts" or not hosts.strip().isdecimal():
        raise StowageError(f"a machine takes the number of its hosts, as in {preset}:hosts=4, not {settings!r}")
    return with_hosts(PRESETS[preset], int(hosts))


def machines() -> list[Machine]:
    """All machines that can be planned for: the attached one, measured, and the presets."""
    return [machine(name) for name in (*_MEASURED, *PRESETS)]
