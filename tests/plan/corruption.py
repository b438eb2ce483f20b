"""Every way to change one field of a plan a little."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from planner.plan import SwapPlan
from tests.plan.changing import replace

TABLES = ("residencies", "host_residencies", "swap_outs", "swap_ins")


def others(value: int, largest: int) -> list[int]:
    """Values that might take the place of one."""
    near = [value - 8, value - 1, value + 1, value + 8, -1, 0, largest, value + 10**6]
    return [other for other in dict.fromkeys(near) if other != value]


def corruptions(plan: SwapPlan, storages: int) -> Iterator[tuple[str, SwapPlan]]:
    """Plans that differ from this one in one field, one entry or one place of a queue."""
    n = len(plan.order)
    for table in TABLES:
        rows = getattr(plan, table)
        for place, row in enumerate(rows):
            for field in fields(row):
                value = getattr(row, field.name)
                for other in others(value, storages - 1 if field.name == "storage" else n):
                    changed = (*rows[:place], replace(row, **{field.name: other}), *rows[place + 1 :])
                    yield f"{table}[{place}].{field.name} {value} -> {other}", replace(plan, **{table: changed})
            yield f"{table}[{place}] left out", replace(plan, **{table: (*rows[:place], *rows[place + 1 :])})
            yield f"{table}[{place}] twice", replace(plan, **{table: (*rows[: place + 1], *rows[place:])})
            if place:
                swapped = (*rows[: place - 1], row, rows[place - 1], *rows[place + 1 :])
                yield f"{table}[{place}] earlier", replace(plan, **{table: swapped})
    for slot in range(1, n):
        order = [*plan.order]
        order[slot - 1], order[slot] = order[slot], order[slot - 1]
        yield f"order[{slot}] earlier", replace(plan, order=tuple(order))
        order = [*plan.order]
        order[slot] = order[slot - 1]
        yield f"order[{slot}] replaced", replace(plan, order=tuple(order))
    for place, (op, size) in enumerate(plan.workspaces):
        for pair in [(op, other) for other in others(size, 10**6)] + [(other, size) for other in others(op, n)]:
            changed = (*plan.workspaces[:place], pair, *plan.workspaces[place + 1 :])
            yield f"workspaces[{place}] {(op, size)} -> {pair}", replace(plan, workspaces=changed)
    for name in ("budget_bytes", "host_budget_bytes", "alignment", "peak_bytes", "host_bytes"):
        value = getattr(plan, name)
        for other in (0,) if value is None else others(value, 16):
            yield f"{name} {value} -> {other}", replace(plan, **{name: other})
    yield "graph", replace(plan, graph=plan.graph[::-1])
