"""The Workbench counts memory outside of an arena: what fits, what is known, and the least budget."""

from dataclasses import replace

from planner.capture import capture
from planner.machine import PRESETS
from tests.run.steps import mlp
from widgets.info.step_requirements import assess_feasibility
from widgets.session.plans.loading import allow
from widgets.session.state.plan_cache import PlanCache

OUTSIDE = 10_000_000


def test_what_lies_outside_of_the_arena_is_in_every_budget_of_the_workbench() -> None:
    graph, machine = capture(mlp(), progress=False), PRESETS["h100"]
    bare, beside = (assess_feasibility(one, machine) for one in (graph, graph.with_scratch_outside({0: OUTSIDE})))
    assert beside.peak_bytes == bare.peak_bytes + OUTSIDE
    assert beside.least_bytes == bare.least_bytes + OUTSIDE
    assert beside.with_exact_least().least_bytes == bare.with_exact_least().least_bytes + OUTSIDE
    assert beside.parse("50%") == bare.parse("50%") + OUTSIDE
    assert beside.captured.peak_bytes == bare.captured.peak_bytes
    assert [beside.verdict(beside.peak_bytes - one) for one in (0, 1)] == ["fits", "swap"]
    assert "with what lies outside of the arena" in beside.why_impossible(OUTSIDE)
    cache = PlanCache(beside)
    assert cache.fitting(beside.peak_bytes - 1) is None
    assert cache.fitting(beside.peak_bytes) is not None
    assert cache.least_known(OUTSIDE) == beside.peak_bytes
    small = replace(beside.captured, peak_bytes=beside.least_bytes - OUTSIDE - 512)  # as one from a file may be
    allow(cache, small)
    assert cache.feasibility.least_bytes == beside.least_bytes - 512
