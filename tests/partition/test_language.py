"""The description language: formulas of indices, and which regions of the inputs a chunk of the output needs."""

import pytest
import torch

from planner.errors import StowageError
from planner.partition import Description, KernelCall, chunk_ranges, prove, regions
from planner.partition.tdl import Max, Operand, Sum, counted, digits, evaluate, exactly, index, indices

F64 = torch.float64


def described(shapes, outputs):
    operands = tuple(Operand(f"input {place}", shape, place) for place, shape in enumerate(shapes))
    return Description("an op", operands, tuple(outputs)), operands


def convolution(size=9, kernel=3, stride=2, padding=1, dilation=1):
    out_size = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    op, (x, w) = described([(size,), (kernel,)], [(out_size,)])
    y, d = indices("y d")
    op.output(0)[y] = Sum(d, x.padded(0)[y * stride + d * dilation - padding] * w[d])
    return op.finish(), y


def needed(op, ranges):
    """The bounds of what is needed of the first input."""
    (digit,) = regions(op, op.outputs.values(), ranges)[0].extents[0]
    return digit.start, digit.stop


def test_a_convolution_needs_a_halo_and_no_padding():
    op, y = convolution()
    assert needed(op, {}) == (0, 9)
    assert needed(op, {y: (0, 2)}) == (0, 4)  # 2 outputs at -1 and 1, three wide; -1 is padding
    assert needed(op, {y: (2, 5)}) == (3, 9)


def test_a_region_ends_where_elements_are_read_even_if_dilation_skips_some():
    op, y = convolution(size=10, kernel=2, stride=2, padding=1, dilation=2)
    assert needed(op, {y: (0, 1)}) == (1, 2)  # -1 and 1, of which only 1 exists


def test_the_gradient_of_a_stride_reads_only_where_it_divides():
    op, (g,) = described([(4,)], [(8,)])
    x, d = index("x"), index("d", 1)
    op.output(0)[x] = Sum(d, g.padded(0)[exactly(x - d, 2)])
    op.finish()
    assert needed(op, {x: (3, 6)}) == (2, 3)  # 3 and 5 are odd
    assert regions(op, op.outputs.values(), {x: (3, 4)}) == (None,)


def test_a_chunk_of_the_output_gives_ranges_of_its_coordinates():
    op, (x,) = described([(4, 6, 5)], [(24, 5)])
    g, o, j = index("g", 4), index("o", 6), index("j")
    op.output(0)[g * 6 + o, j] = x[g, o, j] * 1
    formula = op.finish().outputs[0]
    assert chunk_ranges(formula, ((7, 10), (0, 5))) == {g: (1, 2), o: (1, 4), j: (0, 5)}
    assert chunk_ranges(formula, ((7, 14), (0, 2))) == {g: (1, 3), j: (0, 2)}
    (region,) = regions(op, [formula], chunk_ranges(formula, ((7, 10), (1, 3))))
    assert region.elements == 1 * 3 * 2
    assert not region.whole


def test_digits_are_the_factors_of_a_dimension():
    g, o = index("g", 4), index("o", 6)
    assert digits(g * 6 + o, 24) == (g, o)
    assert digits(o, 6) == (o,)
    assert digits(g * 5 + o, 24) is None
    assert digits(g * 6 + o + 1, 24) is None


def test_a_formula_has_the_values_of_a_textbook():
    op, (a, b) = described([(2, 3), (3, 2)], [(2, 2)])
    i, j, k = indices("i j k")
    op.output(0)[i, j] = Sum(k, a[i, k] * b[k, j])
    op.finish()
    x, y = torch.randn(2, 3, dtype=F64), torch.randn(3, 2, dtype=F64)
    assert torch.allclose(evaluate(op, op.outputs[0], {a: x, b: y}), x @ y)
    part = evaluate(op, op.outputs[0], {a: x, b: y}, {k: (1, 3)})
    assert torch.allclose(part, x[:, 1:] @ y[1:])


def finished(describer):
    op, (x,) = described([(6,)], [(6,)])
    describer(op, x)
    return op.finish()


def mistakes():
    def missing(op, x):
        op.output(0)[index("i")] = Max(index("q"), x[index("k")])

    def bounds(op, x):
        i = index("i")
        op.output(0)[i] = x[i + 1] * 1

    def uneven(op, x):
        i = index("i", 3)
        op.output(0)[i] = x[i] * 1

    def ranks(op, x):
        i, j = counted("i", 2)
        op.output(0)[i] = x[i, j] * 1

    return {
        "which is not one of its coordinates|no tensor has": missing, "is read at 6": bounds,
        "i takes 3 values, but output 0 has 6 along it": uneven, "is read with 2 indices": ranks,
    }  # fmt: skip


@pytest.mark.parametrize("sentence", mistakes())
def test_a_description_that_cannot_be_right_is_refused(sentence):
    with pytest.raises(StowageError, match=sentence):
        finished(mistakes()[sentence])


def test_a_description_of_an_output_without_elements_is_refused():
    op, (x,) = described([(0,)], [(0,)])
    i = index("i")
    op.output(0)[i] = x[i] * 1
    with pytest.raises(StowageError, match="has no elements"):
        op.finish()


def test_a_disagreement_names_op_shape_and_first_wrong_element():
    def wrong(op, self):
        i, j = indices("i j")
        op.output(0)[i, j] = self[i, j] * (j + 1)

    call = KernelCall("aten.neg.default", [torch.ones(2, 3, dtype=F64)])
    (first, *_) = prove(call, describer=wrong).faults
    assert str(first) == "aten.neg.default of [2, 3], whole: output 0: at [0, 0] it is 1 and not -1"
