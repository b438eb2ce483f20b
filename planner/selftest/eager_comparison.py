"""Steps of a plan against eager PyTorch, bit by bit, as they are and with delays in every stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from planner.errors import StowageError
from planner.run import Executor, RuntimeDevice, brought_to, same_bits
from planner.selftest.copy_rates import MakeDevice
from planner.selftest.sample_steps import PlannedStep
from planner.selftest.watched_device import LATE_SECONDS, StreamWork, WatchedDevice, waits_itself
from planner.torch_private import default_generator

_SEED = 1
#: How many times as late work is with each further seed.
_LATER = 3


@dataclass(frozen=True, eq=False)
class EagerResults:
    """What eager PyTorch makes of a step.

    Args:
        start: the state before the first step, by key.
        losses: of each step.
        state: after the last step, by key.
        drawn: the state of PyTorch's generator after the last step.
    """

    start: dict[str, Tensor]
    losses: list[Tensor]
    state: dict[str, Tensor]
    drawn: Tensor


@dataclass(frozen=True, slots=True)
class StepComparison:
    """Steps of a plan.

    Args:
        compared: how many tensors were compared.
        different: the names of those that differ from eager PyTorch's.
        peak_bytes: the highest byte of the arena that was used.
        launched_together: how many calls were launched together, in words; empty for none.
        needed: by number, from 1, the waits of a step without which a stream could be ahead of another, and the work
            that they wait for.
    """

    compared: int
    different: tuple[str, ...]
    peak_bytes: int
    launched_together: str
    needed: dict[int, StreamWork]


def expected(tested: PlannedStep, steps: int) -> EagerResults:
    """Make steps in eager PyTorch, on a copy, where the plan runs."""
    eager, device = tested.step.clone(), tested.graph.device
    start = {key: value.clone() for key, value in eager.state().items()}
    generator = default_generator(device)
    with _seeded(generator):
        losses = []
        for _ in range(steps):
            with brought_to(device, eager, eager.materialize().batch) as batch:
                losses.append(eager.eager(batch).detach().clone())
        return EagerResults(
            start, losses, {key: value.clone() for key, value in eager.state().items()}, generator.get_state()
        )


@contextmanager
def _seeded(generator: torch.Generator) -> Iterator[None]:
    """Begin with a seed, and leave the generator as it was."""
    before = generator.get_state()
    try:
        generator.manual_seed(_SEED)
        yield
    finally:
        generator.set_state(before)


def make_steps(
    tested: PlannedStep, wanted: EagerResults, make_device: MakeDevice, *, stress: int | None = None, dropped: int = 0,
    late: StreamWork | None = None, late_seconds: float = LATE_SECONDS, graphs: bool = False,
) -> StepComparison:  # fmt: skip
    """Make the same steps by the plan, from the same random numbers, and compare them.

    Args:
        tested: the step and its plan.
        wanted: what eager PyTorch makes of it.
        make_device: makes a device of so many bytes in its arena and in its host slab.
        stress: seed of delays in all streams, with memory poisoned before it is valid; None for neither.
        dropped: number of a wait that is left out in every step, from 1; 0 for none.
        late: work that is delayed in every step; None for none.
        late_seconds: how long.
        graphs: whether calls are launched together where the device can.

    Raises:
        StowageError: an op raised, or used more memory than the plan has for it.
    """
    plan = tested.plan
    device = WatchedDevice(make_device(plan.peak_bytes, plan.host_bytes), dropped, late, late_seconds)
    try:
        in_caller = waits_itself(cast(RuntimeDevice, device))
        generator = device.default_generator
        with _seeded(generator):
            executor = Executor(
                tested.graph, plan, cast(RuntimeDevice, device), graphs=graphs, stress=stress is not None,
                seed=stress or 0,
            )  # fmt: skip
            executor.load(wanted.start)
            batch = tested.step.batch_leaves()
            losses = [executor.step(batch).outputs[0] for _ in wanted.losses]
            state = executor.state()
            pairs = [(f"loss of step {k + 1}", *each) for k, each in enumerate(zip(losses, wanted.losses, strict=True))]
            pairs += [(key, state[key], value) for key, value in wanted.state.items()]
            pairs.append(("random numbers", generator.get_state(), wanted.drawn))
            different = tuple(name for name, ours, theirs in pairs if not same_bits(ours.reshape(theirs.shape), theirs))
            needed = {
                number: work
                for number, work in enumerate(device.awaited, 1)
                if work is not None and not (in_caller and work.stream == "compute")
            }
            return StepComparison(len(pairs), different, executor.peak_bytes, executor.launched_together, needed)
    finally:
        device.close()


def shows_without(
    wait: int, late: StreamWork, tested: PlannedStep, wanted: EagerResults, make_device: MakeDevice, seeds: int
) -> bool:
    """Whether stressed steps without a wait go wrong with one of some seeds: other bits, or an op that fails.

    Each seed delays the work longer than the last: on a busy computer, the stream that does not wait is late itself.

    Args:
        wait: its number in a step, from 1.
        late: the work that it waits for, which is delayed.
        tested, wanted, make_device: as in `make_steps`.
        seeds: how many are tried.
    """
    for seed in range(seeds):
        made = None
        with suppress(StowageError, RuntimeError, IndexError):  # kernels may refuse what they find
            made = make_steps(
                tested, wanted, make_device, stress=seed, dropped=wait, late=late,
                late_seconds=LATE_SECONDS * _LATER**seed,
            )  # fmt: skip
        if made is None or made.different:
            return True
    return False
