"""PyTorch's own ways of training on several processes, which stay and make steps when asked."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch import Tensor, nn
from torch.distributed._tools.mem_tracker import MemTracker
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from planner.zoo import load

#: What a worker reports of the steps that it made: seconds of each, and memory in bytes.
Report = tuple[list[float], int]


def ddp(model: nn.Module, _mesh: DeviceMesh) -> nn.Module:
    """Replicate the model; gradients are reduced in buckets."""
    return nn.parallel.DistributedDataParallel(model)


def fsdp2(model: nn.Module, mesh: DeviceMesh) -> nn.Module:
    """Shard every layer, and gather it when it is needed."""
    for layer in _layers(model):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def tensor_parallel(model: nn.Module, mesh: DeviceMesh) -> nn.Module:
    """Split pairs of linear layers by columns, then by rows."""
    pairs = [
        ("layers.0", "layers.1"), ("layers.2", "layers.3")
    ] if hasattr(model, "layers") else [
        (f"blocks.{block}.expand", f"blocks.{block}.contract") for block in range(len(_layers(model)))
    ]  # fmt: skip
    styles = ColwiseParallel, RowwiseParallel
    plan = {name: style() for pair in pairs for name, style in zip(pair, styles, strict=True)}
    return parallelize_module(model, mesh, plan)


#: By name, what makes a module that is trained on all processes, and whether each gets a part of the batch.
WAYS: dict[str, tuple[Callable[[nn.Module, DeviceMesh], nn.Module], bool]] = {
    "DDP": (ddp, True),
    "FSDP2": (fsdp2, True),
    "DTensor TP": (tensor_parallel, False),
}


class TorchWorkers:
    """Processes in a group of their own.

    Args:
        workers: how many.
        threads: of each.
    """

    def __init__(self, workers: int, threads: int) -> None:
        context = processes.get_context("spawn")
        self._folder = tempfile.TemporaryDirectory()
        ends = [context.Pipe() for _ in range(workers)]
        store = str(Path(self._folder.name) / "store")
        self._connections = [own for own, _ in ends]
        self._processes = [
            context.Process(target=_serve, args=(other, rank, workers, threads, store), daemon=True)
            for rank, (_, other) in enumerate(ends)
        ]
        for process in self._processes:
            process.start()

    def steps(self, spec: str, way: str, steps: int) -> tuple[list[float], int]:
        """Make steps; returns the seconds of each on the slowest process, and the most memory that one used, in bytes.

        Args:
            spec: the zoo model.
            way: of `WAYS`.
            steps: how many.
        """
        for connection in self._connections:
            connection.send((spec, way, steps))
        replies = [connection.recv() for connection in self._connections]
        return [max(each) for each in zip(*(seconds for seconds, _ in replies), strict=True)], max(
            peak for _, peak in replies
        )

    def close(self) -> None:
        """End all."""
        for connection in self._connections:
            connection.send(None)
        for process in self._processes:
            process.join()
        self._folder.cleanup()


def _layers(model: nn.Module) -> Any:
    return model.layers if hasattr(model, "layers") else model.blocks


def _serve(connection: Connection, rank: int, workers: int, threads: int, store: str) -> None:
    torch.set_num_threads(threads)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=workers)
    mesh, made = init_device_mesh("cpu", (workers,)), dict[tuple[str, str], Callable[[], object]]()
    peaks: dict[tuple[str, str], int] = {}
    while (asked := connection.recv()) is not None:
        spec, way, steps = asked
        if (spec, way) not in made:
            made[spec, way], peaks[spec, way] = _trained(spec, way, mesh, rank, workers)
        seconds = []
        for _ in range(steps):
            dist.barrier()
            start = time.perf_counter()
            made[spec, way]()
            seconds.append(time.perf_counter() - start)
        connection.send((seconds, peaks[spec, way]))
    dist.destroy_process_group()


def _trained(spec: str, way: str, mesh: DeviceMesh, rank: int, workers: int) -> tuple[Callable[[], object], int]:
    """One training step, to be called, and its peak memory in bytes."""
    wrap, divided = WAYS[way]
    step = load(spec)
    live = step.materialize()
    batch: tuple[Tensor, Tensor] = live.batch
    if divided:
        batch = batch[0].tensor_split(workers)[rank].clone(), batch[1].tensor_split(workers)[rank].clone()
    model = wrap(live.model, mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)

    def train() -> None:
        step.loss(model, batch).backward()
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(2):
        train()
    tracker = MemTracker()
    tracker.track_external(model, optimizer)
    with tracker:
        train()
    peak = max(found["Total"] for found in tracker.get_tracker_snapshot("peak").values())
    return train, peak
