"""Decomposition of calls that PyTorch makes as one and that are better planned separately."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from planner.program import Event


def decompose(event: Event) -> Iterator[tuple[Event, str]]:
    """Yield the calls that a call decomposes into, each with a suffix for its name.

    The gradients of a convolution's input and of its weight and bias are two kernels in any case; as separate calls,
    that of the weight can be delayed. The results are the same bit for bit.
    """
    if event.target is not torch.ops.aten.convolution_backward.default:
        yield event, ""
        return
    *rest, (of_input, of_weight, of_bias) = event.args
    if not (of_input and (of_weight or of_bias)):
        yield event, ""
        return
    data, weight, bias = event.results
    yield replace(event, args=(*rest, (True, False, False)), results=(data, None, None)), ".input"
    yield replace(event, args=(*rest, (False, of_weight, of_bias)), results=(None, weight, bias)), ".weight"
