"""Who runs what: a step, the module it is of and the memory of its parameters belong to one run at a time."""

from __future__ import annotations

from threading import Event, Lock

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from planner.capture.step import Step
from planner.capture.torch_private import storage_identity
from planner.ending import at_end
from planner.errors import StowageError
from planner.run.stopping import Stop


class Claim:
    """A run's claim on a step.

    Args:
        stop: whether the run was asked to stop; another one may then follow it.

    Attributes:
        ended: when the claim does.
    """

    def __init__(self, step: Step, stop: Stop) -> None:
        self.stop, self.ended = stop, Event()
        module = step.live.model if step.live is not None else step.model
        self._things: dict[object, object] = {id(step): step}  # which keeps them, and so their numbers, from others
        if isinstance(module, nn.Module):
            self._things[id(module)] = module
            for parameter in module.parameters():
                if parameter.layout is torch.strided and not is_lazy(parameter):
                    storage = parameter.untyped_storage()
                    self._things["memory", storage_identity(storage)] = storage

    def make(self) -> list[Claim]:
        """Claim the step; returns the claims of runs that were asked to stop and have not ended yet.

        Raises:
            StowageError: it, or another one of the same parameters, is being run.
        """
        with _lock:
            others = list({id(_claims[key]): _claims[key] for key in self._things if key in _claims}.values())
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


_claims: dict[object, Claim] = {}
_lock = Lock()
