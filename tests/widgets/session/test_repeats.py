"""A plan in which ops run again, in a session: what the page is sent, and what is exported of it."""

import numpy as np
import pytest

from planner.plan import PlanIndex, plan_from_json, recompute_seconds
from tests.widgets.session.message_recorder import MessageRecorder
from tests.widgets.steps import again_plan, again_step
from widgets.fallback import fallback_text
from widgets.fallback.fallback_svg import draw
from widgets.session import Session


def test_each_run_and_what_it_makes_again_is_sent_and_said() -> None:
    graph, plan = again_step(), again_plan()
    session = Session((graph, plan))
    recorder = MessageRecorder(session)
    recorder.wait("plan")
    sent, columns, index = recorder.last("plan"), recorder.columns("plan"), PlanIndex(graph, plan)
    assert sent["valid"]
    assert columns["order"].tolist() == list(plan.order)
    assert columns["repeat_slot"].tolist() == list(index.repeats) != []
    shown = np.array([storage.bytes > 0 for storage in graph.storages])[index.storage]
    assert columns["residency_recomputed"].tolist() == index.recomputed[shown].tolist()
    assert columns["residency_recomputed"].any()
    compute = float((plan.predicted.compute[:, 1] - plan.predicted.compute[:, 0]).sum())
    once = compute - recompute_seconds(plan)
    assert recorder.last("machine")["ideal_seconds"] == pytest.approx(once)
    words = f"runs {len(index.repeats)} ops again, +{100 * (compute / once - 1):.1f} % compute"
    assert sent["again"] == words
    assert words in sent["streams_summary"]
    assert f"over ideal, {words}" in fallback_text(session.messages())


def test_its_files_have_every_run() -> None:
    session = Session((again_step(), again_plan()))
    recorder = MessageRecorder(session)
    recorder.wait("plan")
    session.request({"do": "export", "format": "plan"})
    recorder.wait("exported")
    data = next(message for message in recorder.messages if message.kind == "exported").buffers[0]
    read = plan_from_json(data.decode())
    assert (read.order, read.residencies) == (again_plan().order, again_plan().residencies)
    mark = recorder.mark()
    session.request({"do": "export", "format": "trace"})
    recorder.wait("exported", since=mark)


def test_the_still_picture_stripes_them() -> None:
    session = Session((again_step(), again_plan()))
    recorder = MessageRecorder(session)
    recorder.wait("plan")
    latest = {message.kind: message for message in session.messages()}
    assert "striped where ops run again" in draw(latest["graph"], latest["plan"])
