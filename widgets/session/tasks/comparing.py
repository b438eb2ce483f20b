"""Compare the plan that is shown with one of the front."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.errors import StowageError
from planner.units import format_bytes
from widgets.messages import MessageKind, compare_message
from widgets.session.state.feature import Feature
from widgets.session.state.plan_cache import compared
from widgets.session.state.session_state import SessionState


def _compare(session_state: SessionState, wanted: Mapping[str, Any]) -> None:
    with session_state.message_bus.lock:
        if wanted["bytes"] is None or session_state.plan_cache is None:
            session_state.message_bus.publish(compare_message("", None))
            return
        plan = session_state.plan_cache.at(int(wanted["bytes"]))
        if plan is None:
            raise StowageError(
                f"no plan is known for {format_bytes(int(wanted['bytes']))}; choose a point of the front"
            )
        session_state.message_bus.publish(
            compare_message(format_bytes(plan.budget_bytes), compared(session_state.plan_cache.summary(plan)))
        )


FEATURE = Feature[None]("compare", kinds=(MessageKind("compare"),), requests={"compare": _compare})
