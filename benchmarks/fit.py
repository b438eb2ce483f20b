"""What fits by `planner.fit`, beside trying every value.

    python benchmarks/fit.py [MODEL ...]

Each machine gets as much memory beside the reserve as half of the unswapped peak of the largest value, so that the
answers lie within the range. The last column says whether all five answers are those of trying every value.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf

from architecture_models import ARCHITECTURES

import planner
from planner import StowageError, TrainStep, zoo
from planner.machine import PRESETS, Machine, op_seconds

MACHINES = ("v100-16gb", "h100", "laptop")
ZOO = {
    "mlp:layers=4,hidden=512": range(256, 4097, 256),
    "wresnet:depth=50,image=64": range(2, 25, 2),
    "inception:image=96": range(2, 17, 2),
    "rnn:layers=2,hidden=512,steps=8": range(32, 513, 32),
    "brnn:layers=2,hidden=512,steps=8": range(32, 513, 32),
    "gpt:layers=4,hidden=128,sequence=128": range(1, 17),
}
TRANSFORMERS = {"gpt2": range(2, 33, 2), "llama": range(2, 33, 2)}


def main() -> None:
    from rich.console import Console
    from rich.table import Table

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=[*ZOO, *TRANSFORMERS], metavar="MODEL")
    shown = Table(title="The largest batch that fits")
    for column in ("model", "machine", "of", "unswapped", "full speed", "10 %", "50 %", "at all", "tried", "s", "same"):
        shown.add_column(column, justify="left" if column in ("model", "machine") else "right")
    for model in parser.parse_args().models:
        make, values = made(model)
        for name in MACHINES:
            machine = shrunk(PRESETS[name], make(batch=values[-1]))
            begun = time.perf_counter()
            found = planner.fit(make, machine, {"batch": values}, progress=False)
            seconds = time.perf_counter() - begun
            answers = [found.unswapped, found.full_speed, found.slower[0.1], found.slower[0.5], found.at_all]
            texts = ["-" if answer.value is None else str(answer.value) for answer in answers]
            same = [answer.value for answer in answers] == every(make, values, machine)
            ends = "as" if same else "NOT as"
            print(f"{model} on {name}: {', '.join(texts)}, {ends} by trying every value", file=sys.stderr)
            shown.add_row(
                model, name, f"{values[0]}..{values[-1]}", *texts, str(len(found.tried)), f"{seconds:.1f}",
                "yes" if same else "[red]no[/red]",
            )  # fmt: skip
    Console(width=150).print(shown)


def made(model: str) -> tuple[Callable[..., TrainStep], Sequence[int]]:
    """What makes a model's step for a batch, and the batches."""
    if model in ZOO:
        return zoo.step_maker(model), ZOO[model]
    architecture = ARCHITECTURES[model]

    def make(batch: int) -> TrainStep:
        first = architecture.batch(0, architecture.masks[0])
        rows = {name: tensor[:1].repeat(batch, *[1] * (tensor.dim() - 1)) for name, tensor in first.items()}
        return TrainStep(architecture.build(), rows, optimizer=planner.Adam())

    return make, TRANSFORMERS[model]


def shrunk(machine: Machine, largest: TrainStep) -> Machine:
    """A machine with half of the memory that a step takes unswapped, beside the reserve."""
    peak = planner.swap.peak_of(planner.capture(largest, device="cuda", progress=False), machine.device.alignment)
    device = replace(
        machine.device, memory_bytes=peak // 2 + machine.device.memory_bytes - planner.fit.usable_bytes(machine)
    )
    return replace(machine, devices=(device,))


def every(make: Callable[..., TrainStep], values: Sequence[int], machine: Machine) -> list[int | None]:
    """The largest value unswapped, at full speed, at most 10 and 50 % slower, and at all; by trying each."""
    memory, unswapped, times = planner.fit.usable_bytes(machine), dict[int, bool](), dict[int, float]()
    for value in values:
        graph = planner.capture(make(batch=value), device="cuda", progress=False)
        unswapped[value] = planner.swap.peak_of(graph, machine.device.alignment) <= memory
        try:
            plan = planner.plan_swaps(
                graph, machine, memory, host_budget=machine.host_memory_bytes, method="calendar", progress=False
            )
            times[value] = plan.predicted.seconds / float(op_seconds(graph, machine).sum())
        except StowageError:
            times[value] = inf
    fitting = [[value for value in values if unswapped[value]]]
    fitting += [[value for value in values if times[value] <= most] for most in (1.01, 1.1, 1.5, 1e9)]
    return [max(those, default=None) for those in fitting]


if __name__ == "__main__":
    main()
