"""Executable programs: one kernel call per op of the graph, and where the initial and final values belong.

A program is kept in memory with its graph and is never written to a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from planner.program.outputs import ExtrasForm
from planner.program.python_side_effects import Effects
from planner.program.readings import Readings


@dataclass(frozen=True, slots=True)
class Call:
    """The kernel call of one op.

    Args:
        target: the operator overload (`torch.ops.aten.mm.default`).
        args, kwargs: its arguments; nested lists and tuples may hold `TensorRef` and `ScalarRef`.
        results: per value it returns, the tensor of the graph, or -1 if the value is unused (then it may be None).
            The op's outputs are these, then those that the kernel updates through an argument without returning them
            (the running statistics of `native_batch_norm`).
        in_place: the kernel writes its results into its arguments (`aten.add_.Tensor`, `aten.bernoulli_.float`), so
            it is called unchanged; if it does not read the previous contents, the argument names the result's tensor.
    """

    target: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    results: tuple[int, ...]
    in_place: bool = False


class StepScalars(Protocol):
    """The numbers behind the references of a program."""

    def __call__(self, number: int, skipped: int = 0, /) -> Mapping[str, float]:
        """The number behind each `ScalarRef` name.

        Args:
            number: of the step, which counts from 0 in this run.
            skipped: how many of the run's steps before it have updated nothing.
        """


@dataclass(frozen=True)
class Program:
    """The calls of a step and their connection to the live model.

    Args:
        calls: parallel to `Graph.ops`.
        state: (tensor of the graph, key) of every parameter, buffer and optimizer state at the start of the step;
            the keys are those of `TrainStep.state()`. Each storage is named once: tied weights share one.
        constants: (tensor of the graph, value) of tensors that the trace baked in.
        batch: tensors of the graph, parallel to the tensor leaves of the batch.
        loss: the tensor that holds the loss; the first output for inference.
        scalars: the numbers behind each `ScalarRef` name.
        unused: by kernel (`aten.add`), how many calls of eager PyTorch were omitted, because no tensor that outlives
            the step depends on them.
        temporaries: by op, bytes of scratch memory in which its call computes its results before they are
            copied to their destination; calls that write directly to it are left out. Other scratch memory of a kernel
            is not known here.
        effects: effects on Python variables; None if there are none.
        returned: how many of the graph's outputs the step returns; those after them are for `effects` and `overflow`.
        readings: the values of the batch by which Python code chose these calls.
        guessed: whether the model may have chosen other calls than in eager PyTorch, because the batch had no values
            yet and the model's code asked if it was being traced.
        extras: how the outputs after the loss are put together; None if the loss returns nothing beside its value.
        overflow: whether the last output is a number that is not 0 in a step that updates nothing, since a gradient
            scaler has found a gradient that is not finite.
    """

    calls: tuple[Call, ...]
    state: tuple[tuple[int, str], ...]
    constants: tuple[tuple[int, torch.Tensor], ...]
    batch: tuple[int, ...]
    loss: int
    scalars: StepScalars
    unused: Mapping[str, int] = field(default_factory=dict)
    temporaries: Mapping[int, int] = field(default_factory=dict)
    effects: Effects | None = None
    returned: int = 1
    readings: Readings = field(default_factory=Readings)
    guessed: bool = False
    extras: ExtrasForm | None = None
    overflow: bool = False
