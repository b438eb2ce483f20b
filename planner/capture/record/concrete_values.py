"""Values that control a model's Python code while it runs on fake tensors: real if they depend only on the batch.

`.item()`, `bool(tensor)` and `torch.equal` need values, which fake tensors do not have. If the values depend only on
the batch, on constants and on tensors that no step changes, the calls that compute them run on real tensors. The values
read are recorded, so that a batch with other values is detected before its step.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch

from planner import torch_private as private
from planner.errors import StowageError
from planner.graph import Kind
from planner.program import Event, Layout, Leaf, Memory, Reading, Readings, Value
from planner.step import ModuleTensor


class Steering:
    """Tracks which recorded storages have real values, and reads them on request.

    Args:
        batch: the batch's real tensors; nothing can be read if they are fake, or not where the step is to run.
        names: names of these tensors.
        device: the type of device that the step is to run on.
    """

    def __init__(self, batch: Sequence[torch.Tensor], names: Sequence[str], device: str) -> None:
        self.active = all(not isinstance(leaf, private.FakeTensor) and leaf.device.type == device for leaf in batch)
        self._batch, self._names = batch, names
        self._count = 0
        self._leaves: dict[int, list[Leaf]] = {}
        self._known: set[int] = set()
        self._written: set[int] = set()
        self._history: dict[int, list[int]] = {}
        self._events: dict[int, Event | Reading] = {}
        self._readings: set[int] = set()
        self._used: set[int] = set()
        self._mutating: set[int] = set()
        self._memory = Memory()
        self._made: set[int] = set()

    def hold_batch(self, layouts: Sequence[Layout]) -> None:
        """Add the tensors of the batch, which exist from the start."""
        for place, (layout, name) in enumerate(zip(layouts, self._names, strict=True)):
            self._hold(Leaf(layout, place, name))

    def hold_member(self, member: ModuleTensor, layout: Layout) -> None:
        """Add a tensor of the model, unless it is a trained parameter, whose values differ in the next step."""
        trained = member.kind is Kind.PARAMETER and member.tensor.requires_grad
        if not trained and not isinstance(member.tensor, private.FakeTensor) and not member.tensor.is_meta:
            self._hold(Leaf(layout, member.tensor, f"{member.kind} {member.name}"))

    def hold_constant(self, layout: Layout, value: torch.Tensor, *, literal: bool) -> None:
        """Add a tensor that is neither persistent nor computed; a literal is created anew by the next step."""
        self._hold(Leaf(layout, value, "", literal))

    def note(self, event: Event) -> None:
        """Track a recorded call."""
        number, self._count = self._count, self._count + 1
        sources = {layout.storage for layout in event.arguments}
        if sources and sources.isdisjoint(self._known):
            return
        known = self.active and sources <= self._known and not event.random
        if not known and not sources:
            return
        written = {layout.storage for layout in event.mutated}
        self._written |= written
        if not known or any(not leaf.copied for storage in written for leaf in self._leaves.get(storage, ())):
            self._known -= written
            return
        made = {layout.storage for layout in event.made} - sources | written
        if made:
            self._known |= made
            self._events.setdefault(number, event)
            if written:
                self._mutating.add(number)
            for storage in made:
                self._history.setdefault(storage, []).append(number)

    def result(self, call: Event) -> Any:
        """Return the result of a call that needs values; None if they are not known.

        Args:
            call: the call that needs them; its results need not be known.
        """
        sources = {layout.storage for layout in call.arguments}
        if not self.active or not sources <= self._known:
            return None
        with private.plainly():
            self._replay(*self._cone(sources))
            return self._memory.result(call)

    def keep(self, call: Event, where: str, value: Value) -> None:
        """Record a value that Python code reads by the call that is noted next.

        Args:
            call: the call.
            where: where it is made, in words.
            value: the value it returned.
        """
        self._events[self._count] = Reading(call, f"{self._subject(call)} {where}", value)
        self._readings.add(self._count)

    def finish(self, replaced: Collection[int]) -> Readings:
        """Return everything that was read.

        Args:
            replaced: storages of tensors that the model has replaced by others after the step.

        Raises:
            StowageError: something was read that the step changes.
        """
        leaves = []
        for storage in sorted(self._used):
            changed = storage in self._written
            for leaf in self._leaves[storage]:
                if (changed and not leaf.copied) or storage in replaced:
                    raise StowageError(
                        f"the model's Python code reads {leaf.name or 'a tensor'} (.item(), or a branch on a tensor), "
                        "and the step changes it: rewrite it with torch.where"
                    )
                leaves.append(leaf._replace(copied=changed))
        return Readings(tuple(leaves), tuple(self._events[number] for number in sorted(self._made | self._readings)))

    def _hold(self, leaf: Leaf) -> None:
        if self.active and leaf.layout.storage not in self._history:
            self._leaves.setdefault(leaf.layout.storage, []).append(leaf)
            self._known.add(leaf.layout.storage)

    def _cone(self, sources: set[int]) -> tuple[set[int], set[int]]:
        """Return the calls that storages depend on, and the storages involved that existed before them."""
        cone: set[int] = set()
        seen, waiting = set(sources), list(sources)
        while waiting:
            for number in self._history.get(waiting.pop(), ()):
                if number not in cone:
                    cone.add(number)
                    event = self._event(number)
                    further = {layout.storage for layout in event.arguments} - seen
                    seen |= further
                    waiting += further
        return cone, {storage for storage in seen if storage in self._leaves}

    def _replay(self, cone: set[int], used: set[int]) -> None:
        """Run the calls that have not run yet; all of them again if one of them precedes one that has run."""
        more = cone - self._made
        late = bool(more and self._made) and min(more) < max(self._made)
        if late and not self._mutating.isdisjoint(cone | self._made):
            more, self._made, self._memory = cone | self._made, set(), Memory()
        for storage in used | self._used:
            if not self._memory.holds(storage):
                for leaf in self._leaves[storage]:
                    self._memory.put(leaf, self._batch)
        self._used |= used
        for number in sorted(more):
            self._memory.run(self._event(number))
        self._made |= more

    def _event(self, number: int) -> Event:
        event = self._events[number]
        return event.call if isinstance(event, Reading) else event

    def _subject(self, call: Event) -> str:
        """Describe what is read: the kernel that computes it, or the name of a tensor that existed before."""
        if call.made:
            return private.kernel_name(call.target)
        layout = call.arguments[0]
        numbers = self._history.get(layout.storage)
        if numbers:
            return private.kernel_name(self._event(numbers[-1]).target)
        return next((leaf.name for leaf in self._leaves[layout.storage] if leaf.name), "a constant")
