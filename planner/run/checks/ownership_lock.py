"""The ownership lock: a step, its module and the memory of its parameters belong to one run at a time."""

from __future__ import annotations

from threading import Event, Lock

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from planner.cancel import Cancelled, CancelToken
from planner.errors import StowageError
from planner.global_state_lock import global_state_lock
from planner.guards import undisturbed
from planner.shutdown import on_shutdown
from planner.step import Step
from planner.torch_private import storage_identity

#: The longest that a caller of `planner.run` waits for the global state lock, in seconds.
LONGEST_WAIT = 1.0


class OwnershipLock:
    """A run's ownership of a step.

    Args:
        step: the step to own.
        stop: whether the run was asked to stop; another run may then queue for the step.

    Attributes:
        ended: set when the ownership ends.
    """

    def __init__(self, step: Step, stop: CancelToken) -> None:
        self.stop, self.ended = stop, Event()
        self._step = step
        self._objects: dict[object, object] = {}  # kept alive, so that their ids are not reused

    def make(self, stop: CancelToken | None = None) -> list[OwnershipLock]:
        """Acquire the step; returns the locks of runs that were asked to stop and have not ended yet.

        While another capture or run has replaced the parameters by fakes, the parameters are unknown, so the lock is
        acquired again in the run's own thread, after the step's functions have made a module, which may be shared.

        Args:
            stop: checked while waiting for the global state lock; None waits for at most `LONGEST_WAIT`.

        Raises:
            StowageError: the step, or another one with the same parameters, is being run.
            Cancelled: `stop` was cancelled.
        """
        waiting = CancelToken.after(LONGEST_WAIT) if stop is None else stop
        try:
            with global_state_lock(waiting.check), undisturbed():
                self._objects = _objects_of(self._step)
        except Cancelled:
            if waiting is stop:
                raise
            self._objects = {id(self._step): self._step}
        with _lock:
            found = {id(_owners[key]): _owners[key] for key in self._objects if key in _owners}
            others = [other for other in found.values() if other is not self]
            if any(not other.stop.requested for other in others):
                raise StowageError(
                    "this step is being run, or one that shares parameters with it: finish the loop over its steps, "
                    "wait() for that run to end, or cancel() it"
                )
            _owners.update(dict.fromkeys(self._objects, self))
        on_shutdown(self.stop_at_once)
        return others

    def stop_at_once(self) -> None:
        """Make the run abandon its current step."""
        self.stop.cancel()

    def end(self) -> None:
        """Release the step to other runs."""
        with _lock:
            for key in self._objects:
                if _owners.get(key) is self:
                    del _owners[key]
            self._objects.clear()
        self.ended.set()


def _objects_of(step: Step) -> dict[object, object]:
    """The step, its module and the memory of the module's parameters, by id or storage identity."""
    things: dict[object, object] = {id(step): step}
    module = step.live.model if step.live is not None else step.model
    if isinstance(module, nn.Module):
        things[id(module)] = module
        for parameter in module.parameters():
            if parameter.layout is torch.strided and not is_lazy(parameter):
                storage = parameter.untyped_storage()
                things["memory", storage_identity(storage)] = storage
    return things


_owners: dict[object, OwnershipLock] = {}
_lock = Lock()
