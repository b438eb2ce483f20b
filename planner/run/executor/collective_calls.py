"""How collectives are issued to the communication stream."""

from __future__ import annotations

from collections.abc import Callable

from planner.errors import StowageError
from planner.program import BoundCall
from planner.run.devices.device import RuntimeDevice
from planner.run.executor.measurement import Temporaries


class CollectiveCalls:
    """Issues collectives, and says of which op an error on the stream is.

    Args:
        device: with the stream.
        temporaries: measures what a collective allocates.
        explained: given an error and the slot of the op that raised it, the error to raise.

    Attributes:
        measured: whether compute makes the collectives itself, each between two points of the stream, because what
            they allocate is measured: in a run's first step.
    """

    def __init__(
        self, device: RuntimeDevice, temporaries: Temporaries, explained: Callable[[Exception, int], StowageError]
    ) -> None:
        self._device, self._temporaries, self._explained = device, temporaries, explained
        self._reached, self._made = device.event(), device.event()
        self.measured = True

    def issue(self, slot: int, bound: BoundCall) -> None:
        """Issue the collective of a slot."""
        compute, beside = self._device.compute, self._device.communication
        if not self.measured:
            beside.launch(self._exchange, (slot, bound), {})
            return
        beside.record(self._reached)
        compute.wait(self._reached)
        self._temporaries.run(slot, BoundCall(self._exchange, (slot, bound), {}))
        compute.record(self._made)
        beside.wait(self._made)
        beside.launch(_nothing, (), {})

    def _exchange(self, slot: int, bound: BoundCall) -> None:
        try:
            bound.function(*bound.args, **bound.kwargs)
        except StowageError:
            raise
        except Exception as error:
            raise self._explained(error, slot) from error


def _nothing() -> None:
    """Takes the place of a collective that compute has made."""
