"""The states of the random generators while a step runs on fake tensors, which draw nothing themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import torch

from planner import torch_private as private
from planner.errors import StowageError
from planner.program import Backend, Layout, as_default, takes_generator

_EFFICIENT_ATTENTION = torch.ops.aten._scaled_dot_product_efficient_attention.default


@dataclass(frozen=True)
class _Draw:
    """A draw that continues from the one before.

    Args:
        place: of the call among all recorded ones.
        target: the op that draws.
        given: its arguments, with shape, strides and type for tensors, which determine how many numbers it draws.
    """

    place: int
    target: private.OpOverload
    given: Any


class RngTracker:
    """Tells the draws of a step that follow one another from those that draw the numbers of an earlier one again.

    For each draw of the step one number is actually drawn, so the generator's state tells how many draws came before.
    Code that restores a state, as `torch.utils.checkpoint` does to drop the same values again, makes the next op draw
    what the op drew that had that state first. It must be the same op, so that both leave the same state behind. A
    state that no op has had, as after a seed, is refused.

    All of this uses copies of PyTorch's default generators: captures run in the background while the user creates
    models and sets seeds, and neither may disturb the other. Where PyTorch has no generator of a GPU yet, the copy of
    the CPU's stands for it, too.

    Args:
        backend: of the device that the step is to run on.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._host, self._gpus = torch.Generator(), torch.Generator()
        # no state is the user's, which the step may restore, and none of one generator is one of the other
        for generator, draws in ((self._host, 1), (self._gpus, 2)):
            generator.set_state(torch.get_rng_state())
            torch.empty(draws).uniform_(generator=generator)
        on_gpu = backend.device != "cpu" and bool(torch.cuda.default_generators)
        self._drawing, self._resting = (self._gpus, self._host) if on_gpu else (self._host, self._gpus)
        self._next, self._rest = _state(self._drawing), _state(self._resting)
        self._draws: dict[bytes, _Draw] = {}  # by the state that they draw from

    @contextmanager
    def following(self, capture: private.TorchDispatchMode) -> Iterator[None]:
        """Redirect a capture's use of the default generators by `torch`'s functions to the copies.

        Args:
            capture: a mode that it is made in.
        """
        with as_default(self._host, capture, self._gpus):
            yield

    def next(
        self, target: private.OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any], module: str, place: int
    ) -> int:
        """Record a draw, and return the place of the call whose numbers it draws again; -1 if it draws new ones.

        Args:
            target: the op that draws.
            args, kwargs: its arguments, with layouts in place of tensors.
            module: path of the module that it belongs to.
            place: of the call among all recorded ones.

        Raises:
            StowageError: the op draws from a state that a plan does not have, or cannot be given a generator.
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
        with private.no_modes():
            draw = _Draw(place, target, _without_memory((_drawn_by(target, args), tuple(kwargs.items()))))
            state = _state(self._drawing)
            first = None if state == self._next else self._first(state, draw, where)
            torch.empty(1).uniform_(generator=self._drawing)
            if first is not None:
                return first.place
            self._draws[state] = draw
            self._next = _state(self._drawing)
            return -1

    def finish(self) -> None:
        """Check the generators at the end of the step.

        Raises:
            StowageError: one is not in its state after the last draw.
        """
        with private.no_modes():
            left, rest = _state(self._drawing), _state(self._resting)
        if left in self._draws:
            raise StowageError(
                "the model leaves PyTorch's generator in an earlier state, so that the next step would draw the same "
                "numbers, which a plan cannot hold: restore the state that it had before, as torch.random.fork_rng does"
            )
        if left != self._next or rest != self._rest:
            raise _seeded("the model")

    def _first(self, state: bytes, draw: _Draw, where: str) -> _Draw:
        """The draw whose numbers one draws again."""
        first = self._draws.get(state)
        if first is None:
            raise _seeded(where)
        again = f"{where} draws the random numbers of an earlier op again"
        if (draw.target, draw.given) != (first.target, first.given):
            raise StowageError(
                f"{again}, of {first.target} with other arguments, which a plan cannot hold: leave the generator's "
                "state alone, or draw the same as before"
            )
        if not private.draws_by_shape(private.operator_name(draw.target)):
            raise StowageError(
                f"{again}, and how many it draws depends on values, which a plan cannot hold: leave it out of what "
                "torch.utils.checkpoint runs, or set preserve_rng_state=False there"
            )
        return first


def _state(generator: torch.Generator) -> bytes:
    return sha256(generator.get_state().numpy().tobytes()).digest()


def _drawn_by(target: private.OpOverload, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments without whether attention keeps its sums, as it does where a checkpoint runs it again."""
    return args[:4] + args[5:] if target is _EFFICIENT_ATTENTION else args


def _without_memory(value: Any) -> Any:
    """An argument with what is known of its tensors, apart from where they are."""
    if isinstance(value, Layout):
        return value.shape, value.strides, value.dtype
    return tuple(map(_without_memory, value)) if isinstance(value, tuple | list) else value


def _seeded(where: str) -> StowageError:
    return StowageError(
        f"{where} draws random numbers after the generator was seeded, which a plan cannot hold: leave the seed alone"
    )
