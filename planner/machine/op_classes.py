"""Op classes: groups of kernels with a similar efficiency."""

from __future__ import annotations

from enum import StrEnum
from functools import cache

from planner.graph import Graph, Op, Tensor


class OpClass(StrEnum):
    """Kernels that reach a similar share of a device's peak."""

    MATMUL = "matmul"
    ATTENTION = "attention"
    CONVOLUTION_3X3 = "convolution_3x3"
    CONVOLUTION = "convolution"
    DEPTHWISE = "depthwise"
    MEMORY = "memory"


_MATMULS = frozenset({
    "mm", "addmm", "bmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "linear", "matmul", "mkldnn_rnn_layer",
    "mkldnn_rnn_layer_backward",
})  # fmt: skip


def op_class(graph: Graph, op: Op) -> OpClass:
    """The class of an op, from its operator and the shapes of its tensors.

    `CONVOLUTION_3X3` are the convolutions that Winograd's algorithm speeds up: kernel 3 by 3, stride 1, one group.
    `DEPTHWISE` convolutions have one input channel per filter. `MEMORY` is everything bound by memory traffic.
    """
    return _class_by_name(op.target) or _convolution(graph, op)


@cache
def _class_by_name(target: str) -> OpClass | None:
    """The class of all ops with an operator; None for convolutions, of which it depends on shapes."""
    name = _bare(target)
    if name in _MATMULS:
        return OpClass.MATMUL
    if "dot_product" in name or "attention" in name:
        return OpClass.ATTENTION
    return None if "convolution" in name or name.startswith("conv") else OpClass.MEMORY


def operator(op: Op) -> str:
    """The operator's bare name: `mm` for `aten.mm.default`."""
    return _bare(op.target)


def _bare(target: str) -> str:
    parts = target.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def _convolution(graph: Graph, op: Op) -> OpClass:
    inputs = [graph.tensors[tensor] for tensor in op.inputs]
    backward = "backward" in operator(op)
    # forward: (image, weight, ...); backward: (gradient of the output, image, weight)
    weight = inputs[2 if backward else 1]
    image = inputs[1 if backward else 0]
    result = inputs[0] if backward else graph.tensors[op.outputs[0]]
    if weight.shape[1] == 1 and image.shape[1] > 1:
        return OpClass.DEPTHWISE
    three_by_three = weight.shape[2:] == (3, 3) and weight.shape[1] == image.shape[1]
    return OpClass.CONVOLUTION_3X3 if three_by_three and _stride_is_one(image, result) else OpClass.CONVOLUTION


def _stride_is_one(image: Tensor, result: Tensor) -> bool:
    return all(before - after <= 2 for before, after in zip(image.shape[2:], result.shape[2:], strict=True))
