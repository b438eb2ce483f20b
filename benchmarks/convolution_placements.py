"""Whether two workers convolve rightly however the image and the weight are split, forward and backward.

Usage: python benchmarks/convolution_placements.py [CASE ...] [--workers 2,3] [--processes]

Image and weight are both parameters, so that both gradients are made, and each is pinned to every one of its dimensions
and to a copy on every worker. Values are compared to 1e-10 in double precision, and the bytes in the workers' graphs
with those of the plan; `--processes` has processes make the step as well. The exit status is 1 where any are wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn
from worker_comparison import assert_computes_the_same

from planner.capture import capture
from planner.errors import StowageError
from planner.partition import PartitionPlan, search_partition
from planner.run import run_workers
from planner.step import SGD, Step, TrainStep

#: By name, the shape of the image, the number of filters and the settings; no size but that of groups is even.
CASES: dict[str, tuple[tuple[int, ...], int, dict[str, Any]]] = {
    "plain": ((5, 3, 13, 11), 5, {}),
    "stride": ((5, 3, 13, 11), 5, {"stride": 2}),
    "padding": ((5, 3, 13, 11), 5, {"padding": 3}),
    "dilation": ((5, 3, 13, 11), 5, {"dilation": 2}),
    "groups": ((5, 6, 13, 11), 10, {"groups": 2}),
    "all": ((5, 9, 13, 11), 9, {"stride": 2, "padding": 3, "dilation": 2, "groups": 3}),
}
PLACES = (0, 1, 2, 3, "replicated")


class _Convolution(nn.Module):
    def __init__(self, image: tuple[int, ...], filters: int, settings: dict[str, Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.image = nn.Parameter(torch.randn(image))
        self.convolution = nn.Conv2d(image[1], filters, 3, **settings)

    def forward(self) -> Tensor:
        return self.convolution(self.image)


def convolution_step(image: tuple[int, ...], filters: int, settings: dict[str, Any]) -> Step:
    """A step that convolves one parameter with another."""
    model = _Convolution(image, filters, settings)
    batch = {"y": torch.randn(model().shape)}
    return TrainStep(
        model, batch, loss=lambda model, batch: (model() * batch["y"]).sum(), optimizer=SGD(lr=0.1), name="convolution"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=list(CASES), help=f"of {', '.join(CASES)}; all by default")
    parser.add_argument("--workers", default="2", help="how many; several by commas")
    parser.add_argument("--processes", action="store_true", help="have processes make the step as well")
    args = parser.parse_args()
    torch.set_default_dtype(torch.float64)
    outcomes: Counter[str] = Counter()
    print(f"{'case':10} {'workers':>7}  right, by image x weight; * moves other bytes than planned")
    for name, workers in product(args.cases, map(int, args.workers.split(","))):
        step = convolution_step(*CASES[name])
        graph = capture(step, progress=False)
        found = []
        for image, weight in product(PLACES, PLACES):
            pins = {"image": image, "convolution.weight": weight}
            search = search_partition(graph, workers, pins=pins, evaluations=1, time_limit=None)
            try:
                plan = search.wait(progress=False)
            except StowageError:
                found.append("-")  # fewer indices than workers
                continue
            outcome = compared(step, plan, args.processes)
            outcomes[outcome] += 1
            found.append({"right": "+", "other bytes": "*", "wrong": "WRONG"}[outcome])
        rows = [" ".join(found[row : row + len(PLACES)]) for row in range(0, len(found), len(PLACES))]
        print(f"{name:10} {workers:7}  {' | '.join(rows)}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()))
    sys.exit(1 if outcomes["wrong"] else 0)


def compared(step: Step, plan: PartitionPlan, processes: bool) -> str:
    """Whether a plan's workers compute what one device does, and move what it says."""
    graph = capture(step, progress=False)
    try:
        counted = assert_computes_the_same(graph, plan)
    except AssertionError:
        return "wrong"
    if processes:
        result = run_workers(step, plan, steps=1, check=True, progress=False).wait()
        apart = result.difference
        if apart is None or not apart.is_rounding or result.bytes_counted != result.bytes_predicted:
            return "wrong"
    return "right" if counted == plan.bytes_moved else "other bytes"


if __name__ == "__main__":
    main()
