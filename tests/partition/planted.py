"""Wrong descriptions and wrong strategies, one of every kind that one can think of; the proof has to find each."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from planner.partition import (
    Digit,
    Fault,
    KernelCall,
    Partial,
    Reduction,
    Region,
    Replicated,
    Split,
    Strategy,
    Unread,
    prove,
)
from planner.partition.tdl import (
    FirstMax,
    Max,
    Min,
    Prod,
    Sum,
    apply,
    counted,
    equal,
    exactly,
    index,
    indices,
    opaque,
    where,
)

F64 = torch.float64


@dataclass(frozen=True)
class Mistake:
    """A call with something wrong in its description, or in what is derived from it."""

    name: str
    call: KernelCall
    describer: Callable[..., None] | None = None
    alter: Callable[[Strategy], Strategy | None] | None = None
    alter_regions: Callable[..., Any] | None = None

    def faults(self) -> list[Fault]:
        """What the proof finds."""
        return prove(self.call, (2,), self.describer, self.alter, self.alter_regions).faults

    def true_faults(self) -> list[Fault]:
        """What it finds without the mistake."""
        return prove(self.call, (2,)).faults


def normal(*shape):
    return torch.randn(*shape, dtype=F64)


def call(target, *args, **kwargs):
    return KernelCall(f"aten.{target}", args, kwargs)


def conv_call(stride=1, padding=1, dilation=1, bias=None):
    both = [[value, value] for value in (stride, padding, dilation)]
    return call("convolution.default", normal(2, 4, 9, 9), normal(6, 4, 3, 3), bias, *both, False, [0, 0], 1)


def conv(formula):
    def describer(op, input, weight, bias, stride, padding, dilation):
        n, o, c = indices("n o c")
        y, d = counted("y", 2), counted("d", 2)
        op.output(0)[n, o, *y] = formula(input, weight, bias, n, o, c, y, d, stride[0], padding[0], dilation[0])

    return describer


def over(y, d, s, p, k):
    return tuple(a * s + b * k - p for a, b in zip(y, d, strict=True))


def wrong_descriptions() -> Iterator[Mistake]:
    torch.manual_seed(0)
    yield from convolutions()
    yield from products()
    yield from statistics()
    yield from movements()
    yield from reductions()
    yield from lookups()


def convolutions() -> Iterator[Mistake]:
    def plain(shift):
        def formula(x, w, b, n, o, c, y, d, s, p, k):
            return Sum((c, *d), x.padded(0)[n, c, *shift(y, d, s, p, k)] * w[o, c, *d])

        return conv(formula)

    yield Mistake("padding forgotten", conv_call(), plain(lambda y, d, s, p, k: over(y, d, s, 0, k)))
    yield Mistake("dilation ignored", conv_call(1, 2, 2), plain(lambda y, d, s, p, k: over(y, d, s, p, 1)))
    yield Mistake("stride ignored", conv_call(2, 1), plain(lambda y, d, s, p, k: over(y, d, 1, p, k)))
    yield Mistake(
        "kernel turned around", conv_call(), plain(lambda y, d, s, p, k: over(y, [2 - e for e in d], s, p, k))
    )
    yield Mistake("window twice as wide", conv_call(), plain(lambda y, d, s, p, k: over(y, d, s, 2 * p, 2 * k)))
    yield Mistake(
        "bias inside the sum", conv_call(bias=normal(6)),
        conv(lambda x, w, b, n, o, c, y, d, s, p, k:
             Sum((c, *d), x.padded(0)[n, c, *over(y, d, s, p, k)] * w[o, c, *d] + b[o])),
    )  # fmt: skip
    yield Mistake("bias forgotten", conv_call(bias=normal(6)), plain(over))
    yield Mistake(
        "padded with another number", conv_call(),
        conv(lambda x, w, b, n, o, c, y, d, s, p, k:
             Sum((c, *d), x.padded(1)[n, c, *over(y, d, s, p, k)] * w[o, c, *d])),
    )  # fmt: skip
    yield Mistake(
        "read out of bounds", conv_call(),
        conv(lambda x, w, b, n, o, c, y, d, s, p, k: Sum((c, *d), x[n, c, *over(y, d, s, p, k)] * w[o, c, *d])),
    )  # fmt: skip

    def window_named_too_small(op, self):
        n, c, h, w = indices("n c h w")
        d = index("dy", 2), index("dx", 3)
        op.output(0)[n, c, h, w] = Max(d, self.padded(-9e9)[n, c, h * 2 + d[0] - 1, w * 2 + d[1] - 1])

    pool = call("max_pool2d_with_indices.default", normal(2, 3, 7, 8), [3, 3], [2, 2], [1, 1])
    yield Mistake("a row of the window left out", pool, window_named_too_small)

    def last_place(op, self):
        n, c, h, w = indices("n c h w")
        d = index("dy", 3), index("dx", 3)
        row, column = h * 2 + d[0] - 1, w * 2 + d[1] - 1
        value = self.padded(-9e9)[n, c, row, column]
        op.output(0)[n, c, h, w] = Max(d, value)
        op.output(1)[n, c, h, w] = FirstMax(d, value, row * 7 + column)

    yield Mistake("places counted in rows of another width", pool, last_place)

    def gradient_without_remainder(op, grad_output, weight):
        n, o, c = indices("n o c")
        x, d = counted("x", 2), counted("d", 2)
        place = [exactly(a - b + 1, 1) for a, b in zip(x, d, strict=True)]
        op.output(0)[n, c, *x] = Sum((o, *d), grad_output.padded(0)[n, o, *place] * weight[o, c, *d])

    backward = call(
        "convolution_backward.default", normal(2, 6, 5, 5), normal(2, 4, 9, 9), normal(6, 4, 3, 3), [0], [2, 2], [1, 1],
        [1, 1], False, [0, 0], 1, [True, False, False],
    )  # fmt: skip
    yield Mistake("stride of a gradient ignored", backward, gradient_without_remainder)


def products() -> Iterator[Mistake]:
    square = call("mm.default", normal(6, 6), normal(6, 6))

    def product(formula):
        def describer(op, self, mat2):
            i, j, k = indices("i j k")
            op.output(0)[i, j] = formula(self, mat2, i, j, k)

        return describer

    yield Mistake("second matrix turned", square, product(lambda a, b, i, j, k: Sum(k, a[i, k] * b[j, k])))
    yield Mistake("first matrix turned", square, product(lambda a, b, i, j, k: Sum(k, a[k, i] * b[k, j])))
    yield Mistake("outputs exchanged", square, product(lambda a, b, i, j, k: Sum(k, a[j, k] * b[k, i])))
    yield Mistake("largest in place of the sum", square, product(lambda a, b, i, j, k: Max(k, a[i, k] * b[k, j])))
    yield Mistake("sum of the diagonal", square, product(lambda a, b, i, j, k: Sum(k, a[k, k] * b[k, j])))
    yield Mistake("sign", square, product(lambda a, b, i, j, k: -Sum(k, a[i, k] * b[k, j])))
    yield Mistake("factor", square, product(lambda a, b, i, j, k: Sum(k, a[i, k] * b[k, j]) * 1.01))
    yield Mistake("an input not read", square, product(lambda a, b, i, j, k: Sum(k, a[i, k])))
    yield Mistake(
        "a row more than needed", square,
        product(lambda a, b, i, j, k: Sum(k, a[i, k] * b[k, j] + 0 * a.padded(0)[i + 1, k])),
    )  # fmt: skip
    yield Mistake("index of an output free", square, product(lambda a, b, i, j, k: Sum(k, a[i, k] * b[k, j]) * a[k, 0]))

    def biased(op, self, mat1, mat2):
        i, j, k = indices("i j k")
        op.output(0)[i, j] = Sum(k, mat1[i, k] * mat2[k, j] + self[j])

    yield Mistake("row inside the sum", call("addmm.default", normal(6), normal(5, 7), normal(7, 6)), biased)

    def column(op, self, mat1, mat2):
        i, j, k = indices("i j k")
        op.output(0)[i, j] = Sum(k, mat1[i, k] * mat2[k, j]) + self[i]

    yield Mistake("row added as a column", call("addmm.default", normal(6), normal(6, 7), normal(7, 6)), column)


def statistics() -> Iterator[Mistake]:
    soft = call("_softmax.default", normal(6, 6), 1, False)

    def pointwise(op, self):
        i, j = indices("i j")
        op.output(0)[i, j] = apply("exp", self[i, j])

    yield Mistake("softmax element by element", soft, pointwise)

    def other_way(op, self):
        i, j = indices("i j")
        total = op.stage("sum", (6,))
        total[j] = Sum(i, apply("exp", self[i, j]))
        op.output(0)[i, j] = apply("exp", self[i, j]) / total[j]

    yield Mistake("softmax along the other dimension", soft, other_way)

    def opaque_rows(op, self):
        i, j = indices("i j")
        op.output(0)[i, j] = opaque(self[i, j])

    yield Mistake("softmax opaque, but split along its sum", soft, opaque_rows)
    norm = call(
        "_native_batch_norm_legit_functional.default", normal(6, 4, 5, 5) * 2 + 1, normal(4), normal(4), normal(4),
        normal(4).abs(), True, 0.1, 1e-5,
    )  # fmt: skip

    def local_statistics(op, input, weight, bias):
        n, c, y, x = indices("n c y x")
        mean, variance = op.stage("mean", (6, 4)), op.stage("variance", (6, 4))
        mean[n, c] = Sum((y, x), input[n, c, y, x]) / 25
        square = (input[n, c, y, x] - mean[n, c]) * (input[n, c, y, x] - mean[n, c])
        variance[n, c] = Sum((y, x), square) / 25
        normal = (input[n, c, y, x] - mean[n, c]) * apply("rsqrt", variance[n, c] + 1e-5)
        op.output(0)[n, c, y, x] = normal * weight[c] + bias[c]

    yield Mistake("statistics per sample", norm, local_statistics)

    def opaque_samples(op, input, weight, bias):
        n, c, y, x = indices("n c y x")
        op.output(0)[n, c, y, x] = opaque(input[n, c, y, x], weight[c], bias[c])

    yield Mistake("batch norm element by element, opaque", norm, opaque_samples)

    def rows(op, query, key, value):
        n, h, i, d = indices("n h i d")
        whole = slice(None)
        op.output(0)[n, h, i, d] = opaque(query[n, h, i, whole], key[n, h, i, whole], value[n, h, i, whole])

    name = "_scaled_dot_product_flash_attention_for_cpu.default"
    q, k, v = normal(2, 2, 6, 4), normal(2, 2, 6, 4), normal(2, 2, 6, 4)
    yield Mistake("attention of each row to itself", call(name, q, k, v, 0.0, True), rows)

    def causal_rows(op, query, key, value):
        n, h, i, d = indices("n h i d")
        whole = slice(None)
        op.output(0)[n, h, i, d] = opaque(query[n, h, i, whole], key[n, h, whole, whole], value[n, h, whole, whole])

    yield Mistake("causal attention cut by rows", call(name, q, k, v, 0.0, True), causal_rows)

    def wrong_head(op, query, key, value):
        n, g, i, d = indices("n g i d")
        r, whole = index("r", 2), slice(None)
        head = r * 2 + g  # heads that share keys lie side by side
        op.output(0)[n, head, i, d] = opaque(
            query[n, head, whole, whole], key[n, g, whole, whole], value[n, g, whole, whole]
        )

    shared = call(name, normal(2, 4, 6, 4), k, v, 0.0, True)
    yield Mistake("queries with another's keys", shared, wrong_head)


def movements() -> Iterator[Mistake]:
    def gradient(formula):
        def describer(op, grad_output):
            i, j = indices("i j")
            op.output(0)[i, j] = formula(grad_output.padded(0), i, j)

        return describer

    sliced = call("slice_backward.default", normal(6, 3), [6, 9], 1, 2, 8, 2)
    yield Mistake("slice shifted by one", sliced, gradient(lambda g, i, j: g[i, exactly(j - 3, 2)] * 1))
    yield Mistake("step ignored", sliced, gradient(lambda g, i, j: g[i, j - 2] * 1))

    def exchanged(op, tensors):
        i, j = indices("i j")
        part = index("part", 2)
        op.output(0)[i, part * 3 + j] = where(equal(part, 0), tensors[1][i, j], tensors[0][i, j])

    def interleaved(op, tensors):
        i, j = indices("i j")
        part = index("part", 2)
        op.output(0)[i, j * 2 + part] = where(equal(part, 0), tensors[0][i, j], tensors[1][i, j])

    joined = call("cat.default", [normal(4, 3), normal(4, 3)], 1)
    yield Mistake("pieces exchanged", joined, exchanged)
    yield Mistake("pieces interleaved", joined, interleaved)

    def reversed_rows(op, self):
        i, j = indices("i j")
        op.output(0)[i, j] = self[5 - i, j] * 1

    yield Mistake("rows in reverse", call("clone.default", normal(6, 4)), reversed_rows)

    def turned(op, self):
        i, j = indices("i j")
        op.output(0)[i, j] = self[j, i] * 1

    yield Mistake("a copy turned", call("clone.default", normal(6, 6)), turned)

    def half(op, self):
        i = index("i", 3)
        j = index("j")
        op.output(0)[i, j] = self[i, j] * 1

    yield Mistake("half of the output", call("clone.default", normal(6, 6)), half)

    def twice(op, self):
        i, j = indices("i j")
        op.output(0)[i, i] = Sum(j, self[i, j])

    yield Mistake("only the diagonal", call("clone.default", normal(6, 6)), twice)

    def extended(op, self):
        i = index("i", 7)
        j = index("j")
        op.output(0)[i, j] = self[i, j] * 1

    yield Mistake("one more row than there is", call("clone.default", normal(6, 6)), extended)

    def ranks(op, self):
        i = index("i")
        op.output(0)[i] = self[i] * 1

    yield Mistake("too few indices", call("clone.default", normal(6, 6)), ranks)

    def other_side(op, self):
        i, j = indices("i j")
        op.output(0)[i, j] = where(apply("ge", j - i, 0), self[i, j], 0)

    yield Mistake("the other triangle", call("tril.default", normal(5, 5)), other_side)


def reductions() -> Iterator[Mistake]:
    def reduced(formula):
        def describer(op, self):
            i, j = indices("i j")
            op.output(0)[i] = formula(self, i, j)

        return describer

    total, largest = call("sum.dim_IntList", normal(6, 6), [1]), call("amax.default", normal(6, 6), [1])
    yield Mistake("sum called largest", total, reduced(lambda x, i, j: Max(j, x[i, j])))
    yield Mistake("sum of the other dimension", total, reduced(lambda x, i, j: Sum(j, x[j, i])))
    yield Mistake("sum called product", total, reduced(lambda x, i, j: Prod(j, x[i, j])))
    yield Mistake("largest called sum", largest, reduced(lambda x, i, j: Sum(j, x[i, j])))
    yield Mistake("largest called smallest", largest, reduced(lambda x, i, j: Min(j, x[i, j])))
    yield Mistake("largest magnitude", largest, reduced(lambda x, i, j: Max(j, apply("abs", x[i, j]))))
    mean = call("mean.dim", normal(6, 6), [1])
    yield Mistake("mean not divided", mean, reduced(lambda x, i, j: Sum(j, x[i, j])))

    def running(op, self):
        i, j = indices("i j")
        op.output(0)[i, j] = opaque(self[i, j])

    yield Mistake("cumulative sum element by element", call("cumsum.default", normal(6, 6), 1), running)

    def doubled(op, self):
        i, j = indices("i j")
        q = index("q", 2)
        op.output(0)[i, j] = Sum(q, apply("maximum", self[i, j], 0))

    yield Mistake("relu summed twice", call("relu.default", normal(6, 6)), doubled)


def lookups() -> Iterator[Mistake]:
    rows = torch.tensor([3, 1, 0, 2, 5, 4])

    def by_position(op, weight, indices):
        i, j = index("i"), index("j")
        op.output(0)[i, j] = weight[i, j] * apply("eq", indices[i], indices[i])

    yield Mistake("row by position", call("embedding.default", normal(6, 4), rows), by_position)

    def overwritten(op, grad_output, indices):
        i, j, v = index("i"), index("j"), index("v")
        op.output(0)[v, j] = Max(i, where(equal(indices[i], v), grad_output[i, j], -9e9))

    twice = torch.tensor([3, 1, 0, 2, 5, 4, 4, 0])
    backward = call("embedding_dense_backward.default", normal(8, 4), twice, 6, -1, False)
    yield Mistake("gradients of a row not added", backward, overwritten)

    def ignored(op, self, target):
        n, c = indices("n c")
        loss = op.stage("loss", ())
        loss[()] = -Sum((n, c), where(equal(target[n], c), self[n, c], 0))
        op.output(0)[()] = loss[()] / 8
        op.output(1)[()] = apply("add", 8, 0)

    target = torch.tensor([0, 1, 2, 3, 4, -100, 1, 2])
    loss = call("nll_loss_forward.default", normal(8, 5), target, None, 1, -100)
    yield Mistake("ignored targets counted", loss, ignored)


def wrong_strategies() -> Iterator[Mistake]:
    """Descriptions that are right, with mistakes as the derivation could make them."""
    torch.manual_seed(0)
    mm = call("mm.default", normal(6, 8), normal(8, 10))
    addmm = call("addmm.default", normal(6), normal(6, 7), normal(7, 6))
    amax = call("amax.default", normal(6, 8), [1])
    product = call("prod.dim_int", normal(6, 8), 1)
    soft = call("_softmax.default", normal(6, 8), 1, False)
    norm = call("native_layer_norm.default", normal(6, 8), [8], normal(8), normal(8), 1e-5)
    conv, strided = conv_call(), conv_call(2, 1)
    gates = call("cat.default", [normal(4, 6), normal(4, 6)], 1)

    def on(axis, **changes):
        def alter(strategy):
            return replace(strategy, **changes) if strategy.name == axis else None

        return alter

    whole, rows, columns = Replicated(), Split(0, 1, 6, 1), Split(1, 1, 10, 1)
    summed = Partial(Reduction.SUM)
    yield Mistake("a sum reduced by its largest", mm, alter=on("k", outputs=(Partial(Reduction.MAX),)))
    yield Mistake("a partial sum taken as the result", mm, alter=on("k", outputs=(whole,)))
    yield Mistake("a partial sum taken as a chunk", mm, alter=on("k", outputs=(rows,)))
    yield Mistake("a chunk taken as a partial sum", mm, alter=on("i", outputs=(summed,)))
    yield Mistake("a chunk taken as the result", mm, alter=on("i", outputs=(whole,)))
    yield Mistake("a chunk of the other dimension", mm, alter=on("i", outputs=(columns,)))
    yield Mistake("factors that do not make up the dimension", mm, alter=on("i", outputs=(Split(0, 1, 5, 1),)))
    yield Mistake("an input said to be unread", mm, alter=on("i", inputs=(rows, Unread())))
    yield Mistake("the wrong input cut", mm, alter=on("i", inputs=(whole, Split(1, 1, 10, 1))))
    yield Mistake("an input cut along the wrong dimension", mm, alter=on("i", inputs=(Split(1, 1, 8, 1), whole)))
    yield Mistake("both inputs cut for rows", mm, alter=on("i", inputs=(rows, columns)))
    yield Mistake("a row added by every worker", addmm, alter=on("k", once=frozenset()))
    yield Mistake("a factor used once", addmm, alter=on("k", once=frozenset({0, 1})))
    yield Mistake("largest values added", amax, alter=on("i1", outputs=(summed,)))
    yield Mistake("largest reduced to the smallest", amax, alter=on("i1", outputs=(Partial(Reduction.MIN),)))
    yield Mistake("products added", product, alter=on("i1", outputs=(summed,)))
    yield Mistake("a stage not combined", soft, alter=on("i1", stages=()))
    yield Mistake("only one of two stages combined", soft, alter=drop_stage)
    yield Mistake("a stage combined by another reduction", soft, alter=swap_reduction)
    yield Mistake("a stage of another size", soft, alter=grow_stage)
    yield Mistake("statistics of a chunk", norm, alter=on("j0", stages=()))
    yield Mistake("gates cut as one row of channels", gates, alter=on("inner", outputs=(Split(1, 1, 12, 1),)))
    yield Mistake("gates cut by the wrong factor", gates, alter=on("inner", outputs=(Split(1, 1, 6, 2),)))
    yield Mistake("a linear op that is not", call("relu.default", normal(6, 8)), alter=linear)
    yield Mistake("two factors partial at once", mm, alter=both_partial)
    for place in (0, 1):
        for side in (0, 1):
            name = ("first", "last")[side]
            yield Mistake(f"{name} index of input {place} left out", strided, alter_regions=resized(place, side, -1))
            yield Mistake(f"input {place} one too far at its {name}", conv, alter_regions=resized(place, side, 1))
    yield Mistake("halo shifted", conv, alter_regions=shifted)
    yield Mistake("halo left out on both sides", conv, alter_regions=without_halo)
    yield Mistake("an input's region missing", mm, alter_regions=lambda found: (None, *found[1:]))


def drop_stage(strategy):
    return replace(strategy, stages=strategy.stages[:1]) if len(strategy.stages) > 1 else None


def swap_reduction(strategy):
    changed = tuple(replace(stage, reduction=Reduction.MAX) for stage in strategy.stages)
    return replace(strategy, stages=changed) if changed else None


def grow_stage(strategy):
    changed = tuple(replace(stage, elements=stage.elements + 1) for stage in strategy.stages)
    return replace(strategy, stages=changed) if changed else None


def linear(strategy):
    summed = Partial(Reduction.SUM)
    return replace(strategy, axis=None, inputs=(summed,), outputs=(summed,))


def both_partial(strategy):
    summed = Partial(Reduction.SUM)
    return replace(strategy, inputs=(summed, summed)) if strategy.axis is None else None


def changed_extents(regions: tuple[Region | None, ...], place: int, change: Callable[[Digit], Digit]):
    """Regions in which the extents that are not whole are changed, of one input."""
    found = list(regions)
    region = found[place]
    if region is not None:
        found[place] = Region(
            tuple(tuple(digit if digit.whole else change(digit) for digit in extent) for extent in region.extents)
        )
    return tuple(found)


def resized(place, side, by):
    def change(digit):
        start = min(max(digit.start - (by if side == 0 else 0), 0), digit.stop)
        stop = max(min(digit.stop + (by if side == 1 else 0), digit.size), start)
        return Digit(digit.size, start, stop)

    return lambda regions: changed_extents(regions, place, change)


def shifted(regions):
    return changed_extents(regions, 0, lambda d: Digit(d.size, min(d.start + 1, d.size), min(d.stop + 1, d.size)))


def without_halo(regions):
    def change(digit):
        near = digit.size // 2
        return Digit(digit.size, near if digit.start else 0, digit.size if digit.start else near)

    return changed_extents(regions, 0, change)
