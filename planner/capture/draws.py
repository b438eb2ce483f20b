"""Where the random generator is while a step runs on fake tensors, which draw nothing themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from planner.capture import torch_private as private
from planner.errors import StowageError


class Draws:
    """Sees to it that a step's draws follow one another, since that is all that a plan can repeat.

    For each draw of the step one number is really drawn, so the generator's state says how many there were before.
    Whoever sets it back, as `torch.utils.checkpoint` does to drop the same values again, is found out by the next draw.
    """

    def __init__(self) -> None:
        self._expected = torch.get_rng_state()

    def next(self, target: object, kwargs: Mapping[str, Any], module: str) -> None:
        """Take note of a draw.

        Args:
            target: the op that draws.
            kwargs: its named arguments.
            module: path of the module it is in.

        Raises:
            StowageError: it draws elsewhere than after the draw before it.
        """
        where = f"{target} in {f'module {module}' if module else 'the model'}"
        if kwargs.get("generator") is not None:
            raise StowageError(
                f"{where} draws from a generator of its own, which a plan cannot hold: use PyTorch's default generator"
            )
        self._check(where)
        with private.no_modes():
            torch.empty(1).uniform_()
        self._expected = torch.get_rng_state()

    def finish(self) -> None:
        """The step is done.

        Raises:
            StowageError: the generator is elsewhere than after the last draw.
        """
        self._check("the model")

    def _check(self, where: str) -> None:
        with private.no_modes():
            if torch.equal(self._expected, torch.get_rng_state()):
                return
        raise StowageError(
            f"{where} draws random numbers after the generator was seeded or set back, which a plan cannot hold: leave "
            "the seed alone, and keep dropout out of what torch.utils.checkpoint runs"
        )
