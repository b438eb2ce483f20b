"""Machines by name."""

from __future__ import annotations

from planner.errors import StowageError, did_you_mean
from planner.machine import PRESETS, SETTINGS, Machine, with_settings
from planner.progress import ShowProgress, reporting

_MEASURED = ("auto", "cpu")


def machine(
    name: str,
    *,
    memory: str | None = None,
    host_memory: str | None = None,
    host_link: str | None = None,
    hosts: int | None = None,
    progress: ShowProgress = True,
) -> Machine:
    """The machine with the given name.

    Args:
        name: a preset (`"v100-16gb"`, in any case), a preset with other figures (`"rtx4090:memory=48GB"`,
            `"h100x8:hosts=4"`), `"cpu"`, or `"auto"` for the attached machine; these two are measured once: op times
            are kept in the file that `planner.profile.cache_path()` names until `planner.run` or
            `planner.profile.prepare` is called with `remeasure=True`, a run is much faster than they say, or the file
            is removed.
        memory, host_memory: of a preset's device and host, such as `"24GB"` or `"24GiB"`; None leaves the preset's.
        host_link: bandwidth of copies between them, one way, such as `"25GB/s"`.
        hosts: how many there are, connected by the preset's network.
        progress: True shows progress, False shows nothing; a function is called with the share done, 0 to 1, and a
            status text.

    Raises:
        StowageError: there is no such machine, or it cannot have such a figure.
    """
    given = {"hosts": hosts, "memory": memory, "host_memory": host_memory, "host_link": host_link}
    settings = {setting: str(value) for setting, value in given.items() if value is not None}
    known = (*_MEASURED, *PRESETS)
    name = name.lower() if isinstance(name, str) else name
    preset, colon, more = name.partition(":") if isinstance(name, str) else (name, "", "")
    if colon and preset not in PRESETS:
        raise StowageError(
            f"unknown preset {preset!r}{did_you_mean(preset, PRESETS)}; choose one of {', '.join(PRESETS)}"
        )
    if preset in PRESETS:
        return with_settings(PRESETS[preset], (_settings(preset, more) if colon else {}) | settings)
    if name not in _MEASURED:
        raise StowageError(f"unknown machine {name!r}{did_you_mean(name, known)}; choose one of {', '.join(known)}")
    if settings:
        raise StowageError(
            f"{name} is measured and has no {next(iter(settings))} to set; set it of a preset such as l4"
        )
    from planner.profile.attached_machine import attached, attached_cpu

    with reporting(progress) as report:
        report(0.0, "measuring this computer")
        return attached() if name == "auto" else attached_cpu()


def kind_of_measured(name: str) -> str | None:
    """The type of the device of a machine that is measured, without measuring it; None for all other names.

    Args:
        name: as in `machine`.
    """
    if name.lower() not in _MEASURED:
        return None
    import torch

    return "cuda" if name.lower() == "auto" and torch.cuda.is_available() else "cpu"


def _settings(preset: str, text: str) -> dict[str, str]:
    """The settings in a name."""
    found: dict[str, str] = {}
    for part in text.split(","):
        setting, equals, value = (word.strip() for word in part.partition("="))
        if not equals or setting in found:
            what = "set twice" if setting in found else "not a setting"
            examples = " or ".join(f"{preset}:{name}={example}" for name, example in SETTINGS.items())
            raise StowageError(f"{part.strip()!r} is {what}; write {examples}")
        found[setting] = value
    return found


def machines() -> list[Machine]:
    """All machines that can be planned for: the attached one, measured, and the presets."""
    return [machine(name) for name in (*_MEASURED, *PRESETS)]
