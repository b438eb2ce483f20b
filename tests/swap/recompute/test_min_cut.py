"""A minimum cut is the least of all cuts, tried one by one."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.swap.recompute.min_cut import SINK, SOURCE, flow_network, min_cut
from tests.effort import EFFORT


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 9)), max_size=14))
@settings(max_examples=60 * EFFORT, deadline=None)
def test_a_cut_is_the_least_of_all_there_are(given_arcs):
    arcs = [(a, b) for a, b, _ in given_arcs]
    sizes = [size for _, _, size in given_arcs]

    def size_of(side):
        return sum(size for (a, b), size in zip(arcs, sizes, strict=True) if side[a] and not side[b])

    network = flow_network(6, arcs)
    capacity = np.zeros(len(network.head), np.int64)
    capacity[network.arc] = sizes
    found = min_cut(network, capacity)
    sides = [side for side in product((True, False), repeat=6) if side[SOURCE] and not side[SINK]]
    least = min(map(size_of, sides))
    assert found[SOURCE]
    assert not found[SINK]
    assert size_of(found) == least
    assert sum(found) == min(sum(side) for side in sides if size_of(side) == least)
