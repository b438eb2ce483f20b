"""The command."""

from __future__ import annotations

import click

from planner.cli.output import examples, json_option, show, show_lines

_EPILOG = examples(
    "python -m planner capture gpt --out graph.json",
    "python -m planner swap gpt --machine v100-16gb --budget 60% --out plan.json",
    "python -m planner explain plan.json graph.json",
    "python -m planner explain plan.json graph.json --json",
    "python -m planner explain plan.json graph.json --machine v100-16gb:host_link=25GB/s",
)


@click.command("explain", short_help="What holds a plan's peak, and what limits it.", epilog=_EPILOG)
@click.argument("plan", type=click.Path())
@click.argument("graph", type=click.Path())
@click.option("--machine", "machine_name", default=None, help="Whose link carries the copies; by default the plan's.")
@json_option
def command(plan: str, graph: str, machine_name: str | None, as_json: bool) -> None:
    """Say what holds a plan's peak, what its step waits for, what limits it, and why tensors leave or stay.

    PLAN is a file that `planner swap --out` wrote, and GRAPH is the step that it is for, as `planner capture --out`
    writes it. Ops take the times that the plan was made with, and count in the plan's order.
    """
    from planner import graph as graphs
    from planner import plan as plans
    from planner.errors import StowageError
    from planner.profile import machine
    from planner.swap import explain

    made = plans.load_plan(plan)
    try:
        captured = graphs.load(graph)
    except StowageError as error:
        raise StowageError(f"{error} (the order is: explain PLAN GRAPH)") from error
    if made.graph != graphs.fingerprint(captured):
        raise StowageError(
            f"{plan} is not for {captured.name}: give the graph that it was made for, with the --device of its plan"
        )
    try:
        device = machine(machine_name or made.machine)
    except StowageError as error:
        if machine_name is not None:
            raise
        raise StowageError(f"the plan is for a machine that is not known here: {error}, with --machine") from error
    explanation = explain(made, captured, device, plans.predicted_op_seconds(made))
    if as_json:
        show(explanation.to_json(), True)
    else:
        show_lines(str(explanation))
