"""`planner pack`."""

from __future__ import annotations

import click

from planner.cli.output import OutputFile, json_option, show
from planner.errors import StowageError


@click.command(
    "pack", epilog="Example: python -m planner pack buffers.csv --capacity 1048576 --seconds 10 --out packed.csv"
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
        problem.lower, problem.upper, problem.sizes, capacity=capacity, seconds=seconds, progress=True
    )
    if capacity is not None and packing.peak > capacity:
        if packing.bound > capacity:
            raise StowageError(
                f"no packing fits into {capacity} bytes: it is proven that the buffers need {packing.bound} at least; "
                f"raise --capacity to {packing.peak}, which is enough"
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
            "optimal": packing.optimal,
            "seconds": packing.seconds,
        },
        as_json,
    )
