"""However a call is bound, its results are those of the plain call, and nothing beside them is touched."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from planner.program import backend_of, bind, writes_directly
from planner.program.out_variants import out_variant
from planner.program.program import Call
from planner.run import same_bits

aten = torch.ops.aten
CPU = backend_of("cpu")
X, Y, Z = (torch.randn(6, 8, generator=torch.Generator().manual_seed(seed)) for seed in range(3))
WIDE = torch.randn(400, 300, generator=torch.Generator().manual_seed(5))  # for several threads
MASK, ROWS = X > 0, torch.tensor([1, 1, 4])
IMAGES = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(3))
FILTERS = torch.randn(5, 3, 3, 3, generator=torch.Generator().manual_seed(4))

DIRECT: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
    (aten.clone.default, (X.t(),), {"memory_format": torch.contiguous_format}),
    (aten._to_copy.default, (X,), {"dtype": torch.bfloat16}),
    (aten.zeros_like.default, (X,), {"pin_memory": False}),
    (aten.new_zeros.default, (X, [3, 4]), {}),
    (aten.ones_like.default, (X,), {}),
    (aten.new_ones.default, (X, [3]), {"dtype": torch.int64}),
    (aten.full_like.default, (X, 2.5), {}),
    (aten.new_full.default, (X, [3], 7), {}),
    (aten.scalar_tensor.default, (3.5,), {}),
    (aten.full.default, ([3, 4], 1.5), {"device": "cpu", "pin_memory": False}),
    (aten.arange.default, (7,), {"device": "cpu"}),
    (aten.relu.default, (X,), {}),
    (aten.add.Scalar, (X, 2.5), {}),
    (aten.add.Scalar, (X, 2.5, 3), {}),
    (aten.sub.Scalar, (X, 2.5, 3), {}),
    (aten.mul.Scalar, (X, 0.3), {}),
    (aten.div.Scalar, (X, 3), {}),
    (aten.mul.Tensor, (X, 2.5), {}),
    (aten.index_put.default, (X, [ROWS], Y[:3], True), {}),
    (aten.masked_fill.Scalar, (X, MASK, -1e9), {}),
    (aten.masked_fill.Tensor, (X, MASK, torch.tensor(2.0)), {}),
    (aten.slice_backward.default, (Y[:2], [6, 8], 0, 1, 3, 1), {}),
    (aten.select_backward.default, (Y[0], [6, 8], 0, 2), {}),
    (aten.slice_scatter.default, (X, Y[:2], 0, 1, 3), {}),
    (aten.select_scatter.default, (X, Y[0], 0, 2), {}),
    (aten.bernoulli.p, (X, 0.3), {}),
    (aten.rand.default, ([4, 5],), {"device": "cpu"}),
    (aten.rand_like.default, (X.t(),), {}),
    (aten.randn.default, ([4, 5],), {"dtype": torch.float64, "pin_memory": False}),
    (aten.randn_like.default, (X.bfloat16(),), {}),
    (aten.randint.default, (7, [4, 5]), {"device": "cpu"}),
    (aten.randint.low, (-3, 7, [4, 5]), {"dtype": torch.int32}),
    (aten.randint_like.default, (X, 7), {}),
    (aten.randint_like.low_dtype, (X, -3, 7), {"dtype": torch.int64}),
    (aten.randperm.default, (20,), {"device": "cpu"}),
    *(
        (aten.native_dropout.default, (x, p, True), {})
        for x in (X, X.t(), X.double(), X.bfloat16(), X / 0, WIDE)
        for p in (0.3, 1.0)
    ),
    (aten.native_dropout.default, (X, 0.3, None), {}),
    (aten.native_dropout.default, (X, 0.3, False), {}),
    (aten.mm.default, (X, Y.t()), {}),
    (aten.addmm.default, (Z[0, :6], X, Y.t()), {}),
    (aten.cat.default, ([X, Y], 1), {}),
    (aten.sum.dim_IntList, (X, [0], True), {}),
    (aten._log_softmax.default, (X, 1, False), {}),
    (aten.max_pool2d_with_indices.default, (IMAGES, [2, 2]), {}),
    (aten.mse_loss_backward.default, (torch.tensor(1.0), X, Y, 1), {}),
]
COPIED: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
    (aten.convolution.default, (IMAGES, FILTERS, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1), {}),
    (aten.native_layer_norm.default, (X, [8], None, None, 1e-5), {}),
    (aten.mse_loss.default, (X, Y), {}),
    (aten.smooth_l1_loss.default, (X, Y), {}),
]


def called(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Tensor, ...]:
    torch.manual_seed(1)
    values = target(*args, **kwargs)
    return (values,) if isinstance(values, Tensor) else tuple(values)


def bound(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], like: tuple[Tensor, ...]) -> list[Tensor]:
    """Results of the bound call, each written into the middle of memory that is otherwise full of 0xFF."""
    slabs, results = [], []
    for value in like:
        size, item = value.untyped_storage().nbytes(), value.element_size()
        slabs.append(torch.full((size + 512,), 0xFF, dtype=torch.uint8))
        view = torch.empty(0, dtype=value.dtype)
        results.append(view.set_(slabs[-1].untyped_storage(), 256 // item, value.shape, value.stride()))
    call = Call(target, args, kwargs, tuple(range(len(like))))
    torch.manual_seed(1)
    function, arguments, named = bind(CPU, call, args, kwargs, results)
    function(*arguments, **named)
    for slab in slabs:
        assert bool((slab[:256] == 0xFF).all())
        assert bool((slab[-256:] == 0xFF).all())
    return results


def named(value: Any) -> str:
    return str(value) if isinstance(value, torch._ops.OpOverload) else ""


@pytest.mark.parametrize(("target", "args", "kwargs"), DIRECT + COPIED, ids=named)
@torch.inference_mode()
def test_the_bound_call_has_the_plain_calls_bits(target: Any, args: Any, kwargs: Any) -> None:
    plain = called(target, args, kwargs)
    assert all(same_bits(a, b) for a, b in zip(bound(target, args, kwargs, plain), plain, strict=True))


def test_what_needs_temporary_memory_is_known_beforehand() -> None:
    for known, cases in ((True, DIRECT), (False, COPIED)):
        for target, args, kwargs in cases:
            assert writes_directly(CPU, Call(target, args, kwargs, (0,))) is known, target


def test_dropout_whose_mask_nobody_reads_makes_one_in_temporary_memory() -> None:
    call = Call(aten.native_dropout.default, (X, 0.3, True), {}, (0, -1))
    assert not writes_directly(CPU, call)
    plain, _ = called(call.target, call.args, {})
    result = torch.empty_like(plain)
    torch.manual_seed(1)
    function, args, kwargs = bind(CPU, call, call.args, {}, [result, None])
    function(*args, **kwargs)
    assert same_bits(result, plain)


def test_a_result_that_the_graph_lacks_rules_the_kernels_own_out_out() -> None:
    call = Call(aten.max_pool2d_with_indices.default, (IMAGES, [2, 2]), {}, (0, -1))
    assert not writes_directly(CPU, call)
    values, _ = call.target(*call.args)
    result = torch.empty_like(values)
    function, args, kwargs = bind(CPU, call, call.args, {}, [result, None])
    function(*args, **kwargs)
    assert same_bits(result, values)


def test_a_kernel_that_would_resize_its_result_is_not_given_one() -> None:
    # the shapes of a hand-made plan may be wrong: (8,) is not what adding (6, 8) and (6, 8) gives
    result = torch.full((64,), 7.0)[:8]
    function, args, kwargs = bind(CPU, Call(aten.add.Tensor, (X, Y), {}, (0,)), (X, Y), {}, [result])
    with pytest.raises(RuntimeError):
        function(*args, **kwargs)
    assert result.untyped_storage().nbytes() == 256


POINTWISE: list[tuple[Any, tuple[Any, ...]]] = [
    (aten.add.Tensor, (X, Y)), (aten.add.Scalar, (X, 2.0)), (aten.sub.Tensor, (X, Y)), (aten.sub.Scalar, (X, 2.0)),
    (aten.mul.Tensor, (X, Y)), (aten.mul.Scalar, (X, 2.0)), (aten.div.Tensor, (X, Y)), (aten.div.Scalar, (X, 3.0)),
    (aten.neg.default, (X,)), (aten.exp.default, (X,)), (aten.sqrt.default, (X,)), (aten.rsqrt.default, (X,)),
    (aten.reciprocal.default, (X,)), (aten.pow.Tensor_Scalar, (X, 3)), (aten.addcmul.default, (X, Y, Z)),
    (aten.addcdiv.default, (X, Y, Z)), (aten.lerp.Scalar, (X, Y, 0.3)), (aten.lerp.Tensor, (X, Y, Z)),
    (aten.maximum.default, (X, Y)), (aten.minimum.default, (X, Y)), (aten.relu.default, (X,)),
    (aten.threshold_backward.default, (X, Y, 0)), (aten.sigmoid.default, (X,)),
    (aten.sigmoid_backward.default, (X, Y)), (aten.tanh.default, (X,)), (aten.tanh_backward.default, (X, Y)),
    (aten.gelu.default, (X,)), (aten.gelu_backward.default, (X, Y)), (aten.silu.default, (X,)),
    (aten.silu_backward.default, (X, Y)), (aten.hardtanh.default, (X,)),
    (aten.hardtanh_backward.default, (X, Y, -1, 1)), (aten.where.self, (MASK, X, Y)), (aten.clamp.default, (X, 0, 1)),
    (aten.clamp_min.default, (X, 0)), (aten.sin.default, (X,)), (aten.cos.default, (X,)),
    (aten.index_put.default, (X, [ROWS], Y[:3], True)), (aten.masked_fill.Scalar, (X, MASK, 1.0)),
    (aten.masked_fill.Tensor, (X, MASK, torch.tensor(2.0))), (aten.slice_scatter.default, (X, Y[:2], 0, 1, 3)),
    (aten.select_scatter.default, (X, Y[0], 0, 2)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("target", "args"), POINTWISE, ids=named)
@torch.inference_mode()
def test_a_result_may_take_the_exact_place_of_an_input(target: Any, args: tuple[Any, ...], dtype: torch.dtype) -> None:
    def fresh() -> list[Any]:
        # large enough for vector loops, tails and threads
        grow = [a.repeat(700, 3) if isinstance(a, Tensor) and a.shape == X.shape else a for a in args]
        if target in (aten.slice_scatter.default, aten.select_scatter.default, aten.index_put.default):
            grow = [a.clone() if isinstance(a, Tensor) else a for a in args]
        return [a.to(dtype) if isinstance(a, Tensor) and a.is_floating_point() else a for a in grow]

    positions = [place for place, value in enumerate(fresh()) if isinstance(value, Tensor) and value.dtype is dtype]
    if dtype is not torch.float32 and target is aten.index_put.default:
        args = (args[0], args[1], args[2].to(dtype), True)
    taken = [place for place in positions if CPU.may_overwrite(target, place)]
    assert taken
    for place in taken:
        values = fresh()
        plain = target(*values)
        function, arguments, named = bind(CPU, Call(target, tuple(values), {}, (0,)), values, {}, [values[place]])
        function(*arguments, **named)
        assert same_bits(values[place], plain)


def test_a_matrix_product_never_overwrites_an_input() -> None:
    for target in (aten.mm.default, aten.addmm.default, aten.bmm.default, aten.cumsum.default, aten._softmax.default):
        assert not any(CPU.may_overwrite(target, place) for place in range(4))


def test_generated_out_variants_are_not_taken_for_kernels() -> None:
    assert out_variant(CPU, aten.convolution.default) is None
    assert out_variant(CPU, aten.mm.default) is not None
