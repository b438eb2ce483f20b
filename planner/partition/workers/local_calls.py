"""Which kernels compute a worker's part when they are called on its chunks, and with which sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from planner.partition.strategy import Partial, Split, State
from planner.partition.tdl import Range
from planner.partition.workers.divisions import Divided
from planner.partition.workers.events import refuse
from planner.partition.workers.spreads import Cut
from planner.program import Layout

_ATEN = torch.ops.aten

#: Kernels that compute a chunk of their results from chunks of their arguments, whichever axis is divided.
_PLAIN = frozenset({
    _ATEN.mm.default, _ATEN.bmm.default, _ATEN.addmm.default, _ATEN.baddbmm.default, _ATEN.sum.dim_IntList,
    _ATEN.sum.default, _ATEN.clone.default, _ATEN.copy_.default, _ATEN.native_layer_norm_backward.default,
    _ATEN.embedding.default, _ATEN.embedding_dense_backward.default, _ATEN.nll_loss_backward.default,
    _ATEN._log_softmax.default, _ATEN._softmax.default, _ATEN._log_softmax_backward_data.default,
    _ATEN._softmax_backward_data.default, _ATEN.native_layer_norm.default, _ATEN.threshold_backward.default,
    _ATEN.tanh_backward.default, _ATEN.sigmoid_backward.default, _ATEN.gelu_backward.default,
    _ATEN.silu_backward.default, _ATEN.ones_like.default, _ATEN.zeros_like.default, _ATEN.full_like.default,
    _ATEN._scaled_dot_product_flash_attention_for_cpu.default,
    _ATEN._scaled_dot_product_flash_attention_for_cpu_backward.default,
})  # fmt: skip
#: Kernels whose dimension of this argument must be whole.
_ALONG = {_ATEN.cat.default: 1, _ATEN.stack.default: 1}
#: Kernels whose argument at this place is the shape of the result, and the dimension that must be whole after it.
_SIZED = {_ATEN.slice_backward.default: (1, 2), _ATEN.select_backward.default: (1, 2)}
#: Kernels whose argument at this place is the shape of the result, which is all alike.
_FILLED = {
    _ATEN.full.default: 0, _ATEN.zeros.default: 0, _ATEN.ones.default: 0, _ATEN.new_zeros.default: 1,
    _ATEN.new_ones.default: 1, _ATEN.new_full.default: 1,
}  # fmt: skip
_ARANGES = (_ATEN.arange.default, _ATEN.arange.start, _ATEN.arange.start_step)
#: Kernels that look numbers up in the rows of the argument (or result, -1) here, which must be whole.
_LOOKED_UP = {_ATEN.embedding.default: 0, _ATEN.embedding_dense_backward.default: -1}
_CLASSES = {_ATEN.nll_loss_forward.default: (0, 1), _ATEN.nll_loss_backward.default: (1, 1)}


def local_range(
    name: str, target: Any, args: tuple[Any, ...], elements: int, own: Mapping[Cut, Range]
) -> tuple[Any, tuple[Any, ...]]:
    """The kernel and arguments that make a worker's chunk of a range of numbers; others stay as they are.

    Args:
        name: of the op.
        target, args: its kernel and its arguments.
        elements: how many numbers there are.
        own: by digit of their places that is cut, what the worker has.

    Raises:
        StowageError: the chunk is not contiguous.
    """
    if target not in _ARANGES or not own:
        return target, args
    start, step = (args[0] if len(args) > 1 else 0), (args[2] if len(args) > 2 else 1)
    begin, left = 0, elements
    for cut in sorted(own, key=lambda cut: -cut.stride):
        if cut.block != left or not all(isinstance(value, int) for value in (start, step)):
            raise refuse(name, "its numbers are not divided into ranges of whole numbers")
        first, last = own[cut]
        begin, left = begin + first * cut.stride, (last - first) * cut.stride
    return _ATEN.arange.start_step, (start + begin * step, start + (begin + left) * step, step)


def local_arguments(
    name: str, target: Any, args: tuple[Any, ...], divided: Divided, results: Sequence[Layout | None]
) -> tuple[Any, ...]:
    """The arguments of a worker's call, whose tensors are local already.

    Args:
        name: of the op.
        target: its kernel.
        args: its arguments.
        divided: how it is divided.
        results: what the worker's call returns.

    Raises:
        StowageError: the kernel does not compute a part from parts.
    """
    strategy = divided.strategy
    if strategy is None or target in _ARANGES:
        return args
    if strategy.stages:
        raise refuse(name, "its workers would have to combine what they have while it runs")
    if any(isinstance(state, Split) and state.halo for state in divided.wants):
        raise refuse(name, "its workers would need more than their chunks")
    if target in _ALONG:
        if target is not _ATEN.cat.default or not _joins_factors(divided):
            _whole(name, args[_ALONG[target]] if len(args) > 1 else 0, divided.gives[0], results[0])
        return args
    if target in _SIZED:
        place, along = _SIZED[target]
        _whole(name, args[along], divided.gives[0], results[0])
        assert results[0] is not None
        return (*args[:place], results[0].shape, *args[place + 1 :])
    if target in _FILLED:
        assert results[0] is not None
        return (*args[: _FILLED[target]], results[0].shape, *args[_FILLED[target] + 1 :])
    if target not in _PLAIN and torch.Tag.pointwise not in target.tags:
        raise refuse(name, f"no rule is known for {target}")
    if target is _ATEN.embedding_dense_backward.default and args[4]:
        raise refuse(name, "it scales by how often a number occurs in the whole batch")
    rows = _LOOKED_UP.get(target)
    if rows is not None:
        state: State = divided.gives[0] if rows < 0 else divided.wants[rows]
        if isinstance(state, Split) and state.dimension == 0:
            raise refuse(name, "the rows that it looks up are divided")
    if target in _CLASSES:
        place, dimension = _CLASSES[target]
        state = divided.wants[place]
        if isinstance(state, Split) and state.dimension == dimension:
            raise refuse(name, "the classes are divided")
    return args


def _joins_factors(divided: Divided) -> bool:
    """Whether parts that are joined are divided by the same factor, each of them in full."""
    give = divided.gives[0]
    if not isinstance(give, Split):
        return False
    alike = [
        want for want in divided.wants
        if isinstance(want, Split)
        and (want.dimension, want.size, want.inner) == (give.dimension, give.size, give.inner)
    ]  # fmt: skip
    return len(alike) == len(divided.wants) and sum(want.outer for want in alike) == give.outer


def _whole(name: str, dimension: int, state: State, result: Layout | None) -> None:
    assert result is not None
    if isinstance(state, Partial):
        return
    if isinstance(state, Split) and state.dimension == dimension % len(result.shape):
        raise refuse(name, "the dimension that it joins or fills is divided")
