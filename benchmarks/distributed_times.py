"""Step time, bytes and memory of partitions on processes, beside PyTorch's own ways on the same model.

Usage: python benchmarks/distributed_times.py [MODEL ...] [--workers 2,4,8] [--rounds 3] [--steps 20]

Rounds alternate between all ways, so that what else the machine does falls on all alike. A step's time is that of the
slowest process, `ratio` is the median over that of the best of DDP, FSDP2 and DTensor, `peak` the most memory of one.
`moved` is what processes received (PyTorch's: what passed the machine's loopback, headers included). PyTorch's ways
communicate over gloo, the only one it has between CPUs; ours through shared memory unless it says gloo. `predicted` is
what `step_time` says of the partition on this machine, with the link that is measured here and nothing overlapped.
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from measured_link import measured_link
from torch_distributed import WAYS, TorchWorkers

from planner.capture import capture
from planner.machine import Machine
from planner.partition import BASELINES, PartitionPlan, coarsen, optimize, step_time
from planner.profile import machine as machine_by_name
from planner.run import run_workers
from planner.zoo import load

_MODELS = ("mlp:layers=4,hidden=512,batch=64", "gpt:layers=2,hidden=192,heads=4,sequence=64,vocabulary=400,batch=8")
_WARM_UP = 3


@dataclass
class Row:
    """What was measured of one way, over all rounds."""

    seconds: list[float] = field(default_factory=list)
    moved: int = 0
    peak: int = 0
    predicted: float | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=_MODELS, help="of the zoo: an MLP or a GPT")
    parser.add_argument("--workers", default="2,4,8", help="how many processes; several by commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20, help="in each round")
    args = parser.parse_args()
    link = measured_link()
    print(f"an exchange takes {1e6 * link.latency:.0f} us and then {link.bandwidth / 1e9:.1f} GB/s here")
    for model in args.models:
        for workers in map(int, args.workers.split(",")):
            here = machine_by_name("cpu")
            many = replace(here, devices=here.devices * workers, peer_link=link)
            print(f"\n{model}, {workers} processes of {_threads(workers)} threads")
            show(measure(model, workers, many, args.rounds, args.steps))


def measure(model: str, workers: int, machine: Machine, rounds: int, steps: int) -> dict[str, Row]:
    """Make steps in every way, round after round; returns what was found by the name of the way."""
    rows: dict[str, Row] = defaultdict(Row)
    partitions = _partitions(model, workers, machine, rows)
    others = TorchWorkers(workers, _threads(workers))
    try:
        for _ in range(rounds):
            for name in WAYS:
                row, before = rows[name], _loopback()
                seconds, row.peak = others.steps(model, name, steps)
                row.moved = (_loopback() - before) // steps
                row.seconds += seconds
            for name, partition in partitions.items():
                for transport in ("shared memory", "gloo") if name == "chosen" else ("shared memory",):
                    row = rows[name if transport == "shared memory" else f"{name}, gloo"]
                    result = run_workers(
                        load(model), partition, steps=_WARM_UP + steps, transport=transport, progress=False
                    ).wait()
                    row.seconds += result.step_seconds[_WARM_UP:]
                    row.moved, row.peak = result.bytes_counted, max(result.peak_bytes)
    finally:
        others.close()
    return rows


def show(rows: dict[str, Row]) -> None:
    """Print a table."""
    best = min(median(rows[name].seconds) for name in WAYS)
    print(f"{'':22} {'median ms':>9} {'least ms':>9} {'ratio':>6} {'moved MB':>9} {'peak MB':>8} {'predicted ms':>13}")
    for name, row in rows.items():
        predicted = "" if row.predicted is None else f"{1e3 * row.predicted:.2f}"
        print(
            f"{name:22} {1e3 * median(row.seconds):9.2f} {1e3 * min(row.seconds):9.2f} "
            f"{median(row.seconds) / best:6.2f} {row.moved / 1e6:9.2f} {row.peak / 1e6:8.2f} {predicted:>13}",
            flush=True,
        )


def _partitions(model: str, workers: int, machine: Machine, rows: dict[str, Row]) -> dict[str, PartitionPlan]:
    """The chosen partition and each baseline that there is, with the time predicted for it."""
    coarse = coarsen(capture(load(model), progress=False))
    makers: dict[str, Callable[..., object]] = {"chosen": optimize, **BASELINES}
    found = {}
    for name, make in makers.items():
        partitioning = make(coarse, workers)
        rows[name].predicted = step_time(partitioning, machine, bucket_bytes=None).seconds_without_overlap
        found[name] = PartitionPlan.of(partitioning)
    return found


def _threads(workers: int) -> int:
    return max(1, (os.cpu_count() or 1) // workers)


def _loopback() -> int:
    """Bytes that have passed the loopback so far."""
    line = next(line for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.split()[1])


if __name__ == "__main__":
    main()
