"""The command, which prints each stage when it has ended."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from planner.cli.output import OutputFile, examples, json_option
from planner.files import write_text
from planner.progress import reporting

_EPILOG = examples(
    "python -m planner selftest",
    "python -m planner selftest --device cuda --out selftest.json",
)


@click.command("selftest", short_help="Whether plans leave eager PyTorch's numbers here.", epilog=_EPILOG)
@click.option("--device", default="cpu", show_default=True, help="What to test: cpu, or cuda for the current GPU.")
@click.option("--out", type=OutputFile(), help="Write the report to this file, as JSON.")
@json_option
def command(device: str, out: str | None, as_json: bool) -> None:
    """Test whether plans leave eager PyTorch's numbers on this computer, and stay inside their memory.

    Small steps (convolutions, an LSTM, attention with dropout) are planned with copies in both directions, and made
    call by call, whole, and with random delays in every stream; then waits between the streams are left out, which must
    show. It takes about a minute on a CPU, and ends at the first stage that fails, with exit status 1. Attach the
    report of a test that failed to an issue.
    """
    from planner.selftest import SelfTestReport, each_stage, environment, report_json

    found = []
    with reporting(True) as report:
        for stage in each_stage(device, report):
            found.append(stage)
            if not as_json:
                click.echo(str(stage))
    test = SelfTestReport(device, environment(), tuple(found))
    text = report_json(test)
    if out is not None:
        write_text(Path(out), text)
    if as_json:
        click.echo(text, nl=False)
    elif test.passed:
        click.echo(f"{device} passed.")
    sys.exit(0 if test.passed else 1)
