"""`python -m planner COMMAND`: finds the command, and turns every expected failure into one sentence and status 2."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import click

from planner.cli.output import examples
from planner.errors import StowageError, did_you_mean

_COMMANDS = (
    "models",
    "machines",
    "capture",
    "swap",
    "sweep",
    "compare",
    "explain",
    "fit",
    "levers",
    "partition",
    "run",
    "selftest",
    "pack",
    "snapshot",
    "validate",
)

_EPILOG = examples(
    "python -m planner models",
    "python -m planner capture gpt:layers=4,hidden=256 --out graph.json",
    "python -m planner swap wresnet:depth=50,batch=16 --machine v100-16gb --budget 40% --out plan.json",
    "python -m planner fit gpt --machine h100 --over batch=1..64",
    "python -m planner levers gpt --machine h100",
    "python -m planner run wresnet:depth=50,batch=16 --budget 40% --steps 3 --check",
    "python -m widgets view plan.json graph.json",
)


class _LazyGroup(click.Group):
    """Imports a command's module only when that command is called, so that help does not wait for torch."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            choices = ", ".join(_COMMANDS)
            raise click.UsageError(
                f"there is no command {args[0]!r}{did_you_mean(args[0], _COMMANDS)}; choose {choices}"
            )
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = import_module(f"planner.cli.{cmd_name}").command
        return command


@click.command(
    cls=_LazyGroup, epilog=_EPILOG, no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def _cli(debug: bool) -> None:
    """Plan where every tensor of a PyTorch step lives, and when; then run the plan inside a memory budget."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit status: 0, or 2 with one sentence on standard error.

    Args:
        arguments: the words after `python -m planner`; those of this process where None.
    """
    run_command(_cli, arguments, "python -m planner")


def run_command(cli: click.Command, arguments: Sequence[str] | None, program: str) -> None:
    """Run a command line of ours as `main` does.

    Args:
        cli: the command line.
        arguments: the words after the program's name; those of this process where None.
        program: its name, as it is typed.
    """
    names = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in names
    names = [name for name in names if name != "--debug"] or ["--help"]
    try:
        sys.exit(cli.main(names, prog_name=program, standalone_mode=False))
    except click.UsageError as error:
        command_path = error.ctx.command_path if error.ctx else program
        _fail(f"{error.format_message().rstrip('.')}; see {command_path} --help")
    except click.ClickException as error:
        _fail(error.format_message())
    except StowageError as error:
        if debug:
            raise
        _fail(str(error))
    except (KeyboardInterrupt, click.Abort) as error:
        found = getattr(error.__cause__ or error, "__notes__", [])  # click aborts because of a KeyboardInterrupt
        _fail("; ".join(["stopped before it was done", "no file was changed", *found]), status=130)
    except BrokenPipeError:
        sys.exit(0)
    except Exception as error:
        if debug:
            raise
        reason = str(error).strip().split("\n", maxsplit=1)[0]
        _fail(f"this should not happen: {type(error).__name__}: {reason}; run it again with --debug and report it")


def _fail(sentence: str, status: int = 2) -> None:
    print(f"error: {' '.join(sentence.split())}", file=sys.stderr)
    sys.exit(status)
