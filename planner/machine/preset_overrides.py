"""Presets with other figures: `rtx4090:memory=48GB,host_link=12GB/s`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from planner.errors import StowageError, did_you_mean
from planner.machine.machine_types import Link, Machine
from planner.machine.presets import with_hosts
from planner.units import BYTE_UNITS

#: What can be set of a preset, with an example of each.
SETTINGS = {"hosts": "4", "memory": "24GB", "host_memory": "64GB", "host_link": "25GB/s"}
_AMOUNT = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)\s*([a-z]*)", re.IGNORECASE | re.ASCII)
_LARGEST = 2**62


def with_settings(preset: Machine, settings: Mapping[str, str]) -> Machine:
    """A machine like a preset, with other figures.

    Args:
        preset: the machine.
        settings: text by name in `SETTINGS`: the number of hosts, memory of a device, memory of the host, and bandwidth
            of copies one way, which grows or shrinks both ways together in proportion.

    Raises:
        StowageError: there is no such setting, or a value is not an amount of it.
    """
    for name in settings:
        if name not in SETTINGS:
            raise StowageError(
                f"{preset.name} has no setting {name!r}{did_you_mean(name, SETTINGS)}; it takes {', '.join(SETTINGS)}"
            )
    found, set_to = preset, list[str]()
    if "hosts" in settings:
        found = with_hosts(found, _hosts(preset, settings["hosts"]))
        set_to += [f"hosts={found.hosts}"] if found.hosts > 1 else []
    if "memory" in settings:
        memory, text = _bytes(preset, "memory", settings["memory"])
        device = replace(found.device, memory_bytes=memory, name=f"{found.device.name}, set to {text}")
        found = replace(found, devices=(device,) * len(found.devices))
        set_to.append(f"memory={text}")
    if "host_memory" in settings:
        memory, text = _bytes(preset, "host_memory", settings["host_memory"])
        found = replace(found, host_memory_bytes=memory)
        set_to.append(f"host_memory={text}")
    if "host_link" in settings:
        bandwidth, text = _bytes(preset, "host_link", settings["host_link"].strip().removesuffix("/s"))
        old = found.host_link
        both = bandwidth * old.duplex_bandwidth / old.bandwidth
        found = replace(found, host_link=Link(float(bandwidth), both, old.latency))
        set_to.append(f"host_link={text}/s")
    return replace(found, name=f"{preset.name}:{','.join(set_to)}") if set_to else found


def _hosts(preset: Machine, text: str) -> int:
    if not text.strip().isdecimal():
        raise StowageError(f"hosts must be a whole number, as in {preset.name}:hosts=4, not {text!r}")
    return int(text)


def _bytes(preset: Machine, name: str, text: str) -> tuple[int, str]:
    """Bytes, and the amount with its unit as one writes it: machines are named in any case."""
    match = _AMOUNT.fullmatch(text.strip())
    unit = match[2].lower() if match else ""
    amount = int(float(match[1]) * BYTE_UNITS[unit]) if match and unit in BYTE_UNITS else 0
    if match is None or not 1 <= amount <= _LARGEST:
        raise StowageError(f"{name} must be an amount as in {preset.name}:{name}={SETTINGS[name]}, got {text!r}")
    return amount, match[1] + unit.upper().replace("I", "i")
