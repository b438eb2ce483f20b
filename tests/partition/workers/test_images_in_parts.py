"""Workers convolve and pool images that are divided along any of their dimensions, or along two at once."""

import pytest
from convolution_placements import CASES, PLACES, convolution_step
from worker_comparison import assert_computes_the_same

from planner.capture import capture
from planner.partition import search_partition
from planner.partition.plan import AxisDivision
from tests.effort import EFFORT, combinations
from tests.partition.workers.conftest import POOL


@pytest.fixture(scope="module")
def convolution(doubles):
    """Stride 2, padding 3, dilation 2 and groups, and no size that is even."""
    return capture(convolution_step(*CASES["all"]), progress=False)


def pinned(graph, workers, pins):
    return search_partition(graph, workers, pins=pins, evaluations=1, time_limit=None).wait(progress=False)


def axes(graph, plan, name):
    """What an op divides at every level."""
    (number,) = (op.id for op in graph.ops if op.name == name)
    return [way.axis for way in plan.ops[number] if isinstance(way, AxisDivision)]


@pytest.mark.parametrize(("image", "weight"), combinations(list(PLACES), [0, 1, "replicated"]))
def test_an_image_and_a_weight_may_be_placed_in_any_way(convolution, image, weight):
    plan = pinned(convolution, 2, {"image": image, "convolution.weight": weight})
    assert assert_computes_the_same(convolution, plan) == plan.bytes_moved


@pytest.mark.parametrize("workers", [4, 6][:EFFORT])
def test_rows_may_be_divided_at_one_level_and_columns_at_the_other(convolution, workers):
    plan = pinned(convolution, workers, {"image": (2, 3), "convolution/convolution": (2, 3)})
    assert axes(convolution, plan, "convolution/convolution") == ["y0", "y1"]
    assert axes(convolution, plan, "convolution/convolution_backward.input") == ["x0", "x1"]
    assert assert_computes_the_same(convolution, plan) > plan.bytes_moved  # a corner is not counted at any level


def test_a_pool_may_be_divided_along_rows_and_columns(coarse_graphs):
    graph = coarse_graphs[POOL].graph
    images = [tensor.name for tensor in graph.tensors if tensor.shape[:1] == (6,) and len(tensor.shape) == 4]
    made = [name for name in images if name.startswith(("batch", "first", "pool"))]
    plan = pinned(graph, 4, dict.fromkeys(made, (2, 3)))
    assert axes(graph, plan, "pool/max_pool2d_with_indices") == ["h", "w"]
    assert axes(graph, plan, "pool/max_pool2d_with_indices_backward") == ["y", "x"]
    assert_computes_the_same(graph, plan)
