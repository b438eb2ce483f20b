"""Output of the commands: one table for people, or one JSON object for programs, and how both are explained in help."""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from planner.errors import StowageError
from planner.files import refuse_unwritable
from planner.units import format_bytes

if TYPE_CHECKING:
    from planner.graph import Graph
    from planner.machine import Machine

#: Columns that an example may take beside the indentation of help.
_WIDTH = 78


class OutputFile(click.Path):
    """An output file, checked to be writable before its content is computed."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: D102
        path = super().convert(value, param, ctx)
        refuse_unwritable(str(path))
        return path


class Phrases(tuple[str, ...]):
    """A fact in phrases that follow each other on a line as long as there is room; none is broken that fits on one."""

    def lines(self, width: int) -> str:
        """The phrases with as few line breaks between them as a terminal of that width allows."""
        lines: list[str] = []
        for phrase in self:
            if lines and len(lines[-1]) + 1 + len(phrase) <= width:
                lines[-1] += f" {phrase}"
            else:
                lines.append(phrase)
        return "\n".join(lines)


device_option = click.option(
    "--device",
    "captured_for",
    default="cpu",
    show_default=True,
    help="Whose ops the step is captured with: cpu, with which it can be run here, or cuda for those of a GPU, which "
    "need not be there.",
)
machine_device_option = click.option(
    "--device",
    "captured_for",
    default=None,
    help="Whose ops the step is captured with: cpu, or cuda for those of a GPU, which need not be there; by default "
    "those of the machine.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def ops_text(graph: Graph, machine: Machine | None) -> str:
    """Whose ops a step was captured with, and where it is planned for a GPU with those of the CPU, how to have others.

    Args:
        graph: of the step.
        machine: that it is planned for; None for none.
    """
    if graph.device != "cpu":
        return "a GPU's"
    if machine is None or machine.device.kind == "cpu":
        return "the CPU's"
    return f"the CPU's, with which it can be run here, and not those of {machine.name}: for these add --device cuda"


def words_of(option: str, text: str) -> list[str]:
    """The words between commas, each once.

    Args:
        option: that they are given to.
        text: as given.

    Raises:
        StowageError: a word is empty.
    """
    words = list(dict.fromkeys(word.strip() for word in text.split(",")))
    if not all(words):
        raise StowageError(f"{option} {text!r} has an empty word; separate words by single commas")
    return words


def examples(*commands: str) -> str:
    """The text that click prints at the end of a help, with long commands continued on a second line as shells read it.

    Args:
        commands: lines to type.
    """
    lines = [line for command in commands for line in _lines(command)]
    return "\n".join(["\b", "Examples:" if len(commands) > 1 else "Example:", *lines])


def _lines(command: str) -> Iterator[str]:
    line = " "
    for word in command.replace(" --", "\n--").split("\n"):
        if len(line) + 1 + len(word) > _WIDTH - len(" \\"):
            yield f"{line} \\"
            line = "     "
        line += f" {word}"
    yield line


def show(facts: Mapping[str, Any], as_json: bool, *, replacements: Mapping[str, Any] | None = None) -> None:
    """Print named facts; in the table, names ending in `_bytes` or `_seconds` get their unit.

    Args:
        facts: the facts by name.
        as_json: print JSON instead of a table.
        replacements: replacements of facts in the table; `...` omits a fact.
    """
    if as_json:
        click.echo(json.dumps(_finite(facts), allow_nan=False))
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    console = Console(highlight=False)
    shown = {name: value for name, value in {**facts, **(replacements or {})}.items() if value is not ...}
    room = console.width - max(map(len, shown), default=0) - 2
    for name, value in shown.items():
        text = value.lines(room) if isinstance(value, Phrases) else _value_text(name, value)
        table.add_row(name.replace("_", " "), text)
    _print(table, console)


def show_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with a header."""
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*row)
    _print(table, Console(highlight=False))


def _print(table: Table, console: Console) -> None:
    """Print a table without the blanks that fill its lines, which would end up in files and differences."""
    with console.capture() as captured:
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def show_paragraph(text: str, indentation: int = 0) -> None:
    """Print sentences with line breaks between words, for the width of the terminal.

    Args:
        text: the sentences.
        indentation: spaces before each line.
    """
    indent = " " * indentation
    click.echo(click.wrap_text(text, Console().width, indent, indent))


def show_lines(text: str) -> None:
    """Print lines, each broken between words for the width of the terminal.

    Args:
        text: lines; where one goes on, it is indented like its own text, or like the last column of a row, where two
            spaces or more separate columns.
    """
    for line in text.splitlines():
        columns = re.match(r"(?:.*\s{2})?\s*", line)
        assert columns is not None
        indent = " " * columns.end()
        # names such as `on-demand` are kept whole
        broken = textwrap.wrap(line, Console().width, subsequent_indent=indent, break_on_hyphens=False)
        click.echo("\n".join(broken))


def show_typed(text: str) -> None:
    """Print text that may be typed in a shell as it stands: where it has no room, a backslash ends the line.

    Args:
        text: without spaces, parts separated by commas.
    """
    width, line = Console().width, ""
    for part in re.findall(r"[^,]*,|[^,]+", text):
        if line and len(line) + len(part) + len("\\") > width:
            click.echo(f"{line}\\")
            line = ""
        line += part
    click.echo(line)


def _value_text(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_value_text(name, item)}" for key, item in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(_value_text(name, item) for item in value) or "none"
    if isinstance(value, int) and ("bytes" in name):
        return f"{format_bytes(value)} ({value:,} bytes)"
    if value == 0:
        value = abs(value)  # no minus before nothing
    if isinstance(value, float) and ("seconds" in name or name == "baselines"):
        return f"{value:.4g} s"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _finite(value: Any) -> Any:
    """Replace non-finite numbers by None, since JSON has none."""
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
