"""What is derived from a description: the ways to split an op, and the bytes that each moves."""

import pytest
import torch

from planner.partition import (
    Description,
    KernelCall,
    Partial,
    Reduction,
    Replicated,
    Split,
    Unread,
    conversion_bytes,
    strategies,
)
from planner.partition.strategy import input_bytes, received_elements, stage_bytes
from planner.partition.tdl import Operand, Sum, apply, indices

SUM = Partial(Reduction.SUM)
WHOLE = Replicated()


def derived(target, *args, **kwargs):
    description = KernelCall(f"aten.{target}", args, kwargs).describe()
    return description, {strategy.name: strategy for strategy in strategies(description) if strategy.axis}


def cut(dimension, size, outer=1, inner=1, halo=False):
    return Split(dimension, outer, size, inner, halo)


def test_a_matrix_product_is_split_by_rows_columns_or_its_sum():
    _, found = derived("mm.default", torch.ones(4, 6), torch.ones(6, 8))
    assert {name: (s.inputs, s.outputs) for name, s in found.items()} == {
        "i": ((cut(0, 4), WHOLE), (cut(0, 4),)),
        "j": ((WHOLE, cut(1, 8)), (cut(1, 8),)),
        "k": ((cut(1, 6), cut(0, 6)), (SUM,)),
    }


def test_a_row_is_added_to_partial_sums_by_one_worker_only():
    _, found = derived("addmm.default", torch.ones(8), torch.ones(4, 6), torch.ones(6, 8))
    assert found["k"].once == {0}
    assert found["j"].inputs[0] == cut(0, 8)


def test_what_only_one_worker_adds_nobody_may_need_for_anything_else():
    def summed(finish):
        x, c, z = Operand("input 0", (4, 6), 0), Operand("input 1", (4,), 1), Operand("input 2", (4,), 2)
        op = Description("an op", (x, c, z), ((4,),))
        i, k = indices("i k")
        stage = op.stage("first", (4,))
        stage[i] = z[i] * 1
        op.output(0)[i] = finish(Sum(k, x[i, k]), c[i], stage[i])
        return next((s for s in strategies(op.finish()) if s.name == "k"), None)

    assert summed(lambda total, c, first: total + c).once == {1}
    assert summed(lambda total, c, first: (total + c) * 2).once == {1}
    assert summed(lambda total, c, first: (total + c) / c) is None
    assert summed(lambda total, c, first: (total + c) * c) is None
    assert summed(lambda total, c, first: total * c + c) is None
    assert summed(lambda total, c, first: total + first) is None
    assert summed(lambda total, c, first: total + 1) is None
    assert summed(lambda total, c, first: total + apply("exp", c)) is None


def test_partial_sums_may_stay_partial_where_an_op_is_linear():
    def sets(*call):
        description = KernelCall(f"aten.{call[0]}", call[1:]).describe()
        return {s.inputs for s in strategies(description) if s.axis is None}

    x, y = torch.ones(4, 6), torch.ones(4, 6)
    assert sets("add.Tensor", x, y) == {(SUM, SUM)}
    assert sets("mul.Tensor", x, y) == {(SUM, WHOLE), (WHOLE, SUM)}
    assert sets("mul.Tensor", x, x) == set()
    assert sets("relu.default", x) == set()
    assert sets("threshold_backward.default", x, y, 0) == {(SUM, WHOLE)}


def test_a_convolution_is_split_by_batch_channels_and_places_but_not_by_its_kernel():
    image, kernel = torch.ones(4, 6, 9, 9), torch.ones(8, 6, 3, 3)
    _, found = derived("convolution.default", image, kernel, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    assert set(found) == {"n", "o", "c", "y0", "y1"}
    assert found["y0"].inputs == (cut(2, 9, halo=True), WHOLE)
    assert found["c"].outputs == (SUM,)
    assert found["n"].strided
    assert not found["y0"].strided


def test_groups_are_factors_of_the_channels():
    image, kernel = torch.ones(4, 6, 9, 9), torch.ones(8, 3, 3, 3)
    _, found = derived("convolution.default", image, kernel, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 2)
    assert found["g"].inputs == (cut(1, 2, inner=3), cut(0, 2, inner=4))
    assert found["o"].outputs == (cut(1, 4, outer=2),)


def test_normalisation_over_a_split_axis_combines_its_statistics():
    channels = [torch.ones(4) for _ in range(4)]
    norm = derived("native_batch_norm.default", torch.ones(8, 4, 5, 5), *channels, True, 0.1, 1e-5)[1]
    assert [(stage.name, stage.elements) for stage in norm["n"].stages] == [("mean", 4), ("variance", 4)]
    assert norm["n"].outputs == (cut(0, 8), WHOLE, WHOLE, WHOLE, WHOLE)
    assert norm["c"].stages == ()
    soft = derived("_softmax.default", torch.ones(4, 6), 1, False)[1]
    assert [stage.reduction for stage in soft["i1"].stages] == [Reduction.MAX, Reduction.SUM]
    assert soft["i0"].stages == ()


def test_a_table_is_split_by_rows_into_partial_sums():
    _, found = derived("embedding.default", torch.ones(10, 4), torch.zeros(3, 5, dtype=torch.int64))
    assert (found["v"].inputs, found["v"].outputs) == ((cut(0, 10), WHOLE), (SUM,))
    assert found["j"].outputs == (cut(2, 4),)


def test_heads_that_share_keys_are_split_together():
    q, k, v = torch.ones(2, 8, 6, 4), torch.ones(2, 2, 6, 4), torch.ones(2, 2, 6, 4)
    _, found = derived("_scaled_dot_product_flash_attention_for_cpu.default", q, k, v, 0.0, True)
    assert set(found) == {"n", "head", "sharer"}
    assert found["head"].inputs == (cut(1, 2, inner=4), cut(1, 2), cut(1, 2))
    assert found["sharer"].inputs == (cut(1, 4, outer=2), WHOLE, WHOLE)


def test_joined_pieces_of_one_size_are_split_alike():
    pieces = [torch.ones(4, 6)] * 2
    _, found = derived("cat.default", [piece.clone() for piece in pieces], 1)
    assert found["inner"].inputs == (cut(1, 6), cut(1, 6))
    assert found["inner"].outputs == (cut(1, 6, outer=2),)


def test_an_input_of_which_only_the_shape_matters_is_not_moved():
    x, grad = torch.ones(2, 3, 8, 8), torch.ones(2, 3, 4, 4)
    description, found = derived("avg_pool2d_backward.default", grad, x, [2, 2], [], [0, 0], False, True, None)
    assert found["n"].inputs == (cut(0, 2), Unread())
    assert input_bytes(description, found["n"], 1, cut(1, 3), 2, 4) == 0


def test_what_no_formula_describes_is_computed_whole():
    assert derived("index_put.default", torch.ones(4, 6), [torch.arange(4)], torch.ones(4, 6), False)[1] == {}


@pytest.mark.parametrize("workers", [2, 3, 5])
def test_bytes_are_those_of_the_usual_collectives(workers):
    shape, size = (15, 30), 15 * 30 * 4
    rows, columns = cut(0, 15), cut(1, 30)

    def moved(have, want):
        return conversion_bytes(shape, have, want, workers, 4)

    assert moved(rows, WHOLE) == (workers - 1) * size  # all-gather
    assert moved(SUM, rows) == (workers - 1) * size  # reduce-scatter
    assert moved(SUM, WHOLE) == 2 * (workers - 1) * size  # all-reduce
    assert moved(rows, columns) == size * (workers - 1) / workers  # all-to-all
    assert moved(WHOLE, rows) == moved(rows, rows) == moved(rows, SUM) == 0


def test_a_halo_is_what_a_worker_lacks_beyond_its_chunk():
    image, kernel = torch.ones(2, 3, 10, 7), torch.ones(4, 3, 3, 3)
    description, found = derived(
        "convolution.default", image, kernel, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1
    )  # fmt: skip
    row = 2 * 3 * 7
    assert input_bytes(description, found["y0"], 0, cut(2, 10), 2, 4) == 2 * row * 4
    assert input_bytes(description, found["y0"], 0, cut(2, 10), 5, 4) == 8 * row * 4
    assert input_bytes(description, found["y0"], 1, cut(0, 4), 2, 4) == kernel.numel() * 4


def test_stages_cost_an_all_reduce_each():
    soft = derived("_softmax.default", torch.ones(4, 6), 1, False)[1]
    assert stage_bytes(soft["i1"], 3, 4) == 2 * (2 * 2 * 4 * 4)


def test_nothing_is_received_of_what_everyone_has():
    assert received_elements((4,), WHOLE, [None, None]) == 0
