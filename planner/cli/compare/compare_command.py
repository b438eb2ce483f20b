"""The command, and its result as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from planner.cli.output import examples, json_option, show, show_table

if TYPE_CHECKING:
    from planner.plan import PlanComparison, TensorDifference

_EPILOG = examples(
    "python -m planner capture gpt --out graph.json",
    "python -m planner swap gpt --machine v100-16gb --budget 60% --method swap --out a.json",
    "python -m planner swap gpt --machine v100-16gb --budget 60% --method recompute --recompute-limit 30% --out b.json",
    "python -m planner compare a.json b.json graph.json",
    "python -m planner compare a.json b.json graph.json --json",
)


@click.command("compare", short_help="In what two plans of one step differ.", epilog=_EPILOG)
@click.argument("plan_a", type=click.Path())
@click.argument("plan_b", type=click.Path())
@click.argument("graph", type=click.Path())
@json_option
def command(plan_a: str, plan_b: str, graph: str, as_json: bool) -> None:
    """Say in what two plans of one step differ: figures, what happens to each tensor, and memory over time.

    PLAN_A and PLAN_B are files that `planner swap --out` wrote, and GRAPH is the step that they are for, as
    `planner capture --out` writes it.

    \b
    What the tables say:
      swapped       copied to or from the host in each step
      recomputed    made again by an op that runs again
      kept          neither
      line          the line of code that makes the tensor, or first uses it
      memory        the times in which it differs most, until the shorter step
                    ends

    Tensors that both plans treat alike are left out. --json lists all that differ.
    """
    from planner import graph as graphs
    from planner import plan as plans
    from planner.errors import StowageError

    first, second = plans.load_plan(plan_a), plans.load_plan(plan_b)
    try:
        captured = graphs.load(graph)
    except StowageError as error:
        raise StowageError(f"{error} (the order is: compare PLAN_A PLAN_B GRAPH)") from error
    found = plans.compare_plans(captured, first, second)
    if as_json:
        show(_facts(found), as_json)
        return
    show_table(["", "first", "second"], found.figure_rows())
    click.echo()
    if found.tensors:
        show_table(["tensor", "bytes", "line", "first", "second"], found.tensor_rows())
    else:
        click.echo("Both plans treat every tensor alike.")
    if found.times:
        click.echo()
        show_table(["when memory differs", "by up to", "where"], found.time_rows())


def _facts(found: PlanComparison) -> dict[str, Any]:
    return {
        "name": found.name,
        "first": asdict(found.first),
        "second": asdict(found.second),
        "tensors": [_tensor(one) for one in found.tensors],
        "same_tensors": found.same_tensors,
        "times": [asdict(span) for span in found.times],
    }


def _tensor(one: TensorDifference) -> dict[str, Any]:
    return {
        "storage": one.storage, "name": one.name, "kind": one.kind, "bytes": one.bytes, "line": one.line,
        "first": one.first, "second": one.second,
    }  # fmt: skip
