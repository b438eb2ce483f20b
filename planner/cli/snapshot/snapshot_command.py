"""The command."""

from __future__ import annotations

from typing import Any

import click

from planner.cli.output import examples, json_option, show, show_paragraph, show_table
from planner.cli.snapshot.snapshot_output import comparison_facts, comparison_rows, holder_facts, holder_rows
from planner.errors import StowageError
from planner.units import format_percent

_EPILOG = examples(
    "python -m planner snapshot snapshot.pickle",
    "python -m planner snapshot snapshot.pickle --device 1 --lines 30 --json",
    "python -m planner snapshot snapshot.pickle --graph graph.json --plan plan.json",
)


@click.command("snapshot", short_help="The peak of a GPU's memory snapshot, by line of code.", epilog=_EPILOG)
@click.argument("file", type=click.Path())
@click.option("--device", type=int, default=None, help="Number of the device; without it, the only one in the file.")
@click.option(
    "--lines", type=click.IntRange(min=1), default=10, show_default=True, help="How many lines of code to show."
)
@click.option(
    "--graph", "graph_path", type=click.Path(), default=None, help="The step, as `planner capture --out` writes it."
)
@click.option("--plan", "plan_path", type=click.Path(), default=None, help="The plan that was run, with --graph.")
@json_option
def command(
    file: str, device: int | None, lines: int, graph_path: str | None, plan_path: str | None, as_json: bool
) -> None:
    """Show the peak of a memory snapshot, and which lines of code hold it; nothing in the file is executed.

    FILE is what torch.cuda.memory._dump_snapshot wrote. With --graph, the peak is compared with the predicted one.
    """
    from planner import graph as graphs
    from planner import plan as plans
    from planner import snapshot

    if plan_path is not None and graph_path is None:
        raise StowageError("--plan needs the step that it is for: add --graph graph.json")
    found = snapshot.read(file, device)
    peak, holders = found.peak, found.holders()
    facts: dict[str, Any] = {
        "device": found.device,
        "events": len(found.events),
        "peak_reserved_bytes": peak.reserved_bytes,
        "allocated_bytes": peak.allocated_bytes,
        "fragmentation_bytes": peak.fragmentation_bytes,
        "fragmentation": peak.fragmentation,
        "peak_allocated_bytes": found.peak_allocated_bytes,
    }
    compared = None
    if graph_path is not None:
        plan = None if plan_path is None else plans.load_plan(plan_path)
        compared = snapshot.compare(found, graphs.load(graph_path), plan)
    if as_json:
        more = {} if compared is None else {"comparison": comparison_facts(compared)}
        show(facts | {"holders": [holder_facts(one) for one in holders[:lines]]} | more, as_json)
        return
    show(facts, as_json, replacements={"fragmentation": format_percent(peak.fragmentation)})
    if not found.has_events:
        show_paragraph(f"{snapshot.NO_EVENTS}; call torch.cuda.memory._record_memory_history() before the step")
    click.echo()
    show_table(["held at the peak by", "bytes", "blocks"], holder_rows(holders, lines))
    if compared is not None:
        click.echo()
        show_table(["measured and predicted", "bytes"], comparison_rows(compared))
        click.echo()
        show_paragraph(compared.pairing)
