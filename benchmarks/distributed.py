"""Steps on processes against one: what the search chooses and random partitions, as far from eager as rounding goes.

Usage: python benchmarks/distributed.py [STEP ...] [--workers 2,3,4,8] [--random 3] [--float32]

Every row is one step; `error` is the largest relative difference from eager PyTorch, `noise` that of eager PyTorch from
itself with its state moved by one unit in the last place of the least precise dtype that it computes in. The exit
status is 1 where an error is above 30 times the noise, where other bytes come than predicted, or where a worker uses
other memory than its plan.
"""

from __future__ import annotations

import argparse
import sys
import time
from statistics import median

import torch
from distributed_steps import STEPS
from random_partitions import partition_of

from planner.capture import capture
from planner.errors import StowageError
from planner.partition import coarsen
from planner.run import run_workers
from planner.step import Step
from planner.zoo import load


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", help="zoo models with their arguments, or names; all by default")
    parser.add_argument("--workers", default="2,3,4,8", help="how many processes; several by commas")
    parser.add_argument("--random", type=int, default=3, help="random partitions beside the chosen one")
    parser.add_argument("--float32", action="store_true", help="single instead of double precision")
    args = parser.parse_args()
    torch.set_default_dtype(torch.float32 if args.float32 else torch.float64)
    print(f"{'step':50} {'workers':>7} {'partition':>9} {'error':>8} {'noise':>8} {'ratio':>6} {'moved':>11} {'ms':>7}")
    faults = refused = rows = 0
    for name in args.steps or STEPS:
        for workers in map(int, args.workers.split(",")):
            for seed in range(args.random + 1):
                step = STEPS[name]() if name in STEPS else load(name)
                try:
                    fault = row(step, name, workers, seed)
                except StowageError as error:
                    refused += 1
                    print(f"{name[:50]:50} {workers:7} {seed or 'chosen':>9} refused: {error}", flush=True)
                    continue
                rows += 1
                faults += fault
    print(f"{rows} steps, {faults} wrong, {refused} refused")
    sys.exit(1 if faults else 0)


def row(step: Step, name: str, workers: int, seed: int) -> bool:
    """Run one partition and print what came of it; returns whether it is wrong."""
    coarse = coarsen(capture(step, progress=False))
    partition = partition_of(coarse, workers, seed)
    begun = time.perf_counter()
    result = run_workers(step, partition, steps=1, check=True, progress=False).wait()
    assert result.difference is not None
    apart = result.difference
    wrong = (
        not apart.is_rounding
        or result.bytes_counted != result.bytes_predicted
        or result.peak_bytes != result.planned_peak_bytes
    )
    ratio = apart.relative / apart.noise if apart.noise else 0.0
    print(
        f"{name[:50]:50} {workers:7} {seed or 'chosen':>9} {apart.relative:8.1e} {apart.noise:8.1e} {ratio:6.2f} "
        f"{result.bytes_counted:11,} {1000 * median(result.step_seconds):7.1f}"
        f"{' WRONG in ' + apart.tensor if wrong else ''}   ({time.perf_counter() - begun:.1f} s)", flush=True,
    )  # fmt: skip
    return wrong


if __name__ == "__main__":
    main()
