"""`python -m widgets view PLAN GRAPH`: the workbench of a plan as one page."""

from __future__ import annotations

import tempfile
import webbrowser
from collections.abc import Sequence
from pathlib import Path

import click

from planner.cli import examples, run_command
from planner.files import refuse_unwritable

_EPILOG = examples(
    "python -m planner capture gpt --out graph.json",
    "python -m planner swap gpt --machine v100-16gb --budget 60% --out plan.json",
    "python -m widgets view plan.json graph.json",
    "python -m widgets view plan.json graph.json --out plan.html",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def _cli() -> None:
    """Views of plans outside of a notebook."""


@_cli.command("view", epilog=_EPILOG)
@click.argument("plan", type=click.Path())
@click.argument("graph", type=click.Path())
@click.option("--machine", default=None, help="See `planner machines`; by default the plan's.")
@click.option("--out", type=click.Path(), default=None, help="Write the page here instead of opening it in a browser.")
def _view(plan: str, graph: str, machine: str | None, out: str | None) -> None:
    """Show a plan in the workbench, as one HTML page that needs no notebook and no network.

    PLAN is a file that `planner swap --out` wrote, and GRAPH is the step that it is for, as `planner capture --out`
    writes it. Without --out the page is written to a temporary folder, which is left there, and opened in a browser.
    """
    from planner import graph as graphs
    from planner import plan as plans
    from planner.errors import StowageError
    from widgets.panels.saving import save_html
    from widgets.session import Session

    if out is not None:
        refuse_unwritable(out)
    made = plans.load_plan(plan)
    try:
        captured = graphs.load(graph)
    except StowageError as error:
        raise StowageError(f"{error} (the order is: view PLAN GRAPH)") from error
    problems = plans.validate(made, captured.with_workspaces(dict(made.workspaces)))
    if problems:
        raise StowageError(f"{plan} is not a valid plan for {captured.name}: {problems[0].rstrip('.')}")
    session = Session((captured, made), machine=machine or made.machine, budget=made.budget_bytes)
    try:
        path = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="stowage-")) / f"{Path(plan).stem}.html"
        save_html(session, path)
    finally:
        session.close()
    if out is None and not webbrowser.open(path.resolve().as_uri()):
        click.echo(f"no browser could be started; the page is {path}")
    else:
        click.echo(str(path))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit status: 0, or 2 with one sentence on standard error.

    Args:
        arguments: the words after `python -m widgets`; those of this process where None.
    """
    run_command(_cli, arguments, "python -m widgets")


if __name__ == "__main__":
    main()
