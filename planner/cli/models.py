"""`planner models`."""

from __future__ import annotations

import click

from planner.cli.output import examples, json_option, show, show_paragraph, show_typed


@click.command(
    "models",
    short_help="Models of the zoo, with arguments and defaults.",
    epilog=examples("python -m planner models --json"),
)
@json_option
def command(as_json: bool) -> None:
    """List the models of the zoo with their arguments and defaults.

    With mode=inference a model's step is its forward pass in evaluation mode, without labels, gradients or optimizer.
    """
    from planner import zoo

    models = zoo.models()
    if as_json:
        show({"models": [{"name": m.name, "about": m.about, "arguments": dict(m.arguments)} for m in models]}, True)
        return
    for model in models:
        arguments = ",".join(f"{key}={value}" for key, value in model.arguments.items())
        show_typed(f"{model.name}:{arguments}")
        show_paragraph(model.about + ".", indentation=4)
    choices_by_argument = {
        argument: kind for model in models for argument, kind in model.types.items() if isinstance(kind, tuple)
    }
    for argument, choices in sorted(choices_by_argument.items()):
        show_paragraph(f"{argument} is one of {', '.join(choices)}.")
