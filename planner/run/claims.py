"""Who runs what: a step, and the module it is of, belong to one run at a time."""

from __future__ import annotations

from threading import Event, Lock

from torch import nn

from planner.capture.step import Step
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
        self._things: list[object] = [step, module] if isinstance(module, nn.Module) else [step]

    def make(self) -> list[Claim]:
        """Claim the step; returns the claims of runs that were asked to stop and have not ended yet.

        Raises:
            StowageError: it is being run.
        """
        with _lock:
            others = [_claims[id(thing)] for thing in self._things if id(thing) in _claims]
            if any(not other.stop.asked for other in others):
                raise StowageError("this step is being run: wait() for that run to end, or cancel() it")
            _claims.update({id(thing): self for thing in self._things})
        at_end(self.stop_at_once)
        return others

    def stop_at_once(self) -> None:
        """Have the run abandon the step that it makes."""
        self.stop.ask(0.0)

    def end(self) -> None:
        """Let others run the step."""
        with _lock:
            for thing in self._things:
                if _claims.get(id(thing)) is self:
                    del _claims[id(thing)]
        self.ended.set()


_claims: dict[int, Claim] = {}
_lock = Lock()
