"""The state of the random generator while a step runs on fake tensors, which draw nothing themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import torch

from planner import torch_private as private
from planner.errors import StowageError
from planner.program import Backend, as_default, takes_generator


class RngTracker:
    """Ensures that a step's draws follow one another, since that is all that a plan can repeat.

    For each draw of the step one number is actually drawn, so the generator's state tells how many draws came before.
    Code that restores the state, as `torch.utils.checkpoint` does to drop the same values again, is detected by the
    next draw. All of this uses a copy of PyTorch's default generator: captures run in the background while the user
    creates models and sets seeds, and neither may disturb the other. Of a GPU's generator it stands for, too.

    Args:
        backend: of the device that the step is to run on.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._generator = torch.Generator()
        self._generator.set_state(torch.get_rng_state())
        self._expected = self._generator.get_state()
        self._drawn_from: set[bytes] = set()  # states from which an op drew

    @contextmanager
    def following(self, capture: private.TorchDispatchMode) -> Iterator[None]:
        """Redirect a capture's use of the default generators by `torch`'s functions to the copy.

        Args:
            capture: a mode that it is made in.
        """
        with as_default(self._generator, capture):
            yield

    def next(self, target: Callable[..., Any], kwargs: Mapping[str, Any], module: str) -> None:
        """Record a draw.

        Args:
            target: the op that draws.
            kwargs: its keyword arguments.
            module: path of the module that it belongs to.

        Raises:
            StowageError: the op does not continue from the previous draw, or cannot be given a generator.
        """
        where = f"{target} in {f'module {module}' if module else 'the model'}"
        if kwargs.get("generator") is not None:
            raise StowageError(
                f"{where} draws from a generator of its own, which a plan cannot hold: use PyTorch's default generator"
            )
        if not takes_generator(self._backend, target):
            raise StowageError(
                f"{where} knows no generator but PyTorch's default one, from which everything draws, so a plan cannot "
                "hold it: draw by an operator that takes a generator, such as torch.rand or torch.randint"
            )
        self._check(where)
        with private.no_modes():
            self._drawn_from.add(_digest(self._expected))
            torch.empty(1).uniform_(generator=self._generator)
            self._expected = self._generator.get_state()

    def finish(self) -> None:
        """Check the generator at the end of the step.

        Raises:
            StowageError: the generator is not in its state after the last draw.
        """
        self._check("the model")

    def _check(self, where: str) -> None:
        with private.no_modes():
            state = self._generator.get_state()
            if torch.equal(self._expected, state):
                return
            again = _digest(state) in self._drawn_from
        if again:
            raise StowageError(
                f"{where} draws the random numbers of an earlier op again, as dropout does in what "
                "torch.utils.checkpoint runs, which a plan cannot hold: set dropout to 0 there"
            )
        raise StowageError(
            f"{where} draws random numbers after the generator was seeded, which a plan cannot hold: leave the seed "
            "alone"
        )


def _digest(state: torch.Tensor) -> bytes:
    return sha256(state.numpy().tobytes()).digest()
