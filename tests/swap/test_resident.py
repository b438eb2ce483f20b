"""Moving nothing, where the budget is exactly what the step takes."""

import pytest

from planner.graph import Graph, GraphBuilder, Kind
from planner.memory import pack_step, step_peak
from planner.plan import validate
from planner.swap import plan_with_baselines
from tests.swap.random_graphs import ALIGNMENT, machine

#: First slot, the slot after the last, and 64-byte units of each storage. Out of 85,000 random steps, the smallest for
#: which a search for any packing within the lowest height that is known gives up above that height.
AWKWARD = [
    (3, 6, 10), (0, 8, 9), (6, 7, 36), (4, 8, 8), (1, 4, 30), (3, 5, 23), (5, 8, 12), (6, 8, 8), (2, 5, 21),
    (6, 8, 34), (4, 5, 18), (3, 7, 9), (4, 8, 5), (2, 5, 18), (7, 8, 29),
]  # fmt: skip


@pytest.fixture
def awkward() -> Graph:
    builder = GraphBuilder("awkward")
    for number, (_, _, units) in enumerate(AWKWARD):
        size = units * ALIGNMENT
        builder.add_tensor(f"t{number}", builder.add_storage(f"s{number}", size, Kind.ACTIVATION), (size // 4,))
    for slot in range(max(stop for _, stop, _ in AWKWARD)):
        made = [number for number, (start, _, _) in enumerate(AWKWARD) if start == slot]
        last_read = [number for number, (start, stop, _) in enumerate(AWKWARD) if start < slot == stop - 1]
        builder.add_op(f"op{slot}", "aten.op.default", last_read, made)
    return builder.build([])


def test_all_that_the_step_takes_is_enough_to_move_nothing(awkward: Graph) -> None:
    peak = step_peak(awkward, ALIGNMENT)
    content = pack_step(awkward, alignment=ALIGNMENT, capacity=peak)
    assert content.max_live < peak < content.peak  # or this graph no longer shows anything: search for another
    for budget in (peak, peak + 1):
        found = plan_with_baselines(awkward, machine(), budget, seconds=[1e-6] * len(awkward.ops))
        assert found.baselines["resident"] == found.plan.predicted.seconds == found.ideal_seconds
        assert (found.plan.swap_outs, found.plan.swap_ins, found.plan.host_bytes) == ((), (), 0)
        assert found.plan.peak_bytes == peak
        assert validate(found.plan, awkward) == []
