"""Whether a step makes the same calls with another batch, found by tracing it with both."""

from __future__ import annotations

import copy
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from planner.capture.trace.trace import Trace, trace
from planner.capture.trace.trace_difference import trace_difference
from planner.errors import StowageError
from planner.global_state_lock import global_state_lock
from planner.program import capturing_backend
from planner.progress import Progress
from planner.step import Form, PoisonError, Step, Tree, Used, poisoned, rebuilt


def unused_leaves(step: Step, names: Collection[str], other: Any = None) -> bool:
    """Whether a step makes the same calls regardless of certain plain values of its batch.

    The step is traced with placeholders that raise when they are used. They cannot detect `type(value)`, so the step
    is also traced with another batch if there is one.

    Args:
        step: a captured step with a live model, which is left unchanged.
        names: names of plain values, as in `Form.plain`.
        other: a batch in which they differ; None if there is none.
    """
    own = _as_captured(step)
    used = Used()
    plain = {} if own is None else Tree(own).plain
    if not all(name in plain for name in names):
        return False
    with global_state_lock():
        try:
            expected = _traced(step, own)
            put = {name: poisoned(plain[name].value, name, used) for name in names}
            if trace_difference(expected, _traced(step, rebuilt(own, plain=put))) or used:
                return False
            return other is None or not trace_difference(expected, _traced(step, other))
        except (StowageError, PoisonError):  # the latter where traces are compared: of a value that the step returns
            return False


def _as_captured(step: Step) -> Any:
    """The batch that a step was captured with; None if an object without tensors in it has changed."""
    own = step.materialize().batch if step.given is None else step.given
    return own if step.form is None or not step.form.change(Form(own)) else None


def _traced(step: Step, batch: Any) -> Trace:
    other = copy.copy(step)
    other.live = replace(step.materialize(), batch=batch)
    return trace(other, capturing_backend(step.captures[0].graph.device), Progress())
