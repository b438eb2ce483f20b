"""A plan against what PyTorch itself offers for a step that takes too much memory: time, true peak, and the bits.

    python benchmarks/against_torch.py [gpt ...] [--budgets 75%,50%,30%] [--without compile]

eager            an ordinary training loop
checkpointed     `torch.utils.checkpoint` around each repeated block
offloaded        what `save_on_cpu` does: every activation that autograd saves goes to the host at once, and comes back
                 when it is used; over the same link as the plan's copies, where the CPU stands in for a GPU
compiled 0.5     `torch.compile` with `activation_memory_budget` 0.5
plan 50%         a plan within 50 % of what the step takes unswapped, by measured op times, in a budget that holds it

All of a model take steps in turns, so that whatever else the machine does meets all; each counts with the mean of its
faster half. PyTorch has all cores but one, as copies have engines of their own on a GPU. The peak of what PyTorch makes
is counted by its own profiler, allocation by allocation, kernels' temporary memory included, with parameters, optimizer
state, batch, and without what went to the host. A plan's is its arena. "same" compares the losses and the whole state
after three steps, bit by bit. The last column is a plan's time by that of the fastest other way that fits its budget.
FSDP2 with offloading is not among them: its copies have a stream of their own on GPUs alone.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.profiler import ProfilerActivity, profile

import planner
from planner.levers.checkpointed_blocks import checkpoint_blocks
from planner.machine import Link, Machine
from planner.profile import measure_ops
from planner.run.devices.link import PacedLink

sys.path.insert(0, str(Path(__file__).parent))
from apply import gpt2

MODELS: dict[str, Callable[[], planner.TrainStep]] = {
    "wresnet": lambda: planner.zoo.load("wresnet:depth=50,image=96,batch=16"),
    "gpt": lambda: planner.zoo.load("gpt:layers=6,hidden=512,heads=8,sequence=128,vocabulary=5000,dropout=0.1"),
    "rnn": lambda: planner.zoo.load("rnn:layers=2,hidden=512,steps=20,batch=64"),
    "gpt2": lambda: planner.TrainStep(wide_gpt2, text, optimizer=planner.AdamW(lr=1e-3), name="gpt2"),
}
COMPILED = (0.5, 0.2)
_SAME_STEPS = 3


def wide_gpt2() -> torch.nn.Module:
    """GPT-2 of `transformers`, of four layers."""
    return gpt2(hidden=256, positions=256)


def text() -> dict[str, Tensor]:
    """Tokens for it."""
    tokens = torch.randint(200, (8, 256))
    return {"input_ids": tokens, "labels": tokens.clone()}


class Offloaded:
    """Saved tensors that are on the host until they are used, but for parameters and the batch."""

    def __init__(self, link: Link, stay: list[Tensor]) -> None:
        self._link = PacedLink(link)
        self._stay = {tensor.untyped_storage().data_ptr() for tensor in stay}

    def around(self) -> AbstractContextManager[Any]:
        """Whatever is saved inside is offloaded."""
        return saved_tensors_hooks(self._pack, self._unpack)

    def _pack(self, tensor: Tensor) -> Any:
        if tensor.untyped_storage().data_ptr() in self._stay or not tensor.nbytes:
            return tensor
        whole = tensor.detach().contiguous()
        host = np.empty(whole.nbytes, np.uint8)  # not PyTorch's memory, so no device memory to its profiler
        self._link.copy(host, _octets(whole), 0)
        return host, tensor.shape, tensor.dtype

    def _unpack(self, packed: Any) -> Tensor:
        if isinstance(packed, Tensor):
            return packed
        host, shape, dtype = packed
        back = torch.empty(shape, dtype=dtype)
        self._link.copy(_octets(back), host, 1)
        return back


def _octets(tensor: Tensor) -> np.ndarray[Any, Any]:
    return tensor.reshape(-1).view(torch.uint8).numpy()


@dataclass
class Way:
    """One way to make steps.

    Args:
        name: of it.
        step: its own copy, whose model is changed.
        make: makes one step and returns its loss.
        peak_bytes: of the device; None if it is to be measured.
        budget_bytes: of a plan; None for the others.
    """

    name: str
    step: planner.TrainStep
    make: Callable[[], Any]
    peak_bytes: int | None = None
    budget_bytes: int | None = None


def peak_of(step: planner.TrainStep, make: Callable[[], object]) -> int:
    """The most bytes that PyTorch holds during a step, with what was there before."""
    there = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in step.state().values()}
    there |= {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in step.batch_leaves()}
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
        make()
    events = found.profiler.kineto_results.events()  # type: ignore[union-attr]
    sizes = [(e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]"]
    return sum(there.values()) + int(np.cumsum([size for _, size in sorted(sizes)]).max(initial=0))


def by_torch(step: planner.TrainStep, link: Link, without: set[str]) -> Iterator[Way]:
    """What PyTorch offers, each on a copy of the step."""

    def way(name: str, around: Callable[[planner.TrainStep], AbstractContextManager[Any]] | None = None) -> Way:
        own = step.clone()
        own.materialize()

        def make() -> Any:
            with around(own) if around else nullcontext():
                return own.eager()

        return Way(name, own, make)

    yield way("eager")
    if "checkpointed" not in without:
        checkpointed = way("checkpointed")
        try:
            checkpoint_blocks(checkpointed.step.materialize().model)
            yield checkpointed
        except planner.StowageError as error:
            print(f"checkpointed: {error}")
    if "offloaded" not in without:
        yield way("offloaded", lambda own: Offloaded(link, [*own.state().values(), *own.batch_leaves()]).around())
    for share in () if "compile" in without else COMPILED:
        compiled = way(f"compiled {share}", partial(memory_budget, share))
        compiled.step.materialize().model.compile()
        yield compiled


@contextmanager
def memory_budget(share: float, _: planner.TrainStep) -> Iterator[None]:
    """What is compiled inside saves this share of activations."""
    with torch._functorch.config.patch(activation_memory_budget=share):
        yield


def by_plan(
    step: planner.TrainStep, here: Machine, budget: str, seconds: float, link: Link, steps: int
) -> tuple[Way, Callable[[], planner.run.RunResult]]:
    """A plan within a budget, run step after step, and what ends the run."""
    own = step.clone()
    graph = planner.capture(own, progress=False)
    measured = measure_ops(graph, here, cache=False)
    needed = {op: int(size) for op, size in enumerate(measured.workspace_bytes) if size}
    planned = graph.with_workspaces(needed)
    plan = planner.plan_swaps(planned, here, budget, seconds=measured.seconds, time_limit=seconds, progress=False)
    run = planner.run(own, plan, steps=0, link_bandwidth=link, progress=False)
    losses = iter(run.steps([own.make_batch()] * steps))
    return Way(f"plan {budget}", own, lambda: next(losses), plan.peak_bytes, plan.budget_bytes), run.wait


def outcome(way: Way, seed: int) -> list[Tensor]:
    """Losses of some steps, and the state after them."""
    torch.manual_seed(seed)
    losses = [torch.as_tensor(float(way.make())) for _ in range(_SAME_STEPS)]
    return [*losses, *(way.step.state()[name].clone() for name in sorted(way.step.state()))]


def same(one: list[Tensor], other: list[Tensor]) -> bool:
    """Whether no bit differs."""
    pairs = zip(one, other, strict=True)
    return all(torch.equal(a.reshape(-1).view(torch.uint8), b.reshape(-1).view(torch.uint8)) for a, b in pairs)


def compare(name: str, arguments: argparse.Namespace, link: Link) -> Table:
    """All ways of one model, as a table."""
    step = MODELS[name]()
    here = replace(planner.machine("cpu"), host_link=link)
    whole = planner.memory.step_peak(planner.capture(step, progress=False))
    ways, ends = [], []
    total = _SAME_STEPS + 1 + arguments.rounds
    for budget in arguments.budgets.split(","):
        try:
            way, end = by_plan(step, here, budget, arguments.seconds, link, total)
        except planner.StowageError as error:
            print(f"{name}, plan {budget}: {error}")
            continue
        ways.append(way)
        ends.append(end)
    ways = [*by_torch(step, link, set(arguments.without)), *ways]
    bits, peaks = {}, {}
    for way in list(ways):
        try:
            bits[way.name] = outcome(way, 0)
            peaks[way.name] = peak_of(way.step, way.make) if way.peak_bytes is None else way.peak_bytes
            if way.peak_bytes is not None:
                way.make()
        except Exception as error:  # what does not run here is said, and the others go on
            print(f"{name}, {way.name} does not run here: {type(error).__name__}: {str(error).splitlines()[0]}")
            ways.remove(way)
    taken: dict[str, list[float]] = {way.name: [] for way in ways}
    for _ in range(arguments.rounds):
        for way in ways:
            start = time.perf_counter()
            way.make()
            taken[way.name].append(time.perf_counter() - start)
    for end in ends:
        end()
    seconds = {key: statistics.fmean(sorted(all_of)[: -(-len(all_of) // 2)]) for key, all_of in taken.items()}
    title = f"{name}: {whole / 2**20:.1f} MiB unswapped, link {arguments.link:g} GB/s"
    table = Table(title=title, title_justify="left")
    for column in ("", "step ms", "by eager", "peak MiB", "of unswapped", "same", "by the fastest other that fits"):
        table.add_column(column, justify="right" if column else "left")
    for way in ways:
        fits = [w for w in ways if w.budget_bytes is None and peaks[w.name] <= (way.budget_bytes or 0)]
        other = min(fits, key=lambda w: seconds[w.name], default=None)
        ratio = "" if way.budget_bytes is None else "none fits"
        if other is not None:
            ratio = f"{seconds[way.name] / seconds[other.name]:.2f} ({other.name})"
        table.add_row(
            way.name, f"{1e3 * seconds[way.name]:.1f}", f"{seconds[way.name] / seconds['eager']:.2f}",
            f"{peaks[way.name] / 2**20:.1f}", f"{100 * peaks[way.name] / whole:.0f} %",
            "yes" if same(bits[way.name], bits["eager"]) else "no", ratio,
        )  # fmt: skip
    return table


def main() -> None:
    """Print a table per model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(MODELS), help=f"of {', '.join(MODELS)} (default: all)")
    parser.add_argument("--budgets", default="100%,75%,50%,30%,15%", help="of the step's unswapped peak")
    parser.add_argument("--rounds", type=int, default=9, help="steps of each (default 9)")
    parser.add_argument("--seconds", type=float, default=10.0, help="to search for each plan (default 10)")
    parser.add_argument("--threads", type=int, default=max((os.cpu_count() or 2) - 1, 1), help="of PyTorch")
    parser.add_argument("--link", type=float, default=4.0, help="GB/s one way; both ways together half as much again")
    parser.add_argument("--without", nargs="*", default=[], help="of checkpointed, offloaded and compile")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    link = Link(arguments.link * 1e9, 1.5 * arguments.link * 1e9)
    for name in arguments.models:
        Console(width=130).print(compare(name, arguments, link))


if __name__ == "__main__":
    main()
