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
    """

    compared: int
    different: tuple[str, ...]
    peak_bytes: int
    launched_together: str


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
    tested: PlannedStep, wanted: EagerResults, make_device: MakeDevice, *, graphs: bool = False
) -> StepComparison:
    """Make the same steps by the plan, from the same random numbers, and compare them.

    Args:
        tested: the step and its plan.
        wanted: what eager PyTorch makes of it.
        make_device: makes a device of so many bytes in its arena and in its host slab.
        graphs: whether calls are launched together where the device can.

    Raises:
        StowageError: an op raised, or used more memory than the plan has for it.
    """
    device = make_device(tested.plan.peak_bytes, tested.plan.host_bytes)
    try:
        return _made_by(_executor(tested, device, graphs=graphs), tested, wanted)
    finally:
        device.close()


def _executor(tested: PlannedStep, device: RuntimeDevice, *, graphs: bool = False, stress: bool = False) -> Executor:
    with _seeded(device.default_generator):
        return Executor(tested.graph, tested.plan, device, graphs=graphs, stress=stress)


def _made_by(executor: Executor, tested: PlannedStep, wanted: EagerResults) -> StepComparison:
    generator = executor.device.default_generator
    with _seeded(generator):
        executor.load(wanted.start)
        batch = tested.step.batch_leaves()
        losses = [executor.step(batch).outputs[0] for _ in wanted.losses]
        state = executor.state()
        pairs = [(f"loss of step {k + 1}", *each) for k, each in enumerate(zip(losses, wanted.losses, strict=True))]
        pairs += [(key, state[key], value) for key, value in wanted.state.items()]
        pairs.append(("random numbers", generator.get_state(), wanted.drawn))
        different = tuple(name for name, ours, theirs in pairs if not same_bits(ours.reshape(theirs.shape), theirs))
        return StepComparison(len(pairs), different, executor.peak_bytes, executor.launched_together)


class DelayedSteps:
    """Steps with delays in every stream and poisoned memory, made again and again by one executor.

    Args:
        tested: the step and its plan.
        wanted: what eager PyTorch makes of it.
        make_device: makes a device of so many bytes in its arena and in its host slab; `close` closes it.

    Attributes:
        needed: by number, from 1, the waits of a step without which a stream could be ahead of another, and the work
            that they wait for; empty before the first step.
    """

    def __init__(self, tested: PlannedStep, wanted: EagerResults, make_device: MakeDevice) -> None:
        self._tested, self._wanted = tested, wanted
        self.needed: dict[int, StreamWork] = {}
        self._device = WatchedDevice(make_device(tested.plan.peak_bytes, tested.plan.host_bytes))
        try:
            device = cast(RuntimeDevice, self._device)
            self._in_caller = waits_itself(device)
            self._executor = _executor(tested, device, stress=True)
        except BaseException:
            self._device.close()
            raise

    def close(self) -> None:
        """Close the device."""
        self._device.close()

    def make(self, seed: int, late: StreamWork | None = None) -> StepComparison:
        """Make the steps and compare them.

        Args:
            seed: of the delays.
            late: work that is delayed in every step; None for none.

        Raises:
            StowageError: an op raised, or used more memory than the plan has for it.
        """
        made = self._make(seed, 0, late, LATE_SECONDS)
        self.needed = self._device.needed(in_caller=self._in_caller)
        return made

    def shows_without(self, wait: int, late: StreamWork, seeds: int) -> bool:
        """Whether steps without a wait go wrong with one of some seeds: other bits, or an op that fails.

        Each seed delays the work that is waited for longer than the last: on a busy computer, the stream that does not
        wait is late itself.

        Args:
            wait: its number in a step, from 1.
            late: the work that it waits for, which is delayed.
            seeds: how many are tried.
        """
        for seed in range(seeds):
            made = None
            with suppress(StowageError, RuntimeError, IndexError):  # kernels may refuse what they find
                made = self._make(seed, wait, late, LATE_SECONDS * _LATER**seed)
            if made is None or made.different:
                return True
        return False

    def _make(self, seed: int, dropped: int, late: StreamWork | None, late_seconds: float) -> StepComparison:
        self._device.change(dropped, late, late_seconds)
        self._executor.reseed(seed)
        return _made_by(self._executor, self._tested, self._wanted)
