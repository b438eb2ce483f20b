"""Which ops that read more or other elements than chunks a worker computes from the regions that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from planner.partition.ops.broadcast import pair
from planner.partition.parts.op_call import OpCall
from planner.partition.strategy import Split, Strategy
from planner.partition.tdl import Read, Reduce, attained, walk

_ATEN = torch.ops.aten
_MAX_POOL = _ATEN.max_pool2d_with_indices.default
_AVERAGES = frozenset({_ATEN.avg_pool2d.default, _ATEN.avg_pool2d_backward.default})
#: Kernels that count places in whole images.
_COUNTED = frozenset({_MAX_POOL, _ATEN.max_pool2d_with_indices_backward.default})
#: Kernels whose windows move over images.
IMAGES = frozenset({
    _ATEN.convolution.default, _ATEN.convolution_backward.default, *_COUNTED, *_AVERAGES
})  # fmt: skip
#: Kernels that join, pad and cut tensors.
_JOINTS = frozenset({_ATEN.cat.default, _ATEN.constant_pad_nd.default, _ATEN.slice_backward.default})


def windowed_inputs(call: OpCall, strategy: Strategy) -> Mapping[int, int]:
    """By place of an input of which a worker reads other elements than its chunk's, the dimension of these."""
    counts = call.target in _COUNTED
    return {
        place: want.dimension for place, want in enumerate(strategy.inputs)
        if isinstance(want, Split) and (want.halo or (counts and want.dimension > 1))
    }  # fmt: skip


def is_transposed(call: OpCall) -> bool:
    """Whether it is a convolution that spreads its image."""
    return bool(call.arguments.get("transposed", False))


def window_obstacle(call: OpCall, strategy: Strategy) -> str:
    """Why a worker does not compute its part from the regions that it reads; empty if it does.

    Args:
        call: of the op.
        strategy: how it is divided, so that it reads other elements than its chunk's.
    """
    axis, dimensions = strategy.axis, set(windowed_inputs(call, strategy).values())
    assert axis is not None
    if call.target not in IMAGES | _JOINTS:
        return f"{call.target} needs more than its chunks, and no rule is known for it"
    if len(dimensions) > 1:
        return "it reads more of two dimensions at once"
    give = next((give for give in call.gives(strategy) if isinstance(give, Split)), None)
    if give is not None and ({give.dimension} != dimensions or give.size != axis.size):
        return "what it makes is not divided along the dimension that it reads more of"
    if call.target in _JOINTS:
        return ""
    if axis.name[0] not in "yxhw":
        return f"windows themselves are divided along {axis.name}"
    if is_transposed(call):
        return "its image is divided, and it is transposed"
    mask = call.arguments.get("output_mask")
    if mask and mask[0] and (mask[1] or mask[2]):
        return "its image is divided, and it makes all gradients at once"
    if call.target in _AVERAGES and _averages_fewer(call.arguments):
        return "windows at the borders of its divided images average fewer values"
    if call.target is _MAX_POOL and _reads_nothing(call, strategy):
        return "a window reads nothing but its border"
    return ""


def _averages_fewer(arguments: Mapping[str, Any]) -> bool:
    fewer = arguments["ceil_mode"] or (not arguments["count_include_pad"] and any(pair(arguments["padding"])))
    return arguments["divisor_override"] is None and bool(fewer)


def _reads_nothing(call: OpCall, strategy: Strategy) -> bool:
    """Whether there is a window of which no element is in the image."""
    axis = strategy.axis
    assert axis is not None
    (dimension,) = set(windowed_inputs(call, strategy).values())
    reads = [
        part for reduce in walk(call.description.outputs[0].value) if isinstance(reduce, Reduce)
        for part in reduce.parts if isinstance(part, Read)
    ]  # fmt: skip
    for read in reads:
        place, size = read.places[dimension], read.operand.shape[dimension]
        assert place is not None
        for window in range(axis.size):
            first, last = attained(place, {axis: (window, window + 1)}, size)
            if last < first:
                return True
    return False
