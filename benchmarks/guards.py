"""What it costs to look, before every step of `Run.steps`, whether anything that the step depends on has changed.

    python benchmarks/guards.py [MODULES ...]

A model of so many modules, each with attributes, is trained on one batch; then the look alone is timed, whole and in
parts: PyTorch's settings, and the bytes of all parameters, buffers and optimizer state, which grow with the model and
not with the number of its modules; the rest is the Python side. Between two looks eager PyTorch makes a step, as
between those of a run, so that nothing is left in the processor's caches that would not be there. `again` is what a
second look costs: another capture.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

import planner
from planner.capture.trace.trace import trace
from planner.guards import environment
from planner.program import backend_of
from planner.run.checks.mutation_guard import MutationGuard
from planner.run.devices.memcmp import areas_differ

_TURNS = 60
#: Of a step of 20 ms, and for 1,000 modules: most seconds that a look may take.
LIMITS = {100: 0.01 * 0.02, 1000: 0.001}


class Layer(nn.Module):
    """A linear layer with what people keep on modules."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.scale, self.name, self.sizes, self.options = 0.5, "layer", [width, width], {"bias": True}

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # noqa: D102
        return x + self.linear(x).tanh() * self.scale


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", type=int, default=[100, 1000], metavar="MODULES")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--batch", type=int, default=1024)
    arguments = parser.parse_args()
    rows = [measured(count, arguments.width, arguments.batch) for count in arguments.modules]

    from rich.console import Console
    from rich.table import Table

    shown = Table(title="A look before every step")
    for column in (
        "modules",
        "state MiB",
        "step ms",
        "look us",
        "limit us",
        "of it settings",
        "of it bytes",
        "again ms",
    ):
        shown.add_column(column, justify="right")
    for count, row in zip(arguments.modules, rows, strict=True):
        limit = LIMITS.get(count)
        shown.add_row(
            str(count), f"{row['state'] / 2**20:.1f}", f"{row['step'] * 1e3:.1f}", f"{row['look'] * 1e6:.0f}",
            "" if limit is None else f"{limit * 1e6:.0f}", f"{row['settings'] * 1e6:.1f}",
            f"{row['bytes'] * 1e6:.0f}", f"{row['again'] * 1e3:.0f}",
        )  # fmt: skip
    Console(width=120).print(shown)


def measured(count: int, width: int, rows: int) -> dict[str, float]:
    torch.manual_seed(0)
    model = nn.Sequential(*[Layer(width) for _ in range(count // 2)])
    batch = torch.randn(rows, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    step = planner.TrainStep(model, batch, loss=lambda model, x: model(x).square().mean(), optimizer=optimizer)
    run = planner.run(step, steps=0)
    list(run.steps([batch] * 5))
    assert run.result is not None
    state = step.state()
    copies = {key: value.clone() for key, value in state.items()}
    watch, empty = MutationGuard(step, copies, areas_differ), MutationGuard(step, {}, areas_differ)
    assert not watch.changed()

    def pause() -> None:
        torch.autograd.grad(model(batch).square().mean(), list(model.parameters()))

    look, without = typical(watch.changed, pause), typical(empty.changed, pause)
    begun = time.perf_counter()
    trace(step, backend_of("cpu"), lambda *_: None)
    again = time.perf_counter() - begun
    return {
        "state": sum(value.nbytes for value in state.values()),
        "step": statistics.median(run.result.step_seconds[1:]),
        "look": look,
        "settings": typical(environment, pause),
        "bytes": max(look - without, 0.0),
        "again": again,
    }


def typical(call: Callable[[], object], pause: Callable[[], object]) -> float:
    seconds = []
    for _ in range(_TURNS):
        pause()
        begun = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds)


if __name__ == "__main__":
    main()
