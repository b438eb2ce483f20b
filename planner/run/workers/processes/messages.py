"""A worker's graph and program as bytes: a process that has neither the model nor the step can run them."""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

import torch

from planner.graph import Graph
from planner.plan import SwapPlan
from planner.program import Program, Readings
from planner.run.workers.processes.process_settings import ProcessSettings
from planner.torch_private import OpOverload


class StepNumbers:
    """The numbers of a step that change from one to the next, as they came with it.

    Args:
        values: by the name that calls have for them.
    """

    def __init__(self, values: Mapping[str, float]) -> None:
        self.values = dict(values)

    def __call__(self, _number: int, _skipped: int = 0) -> Mapping[str, float]:
        """The numbers of the present step."""
        return self.values


@dataclass(frozen=True, eq=False)
class WorkerJob:
    """What one worker has to do.

    Args:
        graph: of the worker, with its program.
        plan: of the worker's step on its device.
        mesh: of the partition.
        worker: which worker.
        state: its parts of parameters, buffers and optimizer state, by key.
        threads: how many threads its kernels use.
        settings: PyTorch's, of the process that asks.
    """

    graph: Graph
    plan: SwapPlan
    mesh: tuple[int, ...]
    worker: int
    state: Mapping[str, torch.Tensor]
    threads: int
    settings: ProcessSettings


def packed(job: WorkerJob) -> bytes:
    """A job as bytes, without anything of the live step."""
    program: Program = job.graph.program
    numbers = StepNumbers(program.scalars(0))
    alone = replace(program, scalars=numbers, effects=None, readings=Readings(), unused={})
    buffer = io.BytesIO()
    _Pickler(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump((job, alone))  # a graph is pickled without its program
    return buffer.getvalue()


def unpacked(data: bytes) -> tuple[WorkerJob, StepNumbers]:
    """The job, and the numbers of its program, to be set before each step."""
    job, program = pickle.loads(data)
    return replace(job, graph=replace(job.graph, program=program)), program.scalars


def send(connection: Connection, message: object) -> None:
    """Send a message by value: `Connection.send` would put tensors into shared memory, which may be small."""
    connection.send_bytes(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))


def receive(connection: Connection) -> Any:
    """Receive a message.

    Raises:
        EOFError: the other end is closed.
    """
    return pickle.loads(connection.recv_bytes())


class _Pickler(pickle.Pickler):
    """Writes operators and memory formats by name."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, OpOverload):
            return _operator, (str(value),)
        if isinstance(value, torch.memory_format):  # which module pickle finds it in depends on what was imported
            return _of_torch, (str(value).removeprefix("torch."),)
        return NotImplemented


def _operator(name: str) -> Any:
    namespace, packet, overload = name.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), packet), overload)


def _of_torch(name: str) -> Any:
    return getattr(torch, name)
