"""Proves every description and every strategy derived from it against the real kernels, and prints what was checked.

python benchmarks/verify_tdl.py [OPERATOR ...]
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field

import torch
from tdl_cases import calls

from planner.partition import described, prove

WORKERS = (2, 3, 4)
CHECKS = ("formula", "states", "shards", "region", "faces", "linear", "cut")


@dataclass
class Row:
    """What was checked of one operator."""

    calls: int = 0
    strategies: int = 0
    seconds: float = 0.0
    checks: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def main(wanted: list[str]) -> int:
    warnings.filterwarnings("ignore", category=UserWarning)
    torch.set_num_threads(1)
    rows: dict[str, Row] = {}
    for call in calls():
        if wanted and not any(name in call.target for name in wanted):
            continue
        row = rows.setdefault(call.target, Row())
        started = time.perf_counter()
        proof = prove(call, WORKERS)
        row.seconds += time.perf_counter() - started
        row.calls += 1
        row.strategies += proof.strategies
        row.checks.update(proof.checks)
        row.faults += map(str, proof.faults)
    print(f"{'operator':<58}{'calls':>6}{'strategies':>11}" + "".join(f"{check:>9}" for check in CHECKS) + "  faults")
    for target, row in sorted(rows.items()):
        counts = "".join(f"{row.checks[check]:>9,}" for check in CHECKS)
        print(f"{target:<58}{row.calls:>6}{row.strategies:>11}{counts}{len(row.faults):>8}")
        for fault in row.faults[:3]:
            print(f"    {fault}")
    checks = sum((row.checks for row in rows.values()), Counter[str]())
    faults = sum(len(row.faults) for row in rows.values())
    missing = sorted(described() - rows.keys())
    print(
        f"{len(rows)} operators, {sum(row.calls for row in rows.values())} calls, "
        f"{sum(row.strategies for row in rows.values())} strategies over {WORKERS} workers, {checks.total():,} checks, "
        f"{faults} faults, {sum(row.seconds for row in rows.values()):.0f} s"
    )
    if not wanted:
        print(f"described without a call: {', '.join(missing) or 'none'}")
    return bool(faults or (missing and not wanted))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
