"""Arithmetic and memory traffic of a kernel call, from its shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import Any

import torch

from planner.program import Event, Layout

_ATEN = torch.ops.aten


def traffic(tensors: Iterable[Layout]) -> int:
    """Bytes read and written when every element of every tensor is touched once.

    An element that a broadcast repeats counts once.
    """
    total = 0
    for layout in tensors:
        elements = 1
        for size, stride in zip(layout.shape, layout.strides, strict=True):
            elements *= size if stride or not size else 1
        total += elements * layout.dtype.itemsize
    return total


def flops(event: Event) -> int:
    """Floating-point operations of a call: two per multiply-add, one per element of anything else's results."""
    formula = _FORMULAS.get(event.target)
    if formula is not None:
        return formula(event)
    return sum(result.elements for result in event.results if result is not None)


def _matmul(first: int) -> Callable[[Event], int]:
    def formula(event: Event) -> int:
        left: Layout = event.args[first]
        right: Layout = event.args[first + 1]
        return int(2 * left.elements * right.shape[-1])

    return formula


def _convolution(event: Event) -> int:
    source, weight = event.args[0].shape, event.args[1].shape
    result = event.results[0]
    assert result is not None
    transposed = event.args[6]
    positions = source if transposed else result.shape
    return int(2 * source[0] * prod(weight) * prod(positions[2:]))


def _convolution_backward(event: Event) -> int:
    gradient, source, weight = (event.args[place].shape for place in range(3))
    transposed, mask = event.args[7], event.args[10]
    positions = source if transposed else gradient
    each = 2 * gradient[0] * prod(weight) * prod(positions[2:])
    return int(each * (int(mask[0]) + int(mask[1])))


def _attention(matmuls: int, first: int) -> Callable[[Event], int]:
    def formula(event: Event) -> int:
        query, key, value = (event.args[first + place].shape for place in range(3))
        heads = prod(query[:-2])
        half = matmuls // 2
        # Half of the products run over the query's width, half over the value's.
        return int(2 * heads * query[-2] * key[-2] * (query[-1] * (matmuls - half) + value[-1] * half))

    return formula


def _lstm(products: int) -> Callable[[Event], int]:
    def formula(event: Event) -> int:
        source, of_input, of_state = (event.args[place] for place in range(3))
        cells = prod(source.shape[:2])
        return int(2 * products * cells * (of_input.elements + of_state.elements))

    return formula


_FORMULAS: dict[Any, Callable[[Event], int]] = {
    _ATEN.mm.default: _matmul(0),
    _ATEN.bmm.default: _matmul(0),
    _ATEN.addmm.default: _matmul(1),
    _ATEN.baddbmm.default: _matmul(1),
    _ATEN.convolution.default: _convolution,
    _ATEN.convolution_backward.default: _convolution_backward,
    _ATEN.mkldnn_rnn_layer.default: _lstm(1),
    _ATEN.mkldnn_rnn_layer_backward.default: _lstm(2),
}
for _name in ("flash_attention", "efficient_attention", "cudnn_attention", "flash_attention_for_cpu"):
    _forward = getattr(_ATEN, f"_scaled_dot_product_{_name}").default
    _backward = getattr(_ATEN, f"_scaled_dot_product_{_name}_backward").default
    _FORMULAS[_forward] = _attention(2, 0)
    # Five products: the scores again, and the gradients of the weights, value, query and key.
    _FORMULAS[_backward] = _attention(5, 1)
