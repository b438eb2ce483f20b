"""`planner partition`."""

from __future__ import annotations

import click

from planner.cli.output import json_option, show, show_table
from planner.progress import reporting
from planner.units import format_bytes


@click.command("partition", epilog="Example: python -m planner partition --coverage gpt:layers=4,hidden=256 --json")
@click.argument("model")
@click.option("--coverage", "as_coverage", is_flag=True, help="List how the operators of MODEL can be split.")
@json_option
def command(model: str, as_coverage: bool, as_json: bool) -> None:
    """Show how the whole step of MODEL can be split over several workers.

    MODEL is a zoo name with key=value arguments (see `planner models`), or path/to/file.py:function, where the function
    returns a planner.TrainStep.

    An operator is `described` by a formula, from which its splits are derived; `opaque` along some of its axes and
    split along others; or computed `whole` by every worker.
    """
    from planner import zoo
    from planner.capture import capture
    from planner.errors import StowageError
    from planner.partition import coverage

    if not as_coverage:
        raise StowageError("it cannot search for a partition yet: add --coverage to list how operators can be split")
    step = zoo.load(model)
    with reporting(True) as report:
        graph = capture(step, progress=report)
    found = coverage(graph)
    shares = {kind: found.percent(kind) for kind in ("described", "opaque", "whole")}
    if not as_json:
        rows = [
            [entry.target, entry.kind, f"{entry.ops:,}", format_bytes(entry.bytes), " ".join(entry.strategies) or "-"]
            for entry in found.operators
        ]
        show_table(["operator", "kind", "ops", "traffic", "axes"], rows)
    show(
        {
            "ops": len(graph.ops),
            **{f"{kind}_ops_percent": ops for kind, (ops, _) in shares.items()},
            **{f"{kind}_bytes_percent": size for kind, (_, size) in shares.items()},
            "operators": [
                {
                    "target": entry.target, "kind": entry.kind, "ops": entry.ops, "bytes": entry.bytes,
                    "axes": list(entry.strategies),
                }
                for entry in found.operators
            ],
        },
        as_json,
        replacements={
            "operators": ...,
            **{f"{kind}_bytes_percent": round(size, 2) for kind, (_, size) in shares.items()},
        },
    )  # fmt: skip
