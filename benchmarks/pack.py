"""How low offset packing gets, and how fast: steps of the zoo, random boxes, your own files.

    python benchmarks/pack.py [FILE.csv ...]

`over bound` compares the height with the most bytes that are alive at once, which no packing can go below; `least`
says where that is met. Puzzles without slack, which are harder than any step, are in `benchmarks/packing.py`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from planner.capture import capture
from planner.graph import arrays
from planner.memory import Packing, pack, pack_step, read_buffers
from planner.units import format_bytes
from planner.zoo import load

STEPS = (
    "wresnet:depth=152,widen=4,batch=16,image=224,optimizer=momentum",
    "inception:version=3,widen=4,batch=16",
    "gpt:layers=12,hidden=768,heads=12,sequence=256,batch=4,optimizer=adam",
    "rnn:layers=8,hidden=1024,steps=20,batch=64,optimizer=adam",
    "nasnet:cells=8,batch=16",
)


def random_boxes(count: int, seed: int = 0) -> Packing:
    """Sizes over six orders of magnitude, most of them short-lived, a tenth alive all the time."""
    random = np.random.default_rng(seed)
    times = count // 3
    lower = random.integers(0, times, count)
    upper = np.minimum(lower + (random.pareto(0.7, count) * 3 + 1).clip(max=times).astype(int), times)
    lower[: count // 10], upper[: count // 10] = 0, times
    return pack(lower, upper, (2 ** random.uniform(6, 24, count)).astype(int), alignment=512)


def instances(files: list[str]) -> Iterator[tuple[str, Packing]]:
    for name in files:
        buffers = read_buffers(name)
        yield name, pack(buffers.lower, buffers.upper, buffers.sizes)
    if files:
        return
    for model in STEPS:
        yield model, pack_step(arrays(capture(load(model))), alignment=512)
    for count in (1_000, 20_000, 60_000):
        yield f"{count} random boxes", random_boxes(count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE.csv", help="MiniMalloc files: id,lower,upper,size")
    files = parser.parse_args().files
    pack([0, 0], [1, 2], [8, 8], rounds=1)  # compile
    table = Table(box=box.SIMPLE)
    table.add_column("buffers of", overflow="fold", min_width=24)
    for title in ("buffers", "alive at once", "height", "over bound", "least", "seconds"):
        table.add_column(title, justify="right")
    for name, packing in instances(files):
        table.add_row(
            name, str(len(packing.offsets)), format_bytes(packing.max_live), format_bytes(packing.peak),
            f"{100 * (packing.peak / max(packing.max_live, 1) - 1):.3f} %", "yes" if packing.optimal else "no",
            f"{packing.seconds:.2f}",
        )  # fmt: skip
    Console().print(table)


if __name__ == "__main__":
    main()
