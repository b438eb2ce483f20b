"""How many random networks and graphs have partitions that the validator proves, and how long it takes.

Usage: python benchmarks/partition_plans.py [--networks 300] [--workers 2,3,4,5,6]
"""

from __future__ import annotations

import argparse
import time

from random_networks import random_step

from planner.capture import capture
from planner.errors import StowageError
from planner.partition import PartitionPlan, coarsen, recurse, validate_partition


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=300, help="how many random networks")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first")
    parser.add_argument("--workers", default="2,3,4,5,6", help="numbers of workers, separated by commas")
    args = parser.parse_args()
    valid = invalid = refused = 0
    seconds = 0.0
    for seed in range(args.first, args.first + args.networks):
        graph = capture(random_step(seed))
        coarse = coarsen(graph)
        for workers in map(int, args.workers.split(",")):
            try:
                plan = PartitionPlan.of(recurse(coarse, workers))
            except StowageError as error:
                refused += 1
                print(f"seed {seed}, {workers} workers: {error}")
                continue
            start = time.perf_counter()
            problems = validate_partition(plan, graph)
            seconds += time.perf_counter() - start
            valid, invalid = valid + (not problems), invalid + bool(problems)
            for problem in problems[:2]:
                print(f"seed {seed}, {workers} workers: {problem}")
    print(f"{valid:,} plans are valid and {invalid:,} are not; the search refused {refused:,}")
    print(f"a plan takes {1000 * seconds / max(valid + invalid, 1):.1f} ms to validate")


if __name__ == "__main__":
    main()
