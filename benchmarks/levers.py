"""Levers: the predicted peak of every row beside the bytes that a run of it writes, and what eager PyTorch holds.

Run as `python benchmarks/levers.py`. The first meter paints the arena and looks for the highest byte that a step
writes. The second counts the bytes of storages that eager PyTorch has alive, kernel call by kernel call; it shares no
code with capture, and counts what eager's Python variables hold longer.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import planner
from planner.machine import PRESETS
from planner.memory import lifetimes, pack_step
from tests.levers.arena_meter import run_measured

H100 = PRESETS["h100"]


class Convolutions(nn.Module):
    """Residual blocks of convolutions and batch normalisations."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()) for _ in range(4)
        )
        self.last = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores (batch, 10) of images (batch, 3, height, width)."""
        x = self.first(x)
        for block in self.blocks:
            x = x + block(x)
        scores: torch.Tensor = self.last(x.mean((2, 3)))
        return scores


def convolutions() -> planner.TrainStep:
    """A step of them."""
    return planner.TrainStep(
        Convolutions, lambda: (torch.randn(16, 3, 16, 16), torch.randint(0, 10, (16,))), name="convolutions",
        loss=lambda model, batch: nn.functional.cross_entropy(model(batch[0]), batch[1]),
    )  # fmt: skip


class LiveBytes(TorchDispatchMode):
    """The bytes of all storages that kernels have made or used and that are still alive, and their peak."""

    def __init__(self, already: list[torch.Tensor]) -> None:
        super().__init__()
        self.alive: dict[int, tuple[StorageWeakRef, int]] = {}
        self.peak = 0
        for tensor in already:
            self.note(tensor)

    def note(self, tensor: torch.Tensor) -> None:
        """Follow a tensor's storage."""
        storage = tensor.untyped_storage()
        self.alive[storage._cdata] = StorageWeakRef(storage), storage.nbytes()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Make the call, then measure."""
        del types
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.note(leaf)
        self.alive = {key: one for key, one in self.alive.items() if not one[0].expired()}
        self.peak = max(self.peak, sum(size for _, size in self.alive.values()))
        return result


def eager_peak(step: planner.TrainStep) -> int:
    """The most bytes that eager PyTorch holds in a second step."""
    step = step.clone()
    step.eager()
    live = step.materialize()
    live.model.zero_grad(set_to_none=True)
    with LiveBytes([*step.state().values(), *step.batch_leaves()]) as meter:
        step.eager()
    return meter.peak


def main() -> None:
    """Print a table per model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "models", nargs="*",
        default=["gpt:layers=3,hidden=64,sequence=32,batch=4", "convolutions", "mlp:layers=4,hidden=64,batch=512",
                 "rnn:layers=2,hidden=32,steps=4"],
    )  # fmt: skip
    for text in parser.parse_args().models:
        step = convolutions() if text == "convolutions" else planner.zoo.load(text)
        levers = planner.levers(step, H100, device="cpu", progress=False)  # which runs them
        print(f"\n{text}")
        print(f"{'lever':50} {'predicted':>11} {'written':>11} {'same':>5} {'bits':>5} {'eager holds':>12} beyond")
        same = bits = 0
        for row in levers:
            graph = row.graph
            packing = pack_step(graph, alignment=H100.device.alignment)
            plan = planner.plan_swaps(graph, H100, "100%", time_limit=0, progress=False)
            stays = tuple(replace(stay, offset=int(packing.offsets[stay.storage])) for stay in plan.residencies)
            plan = replace(plan, residencies=stays, peak_bytes=packing.peak, budget_bytes=2**34)
            outputs, highest = run_measured(row.step, graph, plan)
            exact, equal = highest == row.peak_bytes, torch.equal(outputs[0], row.step.clone().eager())
            same, bits = same + exact, bits + equal
            eager, live = eager_peak(row.step), int(lifetimes(graph).live_bytes.max())
            print(
                f"{row.name:50} {row.peak_bytes:11,} {highest:11,} {exact!s:>5} {equal!s:>5} {eager:12,} "
                f"{100 * (eager / live - 1):+.2f} %"
            )
        print(f"{same} of {len(levers.rows)} to the byte, {bits} with eager's bits")


if __name__ == "__main__":
    main()
