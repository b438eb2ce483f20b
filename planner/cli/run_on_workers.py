"""`planner run --workers`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.cli.output import show
from planner.errors import StowageError
from planner.progress import reporting

if TYPE_CHECKING:
    from planner.graph import Graph
    from planner.partition import PartitionPlan
    from planner.run import WorkersResult

_CHECK_FACTS = "max_abs_error", "max_rel_error", "rounding_rel_error"
#: How long a partition is searched for.
_SEARCH_SECONDS = 10.0


def run_on_workers(
    model: str, workers: int | None, partition_file: str | None, budget: str | None, steps: int, check: bool,
    checkpoint: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Run a step of a model on several workers and print what was measured.

    Args:
        model: of the zoo.
        workers: how many; None for those of the file.
        partition_file: how the step is split; None to search for it here.
        budget: what each worker may take; None for no swaps.
        steps: how many.
        check: whether to compare with eager PyTorch.
        checkpoint: the folder that the state is written to, and loaded from if it is there; None for none.
        as_json: print JSON.
    """
    from planner import zoo
    from planner.capture import capture
    from planner.run import Stopped, load_checkpoint, run_workers

    launched, is_first = "RANK" in os.environ, os.environ.get("RANK", "0") == "0"
    if launched and partition_file is None:
        raise StowageError(
            "ranks of a launcher need one partition: write it by `python -m planner partition` with --out, and give "
            "its file as --partition"
        )
    step = zoo.load(model)
    if checkpoint is not None and (Path(checkpoint) / ".metadata").exists():
        made = load_checkpoint(step, checkpoint)
        if is_first:
            click.echo(f"going on after step {made}, from {checkpoint}", err=True)
    stopped = None
    with reporting(is_first) as report:
        partition = _partition(capture(step), workers, partition_file)
        try:
            result = run_workers(
                step, partition, budget=budget, steps=steps, check=check, checkpoint=checkpoint, progress=report
            ).wait()  # fmt: skip
        except Stopped as stop:
            result, stopped = stop.result, stop
    difference, cores = result.difference, os.cpu_count() or 1
    if result.workers > cores and not launched:
        click.echo(
            f"{result.workers} workers share {cores} core{'s' if cores > 1 else ''} here, so their steps take longer "
            "than with a device for each",
            err=True,
        )
    if is_first:
        _show(result, as_json)
    if stopped is not None:
        click.echo(str(stopped), err=True)
        raise click.exceptions.Exit(130)
    if difference is not None and not difference.is_rounding:
        click.echo(
            f"differs from eager PyTorch by more than rounding: {difference.tensor} by {difference.relative:.2g}, "
            f"where rounding alone moves results by {difference.noise:.2g}",
            err=True,
        )
        raise click.exceptions.Exit(1)


def _show(result: WorkersResult, as_json: bool) -> None:
    difference = result.difference
    show(
        {
            "workers": result.workers,
            "max_abs_error": None if difference is None else difference.absolute,
            "max_rel_error": None if difference is None else difference.relative,
            "rounding_rel_error": None if difference is None else difference.noise,
            "bytes_predicted": result.bytes_predicted,
            "bytes_counted": result.bytes_counted,
            "worker_peak_bytes": result.peak_bytes,
            "worker_budget_bytes": result.budget_bytes,
            "step_seconds": result.step_seconds,
            "losses": result.losses,
            **({"skipped": result.skipped} if result.skipped else {}),
        },
        as_json,
        replacements={} if difference is not None else dict.fromkeys(_CHECK_FACTS, ...),
    )


def _partition(graph: Graph, workers: int | None, partition_file: str | None) -> PartitionPlan:
    from planner.partition import load_partition, search_partition

    if partition_file is None:
        assert workers is not None, "there are workers or a file"
        return search_partition(graph, workers, time_limit=_SEARCH_SECONDS).wait()
    partition = load_partition(partition_file)
    if workers is not None and workers != partition.workers:
        raise StowageError(f"{partition_file} is for {partition.workers} workers, not {workers}; leave out --workers")
    return partition
