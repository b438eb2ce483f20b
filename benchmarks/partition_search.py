"""What it takes to split models over eight workers: CPU seconds, gap, bytes moved and memory, each in its own process.

    python benchmarks/partition_search.py [MODEL,...] [--workers 8] [--json]

coarsen, recursion, exact   CPU seconds of each, the capture excluded, the first and the second time in a process; the
                            exact solve has a recursion of its own
total                       coarsen and exact together, the first and the second time
gap                         by how much the partition may be above the least cost, in percent
RSS                         how much the peak of the resident set is over the capture's, in MiB

A number of workers may be given as hosts x workers, as in 8x8: bytes between hosts then cost what the links of
h100x8 say.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from time import process_time
from typing import Any

import torch
from rich import box
from rich.console import Console
from rich.table import Table

from planner.capture import capture
from planner.machine import Machine, mesh_levels
from planner.partition import coarsen, optimize, recurse
from planner.profile import machine
from planner.step import AdamW, Step, TrainStep
from planner.zoo import load

MODELS = {
    "WResNet-152-10": "wresnet:depth=152,widen=10,image=224,width=full,batch=128",
    "RNN-10-8K": "rnn:layers=10,hidden=8192,steps=20,batch=512",
    "GPT-32": "gpt:layers=32",
    "Llama-32": "",
    **{name: name for name in ("mlp", "wresnet", "rnn", "brnn", "nasnet", "gpt", "inception")},
}


def llama() -> Step:
    """Llama with the sizes of its 7B."""
    import transformers

    tokens = torch.zeros(1, 256, dtype=torch.int64)
    return TrainStep(
        lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig()),
        {"input_ids": tokens, "labels": tokens.clone()},
        optimizer=AdamW(lr=1e-3),
    )


def measured(model: str, workers: str) -> dict[str, Any]:
    """One model, in this process."""
    hosts, _, local = workers.rpartition("x")
    mesh, weights = [], []
    if hosts:
        cluster: Machine = machine(f"h100x8:hosts={hosts}")
        levels = mesh_levels(cluster, int(hosts) * int(local))
        mesh = [level.workers for level in levels]
        fastest = max(level.link.bandwidth for level in levels)
        weights = [fastest / level.link.bandwidth for level in levels]
    graph = capture(load(MODELS[model]) if MODELS[model] else llama(), progress=False)
    before = peak()
    found: dict[str, Any] = {"model": model, "ops": len(graph.ops), "seconds": []}
    for _ in range(2):
        begun = process_time()
        coarse = coarsen(graph)
        coarsened = process_time()
        exact = optimize(coarse, mesh or int(local), weights=weights)
        done = process_time()
        first = recurse(coarse, mesh or int(local), weights=weights)
        found["seconds"].append((coarsened - begun, process_time() - done, done - coarsened))
    return found | {
        "gap": None if exact.gap is None else 100 * exact.gap,
        "bytes": exact.bytes_moved, "recursion_bytes": first.bytes_moved, "rss_mebibytes": peak() - before,
    }  # fmt: skip


def peak() -> float:
    """The most memory that was resident so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="?", default=",".join(MODELS), help="by comma (default: all)")
    parser.add_argument("--workers", default="8", help="how many, or hosts x workers of each (default: 8)")
    parser.add_argument("--json", action="store_true", help="print one object per model instead of a table")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if unknown := [name for name in chosen.models.split(",") if name not in MODELS]:
        parser.error(f"there is no model {unknown[0]!r}; choose from {', '.join(MODELS)}")
    if chosen.here:
        print(json.dumps(measured(chosen.models, chosen.workers)))
        return
    table = Table(title=f"{chosen.workers} workers, CPU seconds first / second time", box=box.SIMPLE_HEAD)
    table.add_column("model", no_wrap=True)
    for heading in ("ops", "coarsen", "recursion", "exact", "total", "gap %", "bytes", "recursion's", "RSS MiB"):
        table.add_column(heading, justify="right")
    for name in chosen.models.split(","):
        command = [sys.executable, __file__, name, "--workers", chosen.workers, "--here"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            sys.exit(f"{name} could not be measured")
        if chosen.json:
            print(done.stdout, end="")
            continue
        row = json.loads(done.stdout)
        first, second = ((*seconds, seconds[0] + seconds[2]) for seconds in row["seconds"])
        table.add_row(
            name, f"{row['ops']:,}", *(f"{one:.2f} / {two:.2f}" for one, two in zip(first, second, strict=True)),
            "-" if row["gap"] is None else f"{row['gap']:.2f}", f"{row['bytes']:,.0f}",
            f"{row['recursion_bytes']:,.0f}", f"{row['rss_mebibytes']:.0f}",
        )  # fmt: skip
    if not chosen.json:
        Console(width=150).print(table)


if __name__ == "__main__":
    main()
