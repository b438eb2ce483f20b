"""The batches of a run on workers, which must all fit the graph that was captured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from planner.cancel import CancelToken
from planner.capture import trace, trace_difference
from planner.errors import StowageError
from planner.global_state_lock import global_state_lock
from planner.graph import Graph
from planner.guards import undisturbed
from planner.program import backend_of, reading_changed
from planner.progress import Progress
from planner.run.checks.mutation_guard import MutationGuard
from planner.run.checks.retrace import Recheck
from planner.run.devices.cpu import CpuDevice
from planner.run.loop.batch_count import batch_count, refuse_smaller_last
from planner.run.loop.batch_matcher import Matcher
from planner.step import Step, rebuilt, tensors_of


class BatchFeed:
    """Yields the tensors of each step's batch; what the caller does meanwhile must leave the step as it is.

    Args:
        step: with its live model.
        graph: captured from it.
        batches: the step's own each time if None.
        steps: how many at most; None for as many as there are batches.
        stop: checked while a batch is looked at.
        keeps: whether to keep what is given.

    Attributes:
        count: how many there will be; None if that is not known.
        error: why there are no more batches, if it is not that all were given.
        given: copies of the batches so far, if kept, and the state of PyTorch's generator that their steps begin with:
            None where a step goes on from the one before.
    """

    def __init__(
        self, step: Step, graph: Graph, batches: Iterable[Any] | None, steps: int | None, stop: CancelToken, *,
        keeps: bool,
    ) -> None:  # fmt: skip
        self._step, self._graph, self._batches, self._steps = step, graph, batches, steps
        self._stop, self._keeps = stop, keeps
        if batches is not None:
            refuse_smaller_last(batches, steps)
        known = None if batches is None else batch_count(batches)
        self.count = min((count for count in (steps, known) if count is not None), default=None)
        self.error: Exception | None = None
        self.given: list[tuple[Any, Tensor | None]] = []

    @property
    def draws(self) -> bool:
        """Whether whoever gives the batches may draw from PyTorch's generator between two steps."""
        return self._batches is not None

    def __iter__(self) -> Iterator[list[Tensor]]:
        if self._batches is None:
            own = self._step.batch_leaves()
            for number in range(self._steps or 0):
                self._keep(None, torch.get_rng_state() if number == 0 else None)
                yield own
            return
        batches = iter(self._checked(self._batches))
        while True:
            try:
                leaves = next(batches)
            except StopIteration:
                return
            except Exception as error:
                self.error = error
                return
            yield leaves

    def _checked(self, batches: Iterable[Any]) -> Iterator[list[Tensor]]:
        matcher, recheck = Matcher(self._step), Recheck(self._step, None, self._stop)
        state = {key: value.detach().clone() for key, value in self._step.state().items()}
        guard = MutationGuard(self._step, state, CpuDevice.differs)
        for number, batch in enumerate(islice(batches, self._steps), 1):
            if guard.changed():
                raise StowageError(
                    f"the model or its optimizer was changed before step {number}, and workers do not see that before "
                    "their run has ended: make the steps before and after the change in a run each"
                )
            leaves = matcher.leaves(batch)
            if matcher.difference(batch) or reading_changed(self._graph.program, leaves):
                matcher = self._traced(batch, number)
            with self._step.given_batch(batch):
                recheck.before(number)
            self._keep(batch, torch.get_rng_state())
            yield leaves

    @undisturbed()
    def _traced(self, batch: Any, number: int) -> Matcher:
        """Trace the step with a batch that may lead to other calls; returns what later ones like it match."""
        known, backend = self._step.captures[0].trace, backend_of(self._graph.device)
        with self._step.given_batch(batch):
            with global_state_lock(self._stop.check):
                different = trace_difference(known, trace(self._step, backend, Progress(stop=self._stop)))
            if different:
                raise StowageError(
                    f"batch {number} leads to other calls than the step's own batch ({different}), and all steps of a "
                    "run on workers are alike: leave out such batches, or make a step of each kind"
                )
            return Matcher(self._step)

    def _keep(self, batch: Any, drawn: Tensor | None) -> None:
        if not self._keeps:
            return
        copies = {} if batch is None else {name: value.clone() for name, value in tensors_of(batch).items()}
        self.given.append((rebuilt(batch, copies) if copies else batch, drawn))  # a loader may fill the same again
