"""`planner machines`."""

from __future__ import annotations

import click

from planner.cli.output import examples, json_option, show, show_paragraph, show_table
from planner.units import format_bytes


@click.command(
    "machines",
    short_help="Machines that can be planned for.",
    epilog=examples("python -m planner machines", "python -m planner swap gpt --machine l4:memory=48GB"),
)
@json_option
def command(as_json: bool) -> None:
    """List the machines that can be planned for; `cpu` and `auto` are measured.

    The others are presets, whose memory, host_memory, host_link and hosts can be set wherever one is named, as in
    `l4:memory=48GB` or `h100x8:hosts=4`.

    How long an op takes here is measured once and kept in a file, whose path is printed below the table; `planner swap`
    and `planner run` measure anew with --remeasure, or when that file has been removed.
    """
    from planner import profile

    machines = profile.machines()
    facts = [
        {
            "name": m.name,
            "device": m.device.name,
            "devices": len(m.devices),
            "memory_bytes": m.device.memory_bytes,
            "host_memory_bytes": m.host_memory_bytes,
            "link_bytes_per_second": m.host_link.bandwidth,
            "link_duplex_bytes_per_second": m.host_link.duplex_bandwidth,
        }
        for m in machines
    ]
    if as_json:
        show({"machines": facts}, True)
        return
    show_table(
        ["machine", "memory", "host memory", "GB/s", "both", "device"],
        [
            [
                m.name,
                format_bytes(m.device.memory_bytes),
                format_bytes(m.host_memory_bytes),
                f"{m.host_link.bandwidth / 1e9:.4g}",
                f"{m.host_link.duplex_bandwidth / 1e9:.4g}",
                f"{len(m.devices)} x {m.device.name}" if len(m.devices) > 1 else m.device.name,
            ]
            for m in machines
        ],
    )
    click.echo()
    show_paragraph(
        "GB/s is what the link between a device and the host copies in one direction, and in both at once. Plans for "
        "all machines can be run on the CPU. With --device cuda, planner run runs one on the attached GPU, which has "
        "not been tried on any GPU yet: planner selftest --device cuda tests yours. Op times measured here are kept in "
        f"{profile.cache_path()}; --remeasure measures them anew."
    )
