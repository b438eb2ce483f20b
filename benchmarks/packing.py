"""How many puzzles with a known least height the search of all placements solves.

    python benchmarks/packing.py [--instances 4] [--seconds 10] [--sizes 150 300 450]

Each puzzle is a square of 1024 x 1024, cut into pieces at random, of which the least height is the side. Only hard ones
count: greedy orders are 15 % too high, and a twentieth of a second of search does not solve them.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from planner.memory import pack

Ints = NDArray[np.int64]
SIDE = 1024
#: How far above the least height greedy orders are at least, and seconds of search that do not solve a hard puzzle.
GREEDY, EASY_SECONDS = 1.15, 0.05
#: Seeds after which a family has no more puzzles that are hard enough.
MOST_SEEDS = 60


class Family(NamedTuple):
    """How squares are cut.

    Args:
        name: what it is called in the table.
        time: the probability of a cut across time.
        pinwheels: the probability of cutting a rectangle into five around one.
        power: pieces are chosen to be cut by their area to this power.
        dropped: the share of the area that is left out.
        shaved: the most that a life is shortened by, as a share; the pieces of one time stay whole.
    """

    name: str
    time: float = 0.5
    pinwheels: float = 0.0
    power: float = 1.0
    dropped: float = 0.0
    shaved: float = 0.0


FAMILIES = (
    Family("guillotine cuts"),
    Family("guillotine cuts, by root", power=0.5),
    Family("pinwheels", time=0.65, pinwheels=0.3),
    Family("long and thin", time=0.2),
    Family("3 % dropped", dropped=0.03),
    Family("10 % shaved", shaved=0.1),
)


def cut_square(family: Family, pieces: int, seed: int) -> tuple[Ints, Ints, Ints]:
    """The lower and upper bounds and sizes of the pieces of a square, shuffled."""
    random = np.random.default_rng(seed)
    found = [(0, SIDE, 0, SIDE)]
    while len(found) < pieces:
        areas = np.array([(up - low) * (top - bottom) for low, up, bottom, top in found], np.float64) ** family.power
        place = int(random.choice(len(found), p=areas / areas.sum()))
        low, up, bottom, top = found[place]
        if random.random() < family.pinwheels and up - low >= 6 and top - bottom >= 6 and len(found) + 4 <= pieces:
            a, b = np.sort(random.choice(np.arange(low + 1, up), 2, replace=False)).tolist()
            c, d = np.sort(random.choice(np.arange(bottom + 1, top), 2, replace=False)).tolist()
            found[place : place + 1] = [
                (low, b, bottom, c), (b, up, bottom, d), (a, up, d, top), (low, a, c, top), (a, b, c, d)
            ]  # fmt: skip
        elif random.random() < family.time:
            if up - low >= 4:
                cut = int(random.integers(low + 2, up - 1))
                found[place : place + 1] = [(low, cut, bottom, top), (cut, up, bottom, top)]
        elif top - bottom >= 4:
            cut = int(random.integers(bottom + 2, top - 1))
            found[place : place + 1] = [(low, up, bottom, cut), (low, up, cut, top)]
    boxes = np.array(found)[random.permutation(len(found))]
    # the pieces of one time stay whole, so that the side is still the least height
    full = (boxes[:, 0] <= SIDE // 2) & (boxes[:, 1] > SIDE // 2)
    area = (boxes[:, 1] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 2])
    small = ~full & (area < family.dropped / 3 * SIDE**2)
    boxes = boxes[~(small & (np.cumsum(area * small) <= family.dropped * SIDE**2))]
    full = (boxes[:, 0] <= SIDE // 2) & (boxes[:, 1] > SIDE // 2)
    less = (random.random(len(boxes)) * family.shaved * (boxes[:, 1] - boxes[:, 0])).astype(np.int64) * ~full
    at_begin = random.random(len(boxes)) < 0.5
    return boxes[:, 0] + less * at_begin, boxes[:, 1] - less * ~at_begin, (boxes[:, 3] - boxes[:, 2]) * SIDE


def is_hard(puzzle: tuple[Ints, Ints, Ints]) -> bool:
    """Whether neither greedy orders nor a short search come close."""
    greedy = pack(*puzzle, rounds=0)
    return greedy.peak >= GREEDY * greedy.max_live and not pack(*puzzle, seconds=EASY_SECONDS).optimal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=4, help="hard puzzles of each family and size")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--sizes", type=int, nargs="+", default=[150, 300, 450])
    options = parser.parse_args()
    pack(*cut_square(FAMILIES[0], 60, 4), seconds=1)  # compile
    table = Table("square cut by", "pieces", "tried", "hard", "solved", "median s", "worst over", box=None)
    for pieces in options.sizes:
        for family in FAMILIES:
            results, seed = [], 0
            while len(results) < options.instances and seed < MOST_SEEDS:
                puzzle = cut_square(family, pieces, seed)
                seed += 1
                if is_hard(puzzle):
                    results.append(pack(*puzzle, seconds=options.seconds))
            solved = [result.seconds for result in results if result.optimal]
            worst = max((result.peak / result.max_live - 1 for result in results), default=0.0)
            table.add_row(
                family.name, str(pieces), str(seed), str(len(results)), str(len(solved)),
                f"{np.median(solved):.1f}" if solved else "-", f"{100 * worst:.1f} %",
            )  # fmt: skip
    Console().print(table)


if __name__ == "__main__":
    main()
