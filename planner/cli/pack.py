"""`planner pack`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from planner.cli.output import OutputFile, examples, json_option, show
from planner.errors import StowageError

if TYPE_CHECKING:
    from planner.memory import PackingConflict

#: How many buffers an error names.
_MOST_LISTED = 30


@click.command(
    "pack",
    short_help="Offsets for the buffers of a CSV file.",
    epilog=examples("python -m planner pack buffers.csv --capacity 1048576 --seconds 10 --out packed.csv"),
)
@click.argument("buffers", type=click.Path())
@click.option("--capacity", type=int, default=None, help="Bytes that must do; without it, as low as can be.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=None,
    help="Search all placements that long, sooner if it is proven that none is lower; without it, only fast heuristics "
    "run.",
)
@click.option("--out", type=OutputFile(), default=None, help="Write the buffers with an offset column here.")
@json_option
def command(buffers: str, capacity: int | None, seconds: float | None, out: str | None, as_json: bool) -> None:
    """Give every buffer of a CSV file (id,lower,upper,size: the MiniMalloc format) an offset.

    A column gaps lists times within a buffer's life in which it needs no memory, such as 3-5 8-9.
    With --seconds, Ctrl-C ends the search and takes the best placement so far.
    """
    from planner import memory

    if capacity is not None and capacity <= 0:
        raise StowageError(f"--capacity is {capacity}; give a number of bytes above 0")
    problem = memory.read_buffers(buffers)
    largest = max(range(len(problem.ids)), key=lambda at: problem.sizes[at], default=None)
    if capacity is not None and largest is not None and problem.sizes[largest] > capacity:
        raise StowageError(
            f"line {problem.lines[largest]} of {buffers} has size {problem.sizes[largest]}, more than --capacity "
            f"{capacity}; raise --capacity to that at least"
        )
    packing = memory.pack(
        problem.lower, problem.upper, problem.sizes, capacity=capacity, gaps=problem.gaps, seconds=seconds,
        explain=True, progress=True,
    )  # fmt: skip
    if capacity is not None and packing.peak > capacity:
        if packing.bound > capacity:
            raise StowageError(
                f"no packing fits into {capacity} bytes: it is proven that the buffers need {packing.bound} at least"
                f"{_conflict(problem.ids, packing.conflict)}; raise --capacity to {packing.peak}, which is enough"
            )
        raise StowageError(
            f"no packing within {capacity} bytes was found: the buffers alive together need {packing.max_live}, "
            f"the best packing found needs {packing.peak}; raise --capacity to that"
        )
    if out is not None:
        memory.write_buffers(out, problem, packing.offsets)
    show(
        {
            "buffers": len(problem.sizes),
            "max_live": packing.max_live,
            "height": packing.peak,
            "bound": packing.bound,
            "optimal": packing.optimal,
            "seconds": packing.seconds,
        },
        as_json,
    )


def _conflict(ids: Sequence[str], conflict: PackingConflict | None) -> str:
    """Which buffers show that the capacity is too low, as a part of a sentence."""
    if conflict is None:
        return ""
    names = [ids[box] for box in conflict.boxes]
    listed = ", ".join(names[:_MOST_LISTED]) + (
        f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    )
    proven = " (they do without any one of them)" if conflict.irreducible else " (not proven irreducible)"
    return f", and these {len(names)} alone do not fit{proven}: {listed}"
