"""How long it takes to search again once a tensor is pinned, as a click in the Partition tab does.

Usage: python benchmarks/partition_pins.py [MODEL ...] [--workers 2,4,8]

The largest, the middle and the smallest matrix are pinned to each of their first two dimensions and to a copy; `s` is
until the first partition that has the pin, `cpu s` what it computes for that.
"""

from __future__ import annotations

import argparse
import time
from math import prod
from statistics import median

from planner.capture import capture
from planner.errors import StowageError
from planner.partition import PartitionSearch, search_partition
from planner.zoo import load

MODELS = ("mlp", "gpt", "rnn", "brnn", "wresnet", "inception", "nasnet")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS, help="zoo models with their arguments")
    parser.add_argument("--workers", default="2,4,8", help="how many; several by commas")
    args = parser.parse_args()
    print(f"{'step':40} {'ops':>6} {'workers':>7} {'pins':>4} {'median s':>8} {'most s':>7} {'most cpu s':>10}")
    for model in args.models:
        graph = capture(load(model), progress=False)
        matrices = [tensor for tensor in graph.tensors if tensor.base < 0 and len(tensor.shape) > 1]
        matrices.sort(key=lambda tensor: prod(tensor.shape))
        names = [matrices[place].name for place in (-1, len(matrices) // 2, 0)]
        for workers in map(int, args.workers.split(",")):
            search = search_partition(graph, workers, time_limit=None, evaluations=1)
            search.wait(progress=False)
            taken = [found for name in names for value in (0, 1, "replicated") if (found := again(search, name, value))]
            spent, computed = zip(*taken, strict=True)
            print(
                f"{model[:40]:40} {len(graph.ops):6,} {workers:7} {len(taken):4} {median(spent):8.2f} "
                f"{max(spent):7.2f} {max(computed):10.2f}", flush=True,
            )  # fmt: skip


def again(search: PartitionSearch, name: str, value: int | str) -> tuple[float, float] | None:
    """The seconds, and those of computing, until a partition with a pin is there; None if the pin cannot be met."""
    begun, computed = time.perf_counter(), time.process_time()
    try:
        search.with_pins({name: value}, time_limit=None, evaluations=1).wait(progress=False)
    except StowageError:
        return None
    return time.perf_counter() - begun, time.process_time() - computed


if __name__ == "__main__":
    main()
