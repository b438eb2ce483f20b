"""What can be executed: one kernel call per op of the graph, and where its first and last values belong.

A program stays in memory beside its graph and is never written to a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from planner.capture.effects import Effects
from planner.capture.readings import Readings


@dataclass(frozen=True, slots=True)
class TensorRef:
    """An argument that is a tensor of the graph."""

    tensor: int


@dataclass(frozen=True, slots=True)
class ScalarRef:
    """An argument that is a number which changes from step to step, such as a learning rate."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """The kernel call of one op.

    Args:
        target: the operator overload (`torch.ops.aten.mm.default`).
        args, kwargs: its arguments; nested lists and tuples may hold `TensorRef` and `ScalarRef`.
        results: per value it returns, the tensor of the graph, or -1 for what nobody reads (then it may be None).
            The op's outputs are these, then those that the kernel updates through an argument without returning them
            (the running statistics of `native_batch_norm`).
        in_place: the kernel writes its results into its arguments (`aten.add_.Tensor`, `aten.bernoulli_.float`), so
            it is called as it is; where it does not read what was there, the argument names the result's tensor.
    """

    target: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    results: tuple[int, ...]
    in_place: bool = False


@dataclass(frozen=True)
class Program:
    """The calls of a step and its ties to the live model.

    Args:
        calls: parallel to `Graph.ops`.
        state: (tensor of the graph, key) of every parameter, buffer and optimizer state as it is when the step starts;
            the keys are those of `TrainStep.state()`. Each storage is named once: tied weights share one.
        constants: (tensor of the graph, value) of tensors that the trace baked in.
        batch: tensors of the graph, parallel to the tensor leaves of the batch.
        loss: the tensor that holds the loss; the first output for inference.
        scalars: the numbers behind each `ScalarRef` name in step `number`, which counts from 0 in this run.
        unused: how many calls of each kernel (`aten.add`) eager makes that were left out, because nothing that
            outlives the step follows from them.
        effects: what the step leaves in Python's variables; None for nothing.
        returned: how many of the graph's outputs the step returns; those after them are for `effects`.
        temporaries: by op, bytes that its call makes its results in on a CPU before they are copied to their place;
            calls that write straight into it are left out. Of what else a kernel takes nothing is known here.
        readings: the values of the batch by which Python code chose these calls.
        guessed: whether the model may have chosen otherwise than it does in eager PyTorch, because the batch had no
            values yet and its code asked for that.
    """

    calls: tuple[Call, ...]
    state: tuple[tuple[int, str], ...]
    constants: tuple[tuple[int, torch.Tensor], ...]
    batch: tuple[int, ...]
    loss: int
    scalars: Callable[[int], Mapping[str, float]]
    unused: Mapping[str, int] = field(default_factory=dict)
    temporaries: Mapping[int, int] = field(default_factory=dict)
    effects: Effects | None = None
    returned: int = 1
    readings: Readings = field(default_factory=Readings)
    guessed: bool = False
