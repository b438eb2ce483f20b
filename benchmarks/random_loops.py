"""Random training loops, each made by eager PyTorch and by `planner.run`: equal, refused, different or crashed.

A loop is a random model with numbers and tensors in random places, carried states, hooks, a loss with a closure, an
optimizer, and a random script of what the user changes between its five steps. Only equal and refused will do.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

os.environ.setdefault("OMP_NUM_THREADS", "1")

from beside_eager import EagerError, Outcome, outcome
from random_program import features, program

KINDS = ("equal", "refused", "different", "crashed")
_WORDS = 9


def made(seed: int) -> Outcome | None:
    """What comes of the loop of a seed; None if eager PyTorch itself cannot make it."""
    try:
        return outcome(functools.partial(program, seed), seed)
    except EagerError:
        return None


def first_words(said: str) -> str:
    """A refusal without what it names, so that refusals of one kind fall together."""
    return " ".join(
        "..." if any(mark in word for mark in "._/0123456789'\"") else word for word in said.split()[:_WORDS]
    )


def show(found: dict[int, Outcome]) -> None:
    console = Console(width=150)
    counts = Counter(each.kind for each in found.values())
    table = Table(title=f"{len(found)} random loops of 5 steps beside eager PyTorch")
    for column in (*KINDS, "seconds a loop"):
        table.add_column(column, justify="right")
    seconds = sum(each.seconds for each in found.values()) / max(len(found), 1)
    table.add_row(*(str(counts[kind]) for kind in KINDS), f"{seconds:.2f}")
    console.print(table)
    reasons = Counter(first_words(each.detail) for each in found.values() if each.kind == "refused")
    if reasons:
        table = Table("loops", "refused with", title="refusals")
        for words, count in reasons.most_common():
            table.add_row(str(count), words)
        console.print(table)
    for seed, each in found.items():
        if each.kind in ("different", "crashed"):
            console.print(
                f"--only {seed}: {each.kind}: {each.detail}\n    {features(seed)}", markup=False, highlight=False
            )


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loops", type=int, default=1000, help="how many (default 1000)")
    parser.add_argument("--seed", type=int, default=0, help="of the first; the others follow (default 0)")
    parser.add_argument("--only", type=int, metavar="SEED", help="one loop, and what it does")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args(given)
    only = arguments.only is not None
    if only:
        print(features(arguments.only))
    found: dict[int, Outcome] = {}
    for seed in [arguments.only] if only else itertools.count(arguments.seed):
        if (one := made(seed)) is not None:
            found[seed] = one
        if len(found) >= arguments.loops:
            break
        if sys.stderr.isatty():
            print(f"\r{len(found)} of {arguments.loops}", end="", file=sys.stderr)
    if arguments.json:
        print(json.dumps({seed: {"kind": each.kind, "detail": each.detail} for seed, each in found.items()}))
    elif only:
        print(*[f"{one.kind}: {one.detail}" for one in found.values()] or ["eager PyTorch cannot make it either"])
    else:
        show(found)
    sys.exit(any(each.kind in ("different", "crashed") for each in found.values()))


if __name__ == "__main__":
    main()
