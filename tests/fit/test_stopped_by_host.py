"""Whether a step without a plan has one if the host has memory enough, as the search that failed tells."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cancel import CancelToken
from planner.fit.time_and_memory import assess
from planner.memory import step_peak
from tests.effort import EFFORT
from tests.swap.random_graphs import ALIGNMENT, least_budget, machine, steps


@given(steps(most_layers=4), st.floats(0.0, 1.0), st.floats(0.0, 0.5))
@settings(max_examples=10 * EFFORT, deadline=None)
def test_only_the_host_stops_a_step_if_it_has_a_plan_where_the_hosts_memory_has_no_end(step, share, of_host):
    graph, _ = step
    least, most = least_budget(graph), step_peak(graph, ALIGNMENT)
    budget = int(least + share * (most - least))

    def needs(host_bytes, any_plan):
        return assess(
            1, graph, replace(machine(), host_memory_bytes=host_bytes), budget, 0, evaluations=None, seed=0,
            stop=CancelToken(), report=lambda _: None, any_plan=any_plan,
        )  # fmt: skip

    here, by_host = needs(1 + int(of_host * most), any_plan=False)
    endless, _ = needs(2**50, any_plan=True)
    assert by_host == (here.step_seconds is None and endless.step_seconds is not None)
