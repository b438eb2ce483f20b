"""Who runs what: a step, the module it is of and the memory of its parameters belong to one run at a time."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Lock
from time import perf_counter

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from planner.capture.sole import sole
from planner.capture.step import Step
from planner.capture.torch_private import storage_identity
from planner.ending import at_end
from planner.errors import StowageError
from planner.run.stopping import Stop

#: A caller is not kept waiting for longer.
_WAIT_SECONDS = 1.0


class Claim:
    """A run's claim on a step.

    Args:
        stop: whether the run was asked to stop; another one may then follow it.

    Attributes:
        ended: when the claim does.
    """

    def __init__(self, step: Step, stop: Stop) -> None:
        self.stop, self.ended = stop, Event()
        self._step = step
        self._things: dict[object, object] = {}  # which keeps them, and so their numbers, from others

    def make(self, impatient: Callable[[], object] | None = None) -> list[Claim]:
        """Claim the step; returns the claims of runs that were asked to stop and have not ended yet.

        While another capture or run has fakes in the place of parameters, these cannot be known: once more, then, in
        the run's own thread, and once the step's functions have made a module, which may be anybody's.

        Args:
            impatient: asked now and then while others are waited for; it may raise.

        Raises:
            StowageError: it, or another one of the same parameters, is being run.
        """
        try:
            with sole(_Deadline().check if impatient is None else impatient):
                self._things = _things_of(self._step)
        except _Busy:
            self._things = {id(self._step): self._step}
        with _lock:
            found = {id(_claims[key]): _claims[key] for key in self._things if key in _claims}
            others = [other for other in found.values() if other is not self]
            if any(not other.stop.asked for other in others):
                raise StowageError(
                    "this step is being run, or one that shares parameters with it: finish the loop over its steps, "
                    "wait() for that run to end, or cancel() it"
                )
            _claims.update(dict.fromkeys(self._things, self))
        at_end(self.stop_at_once)
        return others

    def stop_at_once(self) -> None:
        """Have the run abandon the step that it makes."""
        self.stop.ask(0.0)

    def end(self) -> None:
        """Let others run the step."""
        with _lock:
            for key in self._things:
                if _claims.get(key) is self:
                    del _claims[key]
            self._things.clear()
        self.ended.set()


class _Busy(Exception):  # noqa: N818 it is an answer, not an error
    """Others were at work for so long that a caller should not wait for them."""


class _Deadline:
    """Raises _Busy from some time on."""

    def __init__(self) -> None:
        self._over = perf_counter() + _WAIT_SECONDS

    def check(self) -> None:
        """Raise it if it is time to."""
        if perf_counter() > self._over:
            raise _Busy


def _things_of(step: Step) -> dict[object, object]:
    """The step, its module and the memory of that."""
    things: dict[object, object] = {id(step): step}
    module = step.live.model if step.live is not None else step.model
    if isinstance(module, nn.Module):
        things[id(module)] = module
        for parameter in module.parameters():
            if parameter.layout is torch.strided and not is_lazy(parameter):
                storage = parameter.untyped_storage()
                things["memory", storage_identity(storage)] = storage
    return things


_claims: dict[object, Claim] = {}
_lock = Lock()
