"""`planner capture`."""

from __future__ import annotations

import click

from planner.cli.output import OutputFile, device_option, examples, json_option, show
from planner.progress import reporting

#: Lines of code, and tensors, that the table names.
_NAMED = 5


@click.command(
    "capture",
    short_help="The graph of a step, and what holds its peak.",
    epilog=examples("python -m planner capture rnn:layers=2,hidden=512 --out graph.json --json"),
)
@click.argument("model")
@click.option("--out", type=OutputFile(), default=None, help="Write the graph as JSON here.")
@device_option
@json_option
def command(model: str, captured_for: str, out: str | None, as_json: bool) -> None:
    """Capture the whole step of MODEL (forward, backward, optimizer) as a graph, without allocating the model.

    MODEL is a zoo name with key=value arguments (see `planner models`), or path/to/file.py:function, where the function
    takes no arguments, or has defaults for them, and returns a planner.TrainStep.

    The peak is that of the step with nothing swapped. The temporary memory of ops comes on top where they are measured,
    and for a GPU, whose addresses are multiples of 512 bytes, sizes are rounded up: `planner swap` and `planner run`
    print that larger one as `step peak`.

    Peak lines are the lines of code that hold the most at the peak: those that make a tensor or, for parameters and
    optimizer states, first use it. Peak tensors are the largest of those that are there then. With --device cuda, a row
    says in what a graph captured on a GPU itself may differ.
    """
    import time

    from planner import graph as graphs
    from planner import zoo
    from planner.capture import capture
    from planner.machine import approximation
    from planner.memory import peak_lines, peak_storages, step_peak
    from planner.units import format_bytes

    def named(held: list[tuple[str, int]]) -> list[str]:
        more = [f"{len(held) - _NAMED:,} more"] if len(held) > _NAMED else []
        return [f"{name} {format_bytes(size)}" for name, size in held[:_NAMED]] + more

    step = zoo.load(model)
    with reporting(True) as report:
        started = time.perf_counter()
        graph = capture(step, device=captured_for, progress=report)
        seconds = time.perf_counter() - started
    if out is not None:
        graphs.save(graph, out)
    lines = peak_lines(graph)
    caution = approximation(graph)
    tensors = [(one.name, one.bytes) for one in peak_storages(graph)]
    show(
        {
            "ops": len(graph.ops),
            "tensors": len(graph.tensors),
            "storages": len(graph.storages),
            "parameter_bytes": graph.bytes_of([graphs.Kind.PARAMETER]),
            "peak_bytes": step_peak(graph),
            "capture_seconds": seconds,
            **({"approximate": caution} if caution else {}),
            "peak_lines": lines,
            "peak_tensors": [{"name": name, "bytes": size} for name, size in tensors],
        },
        as_json,
        replacements={
            "peak_lines": named([(line or "no known line", size) for line, size in lines.items()]),
            "peak_tensors": named(tensors),
        },
    )
