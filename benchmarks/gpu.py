"""Plans on the attached GPU against eager PyTorch there: step time, memory, the bits.

    python benchmarks/gpu.py [wresnet ...] [--budgets 100%,75%,50%,30%] [--steps 8] [--small] [--out gpu.json]

eager       an ordinary training loop on the GPU, if it fits
plan 50%    a plan within 50 % of what the step takes unswapped, by op times measured on the GPU

`bound` is the least time that any plan within the budget takes, as predicted. `of bound` is that by the measured time.
`used` is how much less of the whole GPU's memory is free during the run than before it, libraries and others included.
`same` compares the first two steps with eager PyTorch on the same GPU, bit by bit, where that fits. `--small` has
models of a few MiB, for a try. `together` says how many calls are launched in how many CUDA graphs.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

import planner
from planner.run import brought_to
from planner.swap import lower_bound
from planner.units import format_bytes

MODELS: dict[str, tuple[str, str]] = {  # in full, and small
    "wresnet": ("wresnet:depth=152,widen=4,image=224,batch=32", "wresnet:depth=50,image=32,batch=2"),
    "gpt": ("gpt:layers=24,hidden=2048,heads=16,sequence=1024,vocabulary=50304,batch=4,optimizer=adamw",
            "gpt:layers=2,hidden=64,heads=4,sequence=32,vocabulary=100,batch=4,optimizer=adamw"),
    "rnn": ("rnn:layers=4,hidden=2048,steps=40,batch=512", "rnn:layers=2,hidden=32,steps=6,classes=10,batch=8"),
    "mlp": ("mlp:layers=12,hidden=8192,batch=8192,optimizer=adam", "mlp:layers=4,hidden=64,batch=32"),
}  # fmt: skip
_SECONDS_BETWEEN_LOOKS = 0.01


class MemoryWatch:
    """The most memory of the GPU that is not free, looked at a hundred times a second."""

    def __init__(self) -> None:
        self._before = self.most = self._used()
        self._over = threading.Event()

    @property
    def more(self) -> int:
        """Bytes more than before."""
        return self.most - self._before

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look during the block."""
        thread = threading.Thread(target=self._look, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _look(self) -> None:
        while not self._over.wait(_SECONDS_BETWEEN_LOOKS):
            self.most = max(self.most, self._used())

    @staticmethod
    def _used() -> int:
        free, total = torch.cuda.mem_get_info()
        return int(total - free)


def eager(step: planner.TrainStep, steps: int) -> dict[str, Any]:
    """Ordinary steps on the GPU."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    seconds = []
    watch = MemoryWatch()
    try:
        with watch.watching(), brought_to("cuda", step, step.materialize().batch) as batch:
            for _ in range(steps):
                torch.cuda.synchronize()
                begin = time.perf_counter()
                step.eager(batch)
                torch.cuda.synchronize()
                seconds.append(time.perf_counter() - begin)
    except torch.OutOfMemoryError:
        return {"way": "eager", "refused": "it does not fit"}
    return {"way": "eager", "seconds": _typical(seconds), "peak_bytes": torch.cuda.max_memory_allocated(),
            "used_bytes": watch.more}  # fmt: skip


def planned(make: Callable[[], planner.TrainStep], budget: str, steps: int) -> dict[str, Any]:
    """Steps by a plan."""
    torch.cuda.empty_cache()
    way, watch = f"plan {budget}", MemoryWatch()
    step = make()
    try:
        with watch.watching():
            result = planner.run(step, device="cuda", budget=budget, steps=steps, progress=False).wait()
    except planner.StowageError as error:
        return {"way": way, "refused": str(error)}
    graph = planner.capture(step, device="cuda", progress=False)
    machine = planner.machine("auto", progress=False)
    ready = planner.profile.prepare(graph, machine, progress=False)
    bound = lower_bound(ready.graph, machine, result.budget_bytes, ready.seconds)
    seconds = _typical(result.step_seconds)
    return {
        "way": way, "seconds": seconds, "predicted_seconds": result.predicted_step_seconds, "bound_seconds": bound,
        "peak_bytes": result.peak_bytes, "planned_bytes": result.predicted_peak_bytes, "used_bytes": watch.more,
        "host_bytes": result.host_bytes, "copies_out": len(result.plan.swap_outs),
        "again": len(result.plan.order) - len({*result.plan.order}), "compared": result.compared,
        "mismatches": len(result.mismatches), "checked": result.checked, "launched_together": result.launched_together,
        "library_bytes": result.library_bytes,
        "gpu_memory": None if result.gpu_memory is None else asdict(result.gpu_memory),
    }  # fmt: skip


def _typical(seconds: Sequence[float]) -> float:
    """The median of all but the first steps, which warm libraries up and are compared."""
    return statistics.median(seconds[2:] or seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", choices=[[], *MODELS], help="all by default")
    parser.add_argument("--budgets", default="100%,75%,50%,30%")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--out", type=Path, help="write the figures to this file, as JSON")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("there is no CUDA GPU to measure")
    columns = ("model", "way", "ms", "by eager", "of bound", "predicted", "arena", "used", "host", "same", "together")
    table = Table(*columns, box=None)
    rows: list[dict[str, Any]] = []
    for name in arguments.models or MODELS:
        text = MODELS[name][arguments.small]

        def make(text: str = text) -> Any:
            return planner.zoo.load(text)

        ways = [eager(make(), arguments.steps)]
        ways += [planned(make, budget, arguments.steps) for budget in arguments.budgets.split(",")]
        for way in ways:
            rows.append({"model": text, **way})
            table.add_row(name, *_cells(way, ways[0].get("seconds")))
            print(json.dumps(rows[-1]), flush=True)
    Console(width=140).print(table)
    if arguments.out is not None:
        facts = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda,
                 "python": platform.python_version(), "rows": rows}  # fmt: skip
        arguments.out.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def _cells(way: dict[str, Any], eager_seconds: float | None) -> list[str]:
    if "refused" in way:
        return [way["way"], way["refused"], *[""] * 8]
    seconds = way["seconds"]
    if "bound_seconds" not in way:
        return [way["way"], f"{1000 * seconds:.1f}", "1.00", "", "", format_bytes(way["peak_bytes"]),
                format_bytes(way["used_bytes"]), "", "", ""]  # fmt: skip
    return [
        way["way"], f"{1000 * seconds:.1f}", f"{seconds / eager_seconds:.2f}" if eager_seconds else "-",
        f"{100 * way['bound_seconds'] / seconds:.0f} %", f"{1000 * way['predicted_seconds']:.1f}",
        format_bytes(way["peak_bytes"]), format_bytes(way["used_bytes"]), format_bytes(way["host_bytes"]),
        f"{way['compared'] - way['mismatches']} of {way['compared']}", way["launched_together"],
    ]  # fmt: skip


if __name__ == "__main__":
    main()
