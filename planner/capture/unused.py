"""Whether a step makes the same calls with another batch, found by tracing it with both."""

from __future__ import annotations

import copy
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from planner.capture.batches import Form, Tree, rebuilt
from planner.capture.likeness import unlikeness
from planner.capture.poison import Used, poisoned
from planner.capture.sole import sole
from planner.capture.step import Step
from planner.capture.trace import Trace, trace
from planner.errors import StowageError
from planner.progress import silent


def unused_leaves(step: Step, names: Collection[str], other: Any = None) -> bool:
    """Whether a step makes the same calls whatever certain plain values of its batch are.

    The step is traced with values in their place that raise when they are used. A type that is asked for by
    `type(value)` is nothing that they could see; so, where there is one, it is traced with another batch as well.

    Args:
        step: with a live model, which is left as it was.
        names: of plain values, as `Form.plain` has them.
        other: a batch in which they differ.
    """
    own = _as_captured(step)
    used = Used()
    plain = {} if own is None else Tree(own).plain
    if not all(name in plain for name in names):
        return False
    with sole():
        try:
            expected = _traced(step, own)
            put = {name: poisoned(plain[name].value, name, used) for name in names}
            if unlikeness(expected, _traced(step, rebuilt(own, plain=put))) or used:
                return False
            return other is None or not unlikeness(expected, _traced(step, other))
        except StowageError:
            return False


def _as_captured(step: Step) -> Any:
    """The batch that a step was captured with; None where an object in it has changed that has no tensors."""
    own = step.materialize().batch if step.given is None else step.given
    return own if step.form is None or not step.form.change(Form(own)) else None


def _traced(step: Step, batch: Any) -> Trace:
    other = copy.copy(step)
    other.live = replace(step.materialize(), batch=batch)
    return trace(other, silent)
