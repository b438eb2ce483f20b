"""`planner validate`."""

from __future__ import annotations

import click

from planner.cli.output import examples, json_option, show


@click.command(
    "validate",
    short_help="Whether a plan is right for a graph.",
    epilog=examples("python -m planner validate plan.json graph.json"),
)
@click.argument("plan", type=click.Path())
@click.argument("graph", type=click.Path())
@json_option
def command(plan: str, graph: str, as_json: bool) -> None:
    """Prove that a plan is right for a graph, or say what is wrong with it.

    PLAN is the file of a plan of swaps, or of a partition over several workers.
    """
    from planner import graph as graphs
    from planner import plan as plans
    from planner.errors import StowageError
    from planner.files import read_text

    try:
        captured = graphs.load(graph)
    except StowageError as error:
        raise StowageError(f"{error} (the order is: validate PLAN GRAPH)") from error
    try:
        text = read_text(plan)
        if '"stowage-partition"' in text:
            from planner import partition

            errors = partition.validate_partition(partition.partition_from_json(text), captured)
        else:
            errors = plans.validate(plans.plan_from_json(text), captured)
    except StowageError as error:
        errors = [str(error)]
    show({"valid": not errors, "errors": errors}, as_json)
    if errors:
        raise click.exceptions.Exit(2)
