"""Inputs and outputs of a step: state, constants, the batch, and the step's outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor

from planner.errors import StowageError
from planner.graph import Graph
from planner.plan import SwapPlan
from planner.program import Program, clone_with_alignment
from planner.run.executor.arena.arena_views import ArenaViews


class StepIO:
    """Maps live-in and live-out storages to where the plan has them at the start and the end of a step.

    Args:
        graph, program, plan: of the step.
        views: the arena views.
    """

    def __init__(self, graph: Graph, program: Program, plan: SwapPlan, views: ArenaViews) -> None:
        self._graph, self._plan, self._views = graph, plan, views
        self._arrivals = {copy.storage for copy in plan.swap_ins if copy.start == 0}
        self._first = {tensor: self._at_start(tensor) for tensor, _ in (*program.state, *program.constants)}
        self._batch = [self._at_start(tensor) for tensor in program.batch]
        self._keys, self._constants = program.state, program.constants
        outputs = [self._at_end(tensor) for tensor in graph.outputs]
        self._overflow = outputs.pop() if program.overflow else None
        self._outputs, self._left = outputs[: program.returned], outputs[program.returned :]

    def load(self, state: Mapping[str, Tensor], check_cancelled: Callable[[], object]) -> None:
        """Copy state and constants to where they belong when a step starts.

        Args:
            state: by key.
            check_cancelled: called between two tensors; may raise.
        """
        for tensor, key in self._keys:
            check_cancelled()
            self._fill(self._first[tensor], state[key], key)
        for tensor, value in self._constants:
            self._fill(self._first[tensor], value, self._graph.tensors[tensor].name)

    def load_batch(self, batch: Sequence[Tensor]) -> None:
        """Copy the leaves of a batch to where they belong when a step starts."""
        if len(batch) != len(self._batch):
            raise StowageError(
                f"the batch has {len(batch)} tensors and the captured one had {len(self._batch)}; "
                "capture the step with this batch"
            )
        for views, leaf in zip(self._batch, batch, strict=True):
            self._fill(views, leaf, "the batch")

    def state(self) -> dict[str, Tensor]:
        """Views of the state between steps: on the device if it is there, otherwise in the host slab."""
        return {key: self._first[tensor][0] for tensor, key in self._keys if self._first[tensor]}

    def outputs(self) -> tuple[Tensor, ...]:
        """Copies of the step's outputs on the host; ordinary tensors unless this is called in inference mode."""
        return tuple(place.to("cpu", copy=True) for place in self._outputs)

    def skipped(self) -> bool:
        """Whether the step has updated nothing, because a gradient was not finite."""
        return self._overflow is not None and self._overflow.item() != 0

    def left(self) -> tuple[Tensor, ...]:
        """Copies of the tensors that the step writes to Python variables, with their original strides."""
        return tuple(clone_with_alignment(place) for place in self._left)

    def _fill(self, views: list[Tensor], value: Tensor, name: str) -> None:
        for place in views:
            if place.shape != value.shape or place.dtype != value.dtype:
                raise StowageError(
                    f"{name} has shape {tuple(value.shape)} and dtype {value.dtype}, captured was "
                    f"{tuple(place.shape)} and {place.dtype}; capture the step again"
                )
            _written(place, value, name)

    def _at_start(self, tensor: int) -> list[Tensor]:
        """The views in which a tensor must be valid when the step starts, the device before the host."""
        storage = self._graph.tensors[tensor].storage
        found = []
        residency = self._views.index.residency_from(storage, 0)
        if residency is not None and storage not in self._arrivals:
            found.append(self._views.tensor(tensor, residency))
        place = self._views.index.host_residency(storage, -1, 0)
        if place is not None:
            found.append(self._views.host_tensor(tensor, place))
        return found or ([self._views.tensor(tensor, None)] if self._graph.storages[storage].bytes == 0 else [])

    def _at_end(self, tensor: int) -> Tensor:
        storage, n = self._graph.tensors[tensor].storage, len(self._plan.order)
        residency = self._views.index.residency_until(storage, n)
        if residency is not None or self._graph.storages[storage].bytes == 0:
            return self._views.tensor(tensor, residency)
        place = self._views.index.host_residency(storage, n, n)
        if place is None:
            raise StowageError(f"the plan loses {self._graph.tensors[tensor].name} before the step ends; plan again")
        return self._views.host_tensor(tensor, place)


def _written(place: Tensor, value: Tensor, name: str) -> None:
    """Copy into a view; each element of an expanded view is written once."""
    for dimension, (size, stride) in enumerate(zip(place.shape, place.stride(), strict=True)):
        if stride == 0 and size > 1:
            if value.stride(dimension) != 0:
                raise StowageError(
                    f"{name} was expanded along dimension {dimension} when the step was captured and is not any more; "
                    "capture the step again"
                )
            place, value = place.narrow(dimension, 0, 1), value.narrow(dimension, 0, 1)
    place.copy_(value)
