"""The memory of a worker beside that of one device, for partitions that split parameters and activations.

Usage: python benchmarks/worker_memory.py [MODEL ...] [--workers 2,4,8] [--run]

`share` is the peak of the worker that takes the most, times the number of workers, over the peak of one device; `apart`
leaves out the communication buffers that are alive then: what collectives received, but sums that take the place of
their summands, and copies in another order made for it. `--run` has processes make a step, and compares the memory that
they use with their plans'. The exit status is 1 where `apart` is above 1.15 or memory is not that of a plan.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from planner.capture import capture
from planner.graph import Graph
from planner.machine import is_collective
from planner.memory import lifetimes, step_peak
from planner.partition import PartitionPlan, coarsen, optimize, worker_graph
from planner.run import run_workers
from planner.zoo import load

MODELS = (
    "mlp:layers=8,hidden=512,batch=512",
    "mlp:layers=8,hidden=512,batch=512,optimizer=adamw",
    "gpt:layers=4,hidden=192,heads=8,sequence=64,vocabulary=512,batch=8",
    "gpt:layers=4,hidden=192,heads=8,sequence=64,vocabulary=512,batch=8,optimizer=adamw",
    "rnn:layers=2,hidden=256,steps=8,batch=64",
    "wresnet:depth=50,image=64,batch=16,classes=16",
)
_GOAL = 1.15
_COPIES = ("aten.clone.default", "aten.cat.default", "aten.copy_.default")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS, help="zoo models with their arguments")
    parser.add_argument("--workers", default="2,4,8", help="how many; several by commas")
    parser.add_argument("--run", action="store_true", help="have processes make a step, and measure")
    args = parser.parse_args()
    faults = 0
    print(f"{'step':82} {'workers':>7} {'one MB':>8} {'most MB':>8} {'share':>6} {'apart':>6} {'as planned':>10}")
    for model in args.models:
        step = load(model)
        graph = capture(step, progress=False)
        coarse, whole = coarsen(graph), step_peak(graph)
        for workers in map(int, args.workers.split(",")):
            plan = PartitionPlan.of(optimize(coarse, workers))
            peaks = [peak_of(worker_graph(plan, graph, worker, progress=False)) for worker in range(workers)]
            most, communicated = max(peaks)
            apart = (most - communicated) * workers / whole
            measured = ""
            if args.run:
                result = run_workers(step, plan, steps=1, progress=False).wait()
                measured = "yes" if result.peak_bytes == result.planned_peak_bytes else "NO"
            faults += apart > _GOAL or measured == "NO"
            print(
                f"{model:82} {workers:7} {whole / 1e6:8.2f} {most / 1e6:8.2f} {most * workers / whole:6.2f} "
                f"{apart:6.2f} {measured:>10}", flush=True,
            )  # fmt: skip
    sys.exit(1 if faults else 0)


def peak_of(graph: Graph) -> tuple[int, int]:
    """A worker's peak, and the communication buffers in it."""
    life = lifetimes(graph)
    slot = int(np.argmax(life.live_bytes))
    buffers: set[int] = set()
    for op in graph.ops:
        reads, writes = ({graph.tensors[tensor].storage for tensor in tensors} for tensors in (op.inputs, op.outputs))
        if is_collective(op) or (op.target in _COPIES and reads & buffers):
            buffers |= writes
    sent = {graph.tensors[op.inputs[0]].storage for op in graph.ops if is_collective(op)}
    copied = {graph.tensors[op.outputs[0]].storage for op in graph.ops if op.target in _COPIES}
    buffers |= sent & copied
    alive = (each for each in buffers if life.birth[each] <= slot < life.end[each] and life.reused_buffer[each] < 0)
    return step_peak(graph), sum(graph.storages[each].bytes for each in alive)


if __name__ == "__main__":
    main()
