"""Whether workers' graphs, run together in one process, compute what one device does with random legal partitions.

Usage: python benchmarks/random_partitions.py [STEP ...] [--workers 2,3,4,8] [--random 20]

The values of a step are compared to 1e-10 in double precision, for what the search chooses and for random partitions
(to 1e-5 where the step itself goes through single precision); `moved` is the least and the most of what workers receive
over what the partition says.
`distributed.py` does the same on processes, which takes longer. The exit status is 1 where any are wrong or refused.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

import torch
from distributed_steps import STEPS
from worker_comparison import assert_computes_the_same

from planner.capture import capture
from planner.errors import StowageError
from planner.partition import CoarseGraph, PartitionPlan, coarsen, optimize, recurse
from planner.zoo import load

#: How many of a group's ways of being split a random partition may choose from.
_ALLOWED = 0.5


def partition_of(coarse: CoarseGraph, workers: int, seed: int) -> PartitionPlan:
    """A random legal partition: the cheapest of those that a draw of the ways to split each group allows.

    Args:
        coarse: the step.
        workers: how many.
        seed: of the draw; 0 for what the search chooses from all.
    """
    if not seed:
        return PartitionPlan.of(optimize(coarse, workers))
    draw = random.Random(seed)
    chosen = [{label for label in range(64) if draw.random() < _ALLOWED} for _ in coarse.groups]
    return PartitionPlan.of(recurse(coarse, workers, allowed=lambda group, label: label in chosen[group]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", help="zoo models with their arguments, or names; all by default")
    parser.add_argument("--workers", default="2,3,4,8", help="how many; several by commas")
    parser.add_argument("--random", type=int, default=20, help="random partitions beside the chosen one")
    args = parser.parse_args()
    torch.set_default_dtype(torch.float64)
    bad = 0
    print(f"{'step':46} {'workers':>7} {'right':>5} {'wrong':>5} {'refused':>7} {'distinct':>8} {'moved':>10} {'s':>5}")
    for name in args.steps or STEPS:
        step = STEPS[name]() if name in STEPS else load(name)
        graph = capture(step, progress=False)
        coarse = coarsen(graph)
        for workers in map(int, args.workers.split(",")):
            begun, wrong, refused, moved, plans = time.perf_counter(), 0, 0, list[float](), list[PartitionPlan]()
            for seed in range(args.random + 1):
                plan = partition_of(coarse, workers, seed)
                if plan.ops not in [other.ops for other in plans]:
                    plans.append(plan)
                try:
                    moved.append(assert_computes_the_same(graph, plan) / plan.bytes_moved)
                except AssertionError as error:
                    wrong += 1
                    print(f"    {seed or 'chosen'} is WRONG: {str(error).splitlines()[0]}")
                except StowageError as error:
                    refused += 1
                    print(f"    {seed or 'chosen'} is refused: {error}")
            bad += wrong + refused
            share = f"{min(moved, default=0):4.2f}-{max(moved, default=0):4.2f}"
            print(
                f"{name[:46]:46} {workers:7} {len(moved):5} {wrong:5} {refused:7} {len(plans):8} {share:>10} "
                f"{time.perf_counter() - begun:5.0f}", flush=True,
            )  # fmt: skip
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
