"""What is there before a step and after it: state, constants, the batch, and what the step returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor

from planner.capture.effects import laid_alike
from planner.capture.program import Program
from planner.errors import StowageError
from planner.graph import Graph
from planner.plan.swap_plan import SwapPlan
from planner.run.places import Places


class Held:
    """Ties the storages that a step starts from and ends with to where the plan has them at those moments.

    Args:
        graph, program, plan: of the step.
        places: where everything lies.
    """

    def __init__(self, graph: Graph, program: Program, plan: SwapPlan, places: Places) -> None:
        self._graph, self._plan, self._places = graph, plan, places
        self._arrivals = {(copy.storage, copy.start) for copy in plan.swap_ins}
        self._first = {tensor: self._at_start(tensor) for tensor, _ in (*program.state, *program.constants)}
        self._batch = [self._at_start(tensor) for tensor in program.batch]
        self._keys, self._constants = program.state, program.constants
        outputs = [self._at_end(tensor) for tensor in graph.outputs]
        self._outputs, self._left = outputs[: program.returned], outputs[program.returned :]

    def load(self, state: Mapping[str, Tensor], impatient: Callable[[], object]) -> None:
        """Put state and constants where they belong when a step starts.

        Args:
            state: by key.
            impatient: asked between two tensors; it may raise.
        """
        for tensor, key in self._keys:
            impatient()
            self._fill(self._first[tensor], state[key], key)
        for tensor, value in self._constants:
            self._fill(self._first[tensor], value, self._graph.tensors[tensor].name)

    def load_batch(self, batch: Sequence[Tensor]) -> None:
        """Put the leaves of a batch where they belong when a step starts."""
        if len(batch) != len(self._batch):
            raise StowageError(
                f"the batch has {len(batch)} tensors and the captured one had {len(self._batch)}; "
                "capture the step with this batch"
            )
        for places, leaf in zip(self._batch, batch, strict=True):
            self._fill(places, leaf, "the batch")

    def state(self) -> dict[str, Tensor]:
        """State where it lies between steps: on the device, or else in the host slab."""
        return {key: self._first[tensor][0] for tensor, key in self._keys if self._first[tensor]}

    def outputs(self) -> tuple[Tensor, ...]:
        """Copies of what the step returned, ordinary tensors unless this is called in inference mode."""
        return tuple(place.clone() for place in self._outputs)

    def left(self) -> tuple[Tensor, ...]:
        """Copies of what the step leaves in Python's variables, laid out as it made them."""
        return tuple(laid_alike(place) for place in self._left)

    def _fill(self, places: list[Tensor], value: Tensor, name: str) -> None:
        for place in places:
            if place.shape != value.shape or place.dtype != value.dtype:
                raise StowageError(
                    f"{name} has shape {tuple(value.shape)} and dtype {value.dtype}, captured was "
                    f"{tuple(place.shape)} and {place.dtype}; capture the step again"
                )
            _written(place, value, name)

    def _at_start(self, tensor: int) -> list[Tensor]:
        """Where a tensor has to be valid when the step starts, the device before the host."""
        storage = self._graph.tensors[tensor].storage
        found = []
        stay = self._places.residency_from(storage, 0)
        if stay is not None and (storage, 0) not in self._arrivals:
            found.append(self._places.tensor(tensor, stay))
        place = self._places.host_residency(storage, -1, 0)
        if place is not None:
            found.append(self._places.host_tensor(tensor, place))
        return found or ([self._places.tensor(tensor, None)] if self._graph.storages[storage].bytes == 0 else [])

    def _at_end(self, tensor: int) -> Tensor:
        storage, n = self._graph.tensors[tensor].storage, len(self._plan.order)
        stay = self._places.residency_until(storage, n)
        if stay is not None or self._graph.storages[storage].bytes == 0:
            return self._places.tensor(tensor, stay)
        place = self._places.host_residency(storage, n, n)
        if place is None:
            raise StowageError(f"the plan loses {self._graph.tensors[tensor].name} before the step ends; plan again")
        return self._places.host_tensor(tensor, place)


def _written(place: Tensor, value: Tensor, name: str) -> None:
    """Copy into a place, of an expanded one each number once."""
    for dimension, (size, stride) in enumerate(zip(place.shape, place.stride(), strict=True)):
        if stride == 0 and size > 1:
            if value.stride(dimension) != 0:
                raise StowageError(
                    f"{name} was expanded along dimension {dimension} when the step was captured and is not any more; "
                    "capture the step again"
                )
            place, value = place.narrow(dimension, 0, 1), value.narrow(dimension, 0, 1)
    place.copy_(value)
