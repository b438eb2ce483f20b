"""Whether workers' graphs, run together, compute what one device does, what they move, and the memory they take.

Usage: python benchmarks/worker_graphs.py [MODEL ...] [--mesh 2,3,2x2] [--every] [--networks 50]

The values are compared to 1e-10 in double precision. `moved` is what the collectives in the graphs move, `plan` what
the partition says, `memory` the peak of the first worker times the number of workers, over the peak of one device.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence

import torch
from random_networks import random_step
from worker_comparison import assert_computes_the_same

from planner.capture import capture
from planner.errors import StowageError
from planner.graph import Graph
from planner.memory import step_peak
from planner.partition import CoarseGraph, PartitionPlan, coarsen, optimize, recurse, worker_graph
from planner.zoo import load

MODELS = (
    "mlp:layers=2,hidden=48,batch=16",
    "gpt:layers=2,hidden=48,heads=4,sequence=16,vocabulary=64,batch=8",
    "rnn:layers=2,hidden=24,steps=4,batch=12",
    "brnn:layers=1,hidden=24,steps=3,batch=12",
    "wresnet:depth=50,image=32,batch=8,classes=8",
    "inception:version=3,widen=1,image=75,classes=8,batch=4",
    "nasnet:cells=2,filters=24,image=40,classes=8,batch=4",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS, help="zoo models with their arguments")
    parser.add_argument("--mesh", default="2,3,2x2", help="how many parts each level cuts into; several by commas")
    parser.add_argument("--every", action="store_true", help="force every op into every way of dividing it")
    parser.add_argument("--networks", type=int, default=0, help="random networks in place of models")
    args = parser.parse_args()
    meshes = [tuple(map(int, mesh.split("x"))) for mesh in args.mesh.split(",")]
    torch.set_default_dtype(torch.float64)
    outcomes: Counter[str] = Counter()
    if not args.every:
        print(f"{'step':58} {'mesh':6} {'ops':>6} {'s':>5} {'moved':>13} {'plan':>13} {'memory':>6}")
    steps = [(f"seed {n}", random_step(n)) for n in range(args.networks)] or [(m, load(m)) for m in args.models]
    for name, step in steps:
        graph = capture(step, progress=False)
        coarse = coarsen(graph)
        for mesh in meshes:
            (every if args.every else chosen)(name, graph, coarse, mesh, outcomes)
    print(", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.most_common()))


def chosen(name: str, graph: Graph, coarse: CoarseGraph, mesh: Sequence[int], outcomes: Counter[str]) -> None:
    """Compare the partition that the search chooses."""
    plan = PartitionPlan.of(optimize(coarse, mesh))
    begun = time.perf_counter()
    try:
        worker = worker_graph(plan, graph, 0)
        seconds = time.perf_counter() - begun
        moved = compared(graph, plan, outcomes)
    except StowageError as error:
        outcomes["refused"] += 1
        print(f"{name[:58]:58} {'x'.join(map(str, mesh)):6} refused: {error}")
        return
    memory = step_peak(worker) * plan.workers / step_peak(graph)
    print(
        f"{name[:58]:58} {'x'.join(map(str, mesh)):6} {len(worker.ops):6,} {seconds:5.1f} {moved:13,.0f} "
        f"{plan.bytes_moved:13,.0f} {memory:6.2f}", flush=True,
    )  # fmt: skip


def every(name: str, graph: Graph, coarse: CoarseGraph, mesh: Sequence[int], outcomes: Counter[str]) -> None:
    """Compare what the recursion finds when one op at a time is forced into each of its ways."""
    for merged in coarse.merged:
        for variant in merged.variants:
            where = f"{name} {'x'.join(map(str, mesh))}: {graph.ops[merged.ops[0]].name} by {variant.name}"
            try:
                found = recurse(
                    coarse, mesh, allowed_variant=lambda m, v, m0=merged, v0=variant: m is not m0 or v is v0
                )
                compared(graph, PartitionPlan.of(found), outcomes, where)
            except StowageError as error:
                outcomes["refused"] += 1
                print(f"{where}: {error}")


def compared(graph: Graph, plan: PartitionPlan, outcomes: Counter[str], where: str = "") -> float:
    """Compare a partition with one device; returns the bytes that its collectives move."""
    try:
        moved = float(assert_computes_the_same(graph, plan))
    except AssertionError as error:
        outcomes["WRONG"] += 1
        print(f"{where} WRONG: {str(error).splitlines()[0]}", flush=True)
        return float("nan")
    outcomes["the same"] += 1
    return moved


if __name__ == "__main__":
    main()
