"""Whether what the executor gives to its streams orders every access, and what each of its waits is good for.

    python benchmarks/races.py [MODEL ...] [--budgets 95% 85% 75%]

Every plan is run on the lazy device of the tests in five orders, and then once without each of its waits. What is no
race then is run once more with ops that write all the memory that the plan counts for them: a race there says that the
wait keeps the budget ("claimed") though no kernel touches the bytes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter

from rich import box
from rich.console import Console
from rich.table import Table

from planner.capture import capture
from planner.errors import StowageError

sys.path.insert(0, str(Path(__file__).parent.parent))  # the lazy device is a part of the tests
from tests.run.lazy_device import SCHEDULES
from tests.run.steps import ALL
from tests.run.test_races import STEPS, device_for, plan_of, run_on, step_of, without


def measure(model: str, budget: str) -> list[str]:
    begin, graph = perf_counter(), capture(step_of(model)[0])
    try:
        plan = plan_of(model, budget)
    except StowageError as error:
        return [model, budget, str(error)]
    right = races = void = waits = 0
    for schedule in (*SCHEDULES, 1, 2):
        device = device_for(plan, schedule)
        right += run_on(device, model, plan)
        races, void, waits = races + len(device.races), void + device.void_waits, device.waits // STEPS
    raced = claimed = harmless = unseen = 0
    for wait in range(1, waits + 1):
        seen, wrong = without(wait, model, plan)
        if not seen and not wrong:
            claim, _ = without(wait, model, plan, stress=True)
            claimed += claim
            harmless += not claim
        raced += seen
        unseen += wrong and not seen
    return [
        model, budget, f"{len(graph.ops):,}", str(len(plan.swap_outs) + len(plan.swap_ins)), f"{right} of 5",
        str(races), str(void), str(waits), str(raced), str(claimed), str(harmless), str(unseen),
        f"{perf_counter() - begin:.0f} s",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="*", default=[*ALL], metavar="MODEL", help=", ".join(ALL))
    parser.add_argument("--budgets", nargs="+", default=["95%", "85%", "75%"])
    arguments = parser.parse_args()
    table = Table(box=box.SIMPLE)
    for heading in (
        "model", "budget", "ops", "copies", "right bits", "races", "void waits", "waits", "without it: race",
        "claimed", "no change", "wrong, not seen", "took",
    ):  # fmt: skip
        table.add_column(heading, justify="left" if heading in ("model", "budget") else "right")
    for model in arguments.models:
        for budget in arguments.budgets:
            table.add_row(*measure(model, budget))
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
