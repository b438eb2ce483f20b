"""Extras of a loss that the step changes after the loss has returned them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from planner.capture.record.optimizer_kernels import PersistentTensor
from planner.errors import StowageError
from planner.graph import Phase
from planner.program import Event, ExtrasForm, Layout


def refuse_changing(
    form: ExtrasForm, extras: Sequence[Layout], events: Iterable[Event], persistent: Iterable[PersistentTensor]
) -> None:
    """Refuse extras whose memory no longer holds what the loss returned when the step ends.

    Args:
        form, extras: their names and layouts.
        events: of the whole step.
        persistent: the tensors that outlive the step.

    Raises:
        StowageError: the step changes an extra.
    """
    state = {one.layout.storage for one in persistent}
    changed = {one.layout.storage for one in persistent if one.replaced is not None}
    before: set[int] = set()  # storages of earlier micro-batches
    present: set[int] = set()
    backward = False
    for event in events:
        if backward and event.phase is Phase.FORWARD:
            before |= present
            present.clear()
        backward = event.phase is Phase.BACKWARD
        present.update(layout.storage for layout in (*event.arguments, *event.made))
        for layout in event.mutated:
            if event.phase is not Phase.FORWARD or layout.storage in state or layout.storage in before:
                changed.add(layout.storage)
    for name, layout in zip(form.names, extras, strict=True):
        if layout.storage in changed:
            raise StowageError(
                f"the loss returns {name}, which the step changes before it ends: return a clone of it (.clone())"
            )
